//! Names and texts whose lengths are distributed as in the real Wikipedia.
//!
//! The benchmark's histograms are long, so their quantiles are used instead. Between two quantiles,
//! values grow geometrically, as in long tails, or linearly if they are not positive. The means
//! differ from those of the histograms by less than a fifth.

use fastrand::Rng;

use super::rows::{PageId, PageName, text};
use crate::rng::{draw_kind, stream};

/// The seed of titles, so that every database has the same titles.
const TITLE_SEED: u64 = 0;

/// The greatest length of a text. Without this limit, pages that are edited very often would become
/// longer.
const TEXT_MAX: usize = 256 * 1024;

/// The probabilities to which the quantiles belong, in thousandths.
const PLACES: [u32; 10] = [0, 10, 100, 250, 500, 750, 900, 950, 990, 1000];

/// A distribution, given by its quantiles at [`PLACES`].
struct Quantiles([f64; 10]);

const TITLE_LENGTH: Quantiles =
    Quantiles([4.0, 4.0, 8.0, 12.0, 14.0, 22.0, 32.0, 38.0, 53.0, 141.0]);
const REVISIONS: Quantiles = Quantiles([1.0, 1.0, 1.0, 1.0, 2.0, 7.0, 22.0, 46.0, 190.0, 1000.0]);
const TEXT_LENGTH: Quantiles = Quantiles([
    100.0, 100.0, 500.0, 1750.0, 5500.0, 17_900.0, 38_300.0, 58_200.0, 87_100.0, 100_000.0,
]);
const NAME_LENGTH: Quantiles = Quantiles([3.0, 3.0, 6.0, 7.0, 9.0, 11.0, 14.0, 16.0, 20.0, 63.0]);

/// The distributions of the change of length by an edit. Each is for texts of at most the given
/// number of bytes.
const CHANGES: [(usize, Quantiles); 3] = [
    (1000, Quantiles([-400.0, -400.0, 0.0, 0.0, 0.0, 100.0, 500.0, 1200.0, 20_000.0, 100_000.0])),
    (
        10_000,
        Quantiles([-1700.0, -1700.0, -100.0, 0.0, 0.0, 100.0, 300.0, 600.0, 1900.0, 100_000.0]),
    ),
    (
        usize::MAX,
        Quantiles([-11_000.0, -11_000.0, -100.0, 0.0, 0.0, 100.0, 500.0, 900.0, 2900.0, 100_000.0]),
    ),
];

/// The namespaces, and their frequencies.
const NAMESPACES: [i32; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 100, 101];
const NAMESPACE_WEIGHTS: [u32; 18] =
    [40847, 15304, 4718, 23563, 2562, 268, 6991, 330, 9, 6, 1187, 263, 3, 2, 2831, 694, 393, 29];

/// The frequencies of edits that are not minor, and of minor ones.
const MINOR_WEIGHTS: [u32; 2] = [1_142_822, 362_171];

impl Quantiles {
    fn sample(&self, rng: &mut Rng) -> f64 {
        let place = rng.f64() * 1000.0;
        let upper =
            PLACES.iter().position(|&end| place < f64::from(end)).expect("less than the last");
        let (low, high) = (self.0[upper - 1], self.0[upper]);
        let (start, end) = (f64::from(PLACES[upper - 1]), f64::from(PLACES[upper]));
        let share = (place - start) / (end - start);
        if low > 0.0 { low * (high / low).powf(share) } else { low + (high - low) * share }
    }

    fn sample_count(&self, rng: &mut Rng) -> usize {
        self.sample(rng) as usize
    }
}

/// Draws the number of revisions of a page.
pub(super) fn revisions(rng: &mut Rng) -> u64 {
    REVISIONS.sample_count(rng) as u64
}

/// Draws the text of a page's first revision.
pub(super) fn first_text(rng: &mut Rng) -> Vec<u8> {
    let length = TEXT_LENGTH.sample_count(rng);
    printable(rng, length)
}

