//! Random texts, last names, and the skewed numbers that pick customers and items.

use candide::{Bytes, Text};
use fastrand::Rng;

use super::rows::LastName;

/// The syllables of last names, one for each digit.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The mark of a brand in the data of items and stocks.
pub(super) const BRAND: &str = "ORIGINAL";

/// The number of last names: one for each number of three digits.
pub(super) const LAST_NAMES: u16 = 1000;

/// The constants of the skewed distributions. The two constants of names differ by 66, a difference
/// that the standard permits. The constants must differ, so that the names looked up most often are
/// not the names given most often.
const CUSTOMER_SHIFT: u32 = 259;
const ITEM_SHIFT: u32 = 7911;
const NAME_SHIFT_LOAD: u32 = 157;
const NAME_SHIFT_RUN: u32 = 223;

/// Draws the number of a customer, from 1 to `count`.
pub(super) fn customer(rng: &mut Rng, count: u16) -> u16 {
    skewed(rng, 1023, CUSTOMER_SHIFT, 1, u32::from(count)) as u16
}

/// Draws the number of an item, from 1 to `count`.
pub(super) fn item(rng: &mut Rng, count: u32) -> u32 {
    skewed(rng, 8191, ITEM_SHIFT, 1, count)
}

/// Draws the number of the last name, below `count`, of a customer that is being loaded.
pub(super) fn name_given(rng: &mut Rng, count: u16) -> u16 {
    skewed(rng, 255, NAME_SHIFT_LOAD, 0, u32::from(count) - 1) as u16
}

/// Draws the number of the last name, below `count`, of a customer that is being looked up.
pub(super) fn name_asked_for(rng: &mut Rng, count: u16) -> u16 {
    skewed(rng, 255, NAME_SHIFT_RUN, 0, u32::from(count) - 1) as u16
}

/// Draws TPC-C's `NURand`, a number from `first` to `last`. Before the numbers are shifted by
/// `shift` within this range, a number is drawn more often the more of its low bits are set.
fn skewed(rng: &mut Rng, mask: u32, shift: u32, first: u32, last: u32) -> u32 {
    ((rng.u32(0..=mask) | rng.u32(first..=last)) + shift) % (last - first + 1) + first
}

/// Returns the last name number `number`, which must be below [`LAST_NAMES`].
pub(super) fn last_name(number: u16) -> LastName {
    let mut bytes = [0; 16];
    let mut length = 0;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[usize::from(digit)].as_bytes();
        bytes[length..length + syllable.len()].copy_from_slice(syllable);
        length += syllable.len();
    }
    text_of(&bytes[..length])
}

/// Draws from `least` to `most` letters and digits.
pub(super) fn letters<const N: usize>(rng: &mut Rng, least: usize, most: usize) -> Text<N> {
    let mut bytes = [0; N];
    let length = rng.usize(least..=most);
    bytes[..length].fill_with(|| rng.alphanumeric() as u8);
    text_of(&bytes[..length])
}

/// Draws `N` letters and digits.
pub(super) fn full_letters<const N: usize>(rng: &mut Rng) -> Bytes<N> {
    Bytes::from_fn(|_| rng.alphanumeric() as u8)
}

/// Draws at least `least` letters and digits. Zeros fill the rest.
pub(super) fn padded_letters<const N: usize>(rng: &mut Rng, least: usize) -> Bytes<N> {
    let length = rng.usize(least..=N);
    Bytes::from_fn(|index| if index < length { rng.alphanumeric() as u8 } else { 0 })
}

/// Draws two capital letters.
pub(super) fn state(rng: &mut Rng) -> Bytes<2> {
    Bytes::from_fn(|_| rng.uppercase() as u8)
}

/// Draws sixteen digits.
pub(super) fn phone(rng: &mut Rng) -> Bytes<16> {
    Bytes::from_fn(|_| rng.digit(10) as u8)
}

/// Draws four digits, followed by five ones.
pub(super) fn zip(rng: &mut Rng) -> Bytes<9> {
    Bytes::from_fn(|index| if index < 4 { rng.digit(10) as u8 } else { b'1' })
}

/// Draws brand information: letters and digits. In one of ten cases, the text contains [`BRAND`].
pub(super) fn brand_data(rng: &mut Rng) -> Text<50> {
    let data: Text<50> = letters(rng, 26, 50);
    if rng.u32(..10) > 0 {
        return data;
    }
    let mut bytes = [0; 50];
    let length = data.as_str().len();
    bytes[..length].copy_from_slice(data.as_str().as_bytes());
    let at = rng.usize(..=length - BRAND.len());
    bytes[at..at + BRAND.len()].copy_from_slice(BRAND.as_bytes());
    text_of(&bytes[..length])
}

/// Returns the text in a payment's row: the names of the warehouse and of the district, separated
/// by four spaces.
pub(super) fn paid_where(warehouse: &Text<10>, district: &Text<10>) -> Text<24> {
    let mut bytes = [b' '; 24];
    let (warehouse, district) = (warehouse.as_str().as_bytes(), district.as_str().as_bytes());
    bytes[..warehouse.len()].copy_from_slice(warehouse);
    let at = warehouse.len() + 4;
    bytes[at..at + district.len()].copy_from_slice(district);
    text_of(&bytes[..at + district.len()])
}

/// Returns ASCII bytes as a text. There must be at most `N` bytes.
fn text_of<const N: usize>(ascii: &[u8]) -> Text<N> {
    let text = std::str::from_utf8(ascii).expect("ASCII is text");
    Text::new(text).expect("made to fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn last_names_are_syllables_of_digits() {
        assert_eq!(last_name(0).as_str(), "BARBARBAR");
        assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
        assert_eq!(last_name(999).as_str(), "EINGEINGEING");
    }

    #[test]
    fn skewed_numbers_stay_within_their_range_and_are_skewed() {
        let mut rng = stream(3, 0);
        let mut drawn = [0u32; 3001];
        for _ in 0..300_000 {
            drawn[usize::from(customer(&mut rng, 3000))] += 1;
        }
        assert_eq!(drawn[0], 0);
        // Before the shift, numbers such as 1023 are the most frequent.
        let hottest = (1..=3000).max_by_key(|&id| drawn[id]).expect("not empty");
        assert!([1023 + 260, 2047 + 260].contains(&hottest), "{hottest}");
        assert!(drawn[hottest] > 1000, "ten times the average");
        for _ in 0..10_000 {
            assert!((1..=7).contains(&item(&mut rng, 7)));
            assert!(name_given(&mut rng, 20) < 20 && name_asked_for(&mut rng, 1) == 0);
        }
    }

    #[test]
    fn one_text_in_ten_contains_original() {
        let mut rng = stream(4, 0);
        let marked = (0..10_000).filter(|_| brand_data(&mut rng).as_str().contains(BRAND)).count();
        assert!((900..1100).contains(&marked), "{marked} of 10,000");
    }

    #[test]
    fn the_place_of_a_payment_fits_into_its_column() {
        let name = |text| Text::new(text).expect("fits");
        assert_eq!(
            paid_where(&name("abcdef"), &name("ghijklmnop")).as_str(),
            "abcdef    ghijklmnop"
        );
        assert_eq!(
            paid_where(&name("0123456789"), &name("0123456789")).as_str(),
            "0123456789    0123456789"
        );
    }
}