/// Draws a user's name.
pub(super) fn name(rng: &mut Rng) -> String {
    let length = NAME_LENGTH.sample_count(rng);
    (0..length).map(|_| rng.alphanumeric()).collect()
}

/// Draws 1 if an edit is minor, and 0 otherwise.
pub(super) fn minor_edit(rng: &mut Rng) -> i32 {
    draw_kind(&MINOR_WEIGHTS, rng) as i32
}

/// Draws the restrictions of a page. Hardly any page has restrictions.
pub(super) fn restrictions(rng: &mut Rng) -> &'static str {
    if rng.u32(..100_000) < 83 { "edit=sysop:move=sysop" } else { "" }
}

/// Turns one revision's text into the text of the next revision: appends new characters, or cuts
/// off the end.
pub(super) fn edit(content: &mut Vec<u8>, rng: &mut Rng) {
    let old = content.len();
    let (_, change) =
        CHANGES.iter().find(|(most, _)| old <= *most).expect("the last one is for all");
    let new = old as f64 + change.sample(rng).trunc();
    // An edit never empties a page.
    let new = if new < 1.0 { old - shrink(old) } else { (new as usize).min(TEXT_MAX) };
    content.truncate(new);
    content.extend((old..new).map(|_| character(rng)));
}

/// Returns the number of bytes to remove from a text of `old` bytes, if the drawn change would
/// remove the whole text.
fn shrink(old: usize) -> usize {
    let most = (old as f64 / 1.5).round() as usize;
    if most < old { most } else { most / 2 }
}

fn printable(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| character(rng)).collect()
}

fn character(rng: &mut Rng) -> u8 {
    rng.u8(b' '..=b'~')
}

/// Returns whether a byte can be in a text.
pub(super) fn is_character(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// Returns the name of page number `page`. A page has the same name in every database, and no two
/// pages have the same name.
pub(super) fn page_name(page: PageId) -> PageName {
    let mut rng = stream(TITLE_SEED, page);
    let namespace = NAMESPACES[draw_kind(&NAMESPACE_WEIGHTS, &mut rng)];
    let length = TITLE_LENGTH.sample_count(&mut rng);
    let title: String = printable(&mut rng, length).into_iter().map(char::from).collect();
    PageName { namespace, title: text(&format!("{title}[{page}]")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean of 100,000 draws.
    fn mean(quantiles: &Quantiles) -> f64 {
        let mut rng = stream(1, 0);
        (0..100_000).map(|_| quantiles.sample(&mut rng).trunc()).sum::<f64>() / 100_000.0
    }

    #[test]
    fn mean_sizes_are_near_those_of_the_histograms() {
        let near = [
            (&TITLE_LENGTH, 17.8),
            (&REVISIONS, 12.1),
            (&TEXT_LENGTH, 13_559.0),
            (&NAME_LENGTH, 9.4),
        ];
        for (quantiles, published) in near {
            let mean = mean(quantiles);
            assert!((mean - published).abs() < published * 0.2, "{mean} instead of {published}");
        }
        // Of the changes, only the signs matter: short texts grow and long ones shrink.
        assert!(mean(&CHANGES[0].1) > 300.0 && mean(&CHANGES[2].1) < -50.0);
    }

    #[test]
    fn edited_texts_stay_valid_and_within_their_bounds() {
        let mut rng = stream(2, 0);
        let mut content = first_text(&mut rng);
        for _ in 0..2_000 {
            edit(&mut content, &mut rng);
            assert!((1..=TEXT_MAX).contains(&content.len()));
        }
        assert!(content.iter().all(|&byte| is_character(byte)));
        let mut one = vec![b'x'];
        (0..100).for_each(|_| edit(&mut one, &mut rng));
        assert!(!one.is_empty());
    }

    #[test]
    fn titles_end_with_their_numbers() {
        let name = page_name(77);
        assert_eq!(name, page_name(77));
        assert!(name.title.as_str().ends_with("[77]"));
        let articles = (1..=10_000).filter(|&page| page_name(page).namespace == 0).count();
        assert!((3_900..4_300).contains(&articles), "{articles} of 10,000 are in namespace 0");
    }
}
