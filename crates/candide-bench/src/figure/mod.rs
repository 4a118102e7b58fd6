//! `candide reproduce`: the published figures that can be measured, at a size that suits the
//! machine. Each paper's figures have their own file.

mod bounds;
mod drp;
mod granularity;
mod mocc;
mod optimism;
mod size;

use std::time::Duration;

use candide::experiments::free_memory;
use candide_harness::figure::{Opacity, Outline};
use candide_harness::{Cores, Failure, Profile, Report, Rules, crowding};

use crate::cli::{FigureName, ReproduceArgs, Switch};
use bounds::Bounds;
use size::Room;

/// A figure, and the rules by which it is measured here.
pub(crate) struct Reproduction {
    outline: Outline,
    rules: Rules,
    /// The notes that accompany the figure.
    notes: Vec<String>,
}

/// The number of bytes of memory assumed to be free if the system does not report free memory.
const FREE_UNKNOWN: u64 = 4 << 30;

impl Reproduction {
    /// Returns the plan for `figure` by the settings in `args`, sized for this machine.
    pub(crate) fn plan(figure: FigureName, args: &ReproduceArgs) -> Result<Self, Failure> {
        let cores = Cores::allowed();
        let only_most =
            matches!(figure, FigureName::SeparateEffects | FigureName::SetSizes | FigureName::Mocc);
        let duration = args.duration.unwrap_or(match figure {
            FigureName::Mocc | FigureName::Drp => Duration::from_secs(2),
            _ => Duration::from_secs(3),
        });
        let mut threads = args.threads.clone();
        if threads.is_empty() {
            threads = match figure {
                FigureName::Drp => drp::threads(cores.count()),
                FigureName::Machinery => vec![1],
                _ if only_most => vec![cores.count()],
                _ => up_to(cores.count()),
            };
        }
        threads.sort_unstable();
        threads.dedup();
        let bounds = Bounds {
            threads,
            duration,
            opacity: Opacity::of(&Switch::are_on(&args.opaque)),
            room: Room::new(free_memory().unwrap_or(FREE_UNKNOWN), cores.count(), args.scale),
        };
        let mut outline = outline(figure, &bounds);
        outline
            .cases
            .iter()
            .try_for_each(|case| case.workload.validate())
            .map_err(Failure::Usage)?;
        let (length, runs) = (humantime::format_duration(duration), args.runs);
        let list = bounds.threads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        outline.deviations.insert(
            0,
            format!(
                "{}; here {list} threads on {} cores, runs of {length}, the median of {runs}",
                outline.measured,
                cores.count()
            ),
        );
        let notes = crowding(&bounds.threads, cores.count()).into_iter().collect();
        outline.deviations.extend(bounds.room.into_reduced());
        let rules = Rules {
            cores,
            warmup: args.warmup,
            duration,
            runs: args.runs,
            seed: args.seed,
            rate: None,
            slice: None,
            hottest: false,
            reserve: true,
            set_sizes: outline.shows.counts_sets(),
            force: args.force,
            profile: Profile::Paper,
            files: None,
        };
        outline.expect_room(&rules)?;
        Ok(Reproduction { outline, rules, notes })
    }

    /// Measures the figure.
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let Reproduction { outline, rules, notes } = self;
        outline.measure(&rules, notes)
    }
}

/// Returns the plan of a figure.
fn outline(figure: FigureName, bounds: &Bounds) -> Outline {
    let mut outline = match figure {
        FigureName::Factors => optimism::factors(bounds),
        FigureName::Delivery => optimism::delivery(bounds),
        FigureName::Protocols => optimism::protocols(bounds),
        FigureName::HighContention => optimism::high_contention(bounds),
        FigureName::SeparateEffects => optimism::separate_effects(bounds),
        FigureName::SetSizes => optimism::set_sizes(bounds),
        FigureName::Reordering => optimism::reordering(bounds),
        FigureName::ThreeTimestamps => optimism::three_timestamps(bounds),
        FigureName::Indexes => optimism::indexes(bounds),
        FigureName::Machinery => optimism::machinery(bounds),
        FigureName::Granularity => granularity::outline(bounds),
        FigureName::Mocc => mocc::outline(bounds),
        // Reads of frozen columns are observed without opacity, so all lines but one are opaque.
        FigureName::Drp => return drp::outline(bounds),
    };
    outline.deviations.extend(opacity_note(bounds.opacity).map(str::to_string));
    outline
}

/// Returns a note on the opacity of lines; `None` if it is as published.
fn opacity_note(opacity: Opacity) -> Option<&'static str> {
    match opacity {
        Opacity::Priced => Some(
            "occ and its policies run without opacity, as in research engines; databases have it by default, and a line that ends in `opaque` shows its price",
        ),
        Opacity::Only(true) => {
            Some("occ and its policies run with opacity, which research engines leave out")
        }
        Opacity::Only(false) => None,
        Opacity::Both => {
            Some("lines that end in `opaque` run with opacity, which research engines leave out")
        }
    }
}

/// Returns the powers of two below `cores`, and then `cores`.
fn up_to(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
    powers.take_while(|&threads| threads < cores).chain([cores]).collect()
}

#[cfg(test)]
mod tests {
    use candide_harness::figure::{Claim, Compared, Quantity};
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn numbers_of_threads_end_with_the_number_of_cores() {
        assert_eq!(up_to(1), [1]);
        assert_eq!(up_to(2), [1, 2]);
        assert_eq!(up_to(6), [1, 2, 4, 6]);
    }

    /// Returns the plans of all figures.
    fn outlines(opacity: Opacity) -> Vec<Outline> {
        outlines_at(1e-4, opacity)
    }

    /// Returns the plans of all figures, whose tables have this fraction of the published size.
    fn outlines_at(fraction: f64, opacity: Opacity) -> Vec<Outline> {
        let room = Room::new(0, 1, Some(fraction));
        let bounds =
            Bounds { threads: vec![1, 2], duration: Duration::from_secs(1), opacity, room };
        FigureName::value_variants().iter().map(|&figure| outline(figure, &bounds)).collect()
    }

    #[test]
    fn tables_of_every_figure_follow_the_scale_but_for_those_that_a_paper_fixes() {
        let [small, large] = [0.02, 0.04].map(|scale| outlines_at(scale, Opacity::Only(false)));
        for (small, large) in small.iter().zip(&large) {
            for (small, large) in small.cases.iter().zip(&large.cases) {
                let (name, keys) = (small.workload.name(), small.workload.keys());
                if name.starts_with("ycsb-hot") {
                    assert_eq!((keys, large.workload.keys()), (50, 50), "{name}");
                    continue;
                }
                // Keys of kmeans are centres; other programs of STAMP have objects only.
                if name == "kmeans" || keys == 1 {
                    assert_eq!(keys, large.workload.keys());
                    continue;
                }
                let ratio = large.workload.keys() as f64 / keys as f64;
                assert!((1.9..=2.1).contains(&ratio), "{name}: {ratio}");
            }
        }
    }

    #[test]
    fn claims_of_every_figure_are_about_its_lines() {
        for outline in outlines(Opacity::Priced) {
            assert!(!outline.claims.is_empty(), "{} claims nothing", outline.name);
            for Claim { text, line, quantity, compared, .. } in &outline.claims {
                let others = match compared {
                    Compared::Nothing => Vec::new(),
                    Compared::RatioTo(others) => others.clone(),
                    Compared::DifferenceFrom(other) => vec![*other],
                };
                assert!(!others.contains(line), "{text}: a line is compared with itself");
                let lines = || others.iter().chain([line]).map(|&line| &outline.lines[line]);
                assert!(lines().all(|line| !line.label.ends_with(", opaque")), "{text}");
                if *quantity == Quantity::OfBase {
                    assert!(lines().all(|line| line.base.is_some()), "{text}: not compared");
                }
            }
        }
    }

    #[test]
    fn lines_of_figures_have_the_opacity_that_the_option_chooses() {
        let opaque = |outline: &Outline| {
            let lines = outline.lines.iter().map(|line| &outline.cases[line.cases[0]].variant);
            lines.map(|variant| variant.opaque).collect::<Vec<_>>()
        };
        let [priced, on, off, both] =
            [&[][..], &[true], &[false], &[true, false]].map(|asked| outlines(Opacity::of(asked)));
        for (outline, off) in priced.iter().zip(&off) {
            let labels = |outline: &Outline| {
                outline.lines.iter().map(|line| line.label.clone()).collect::<Vec<_>>()
            };
            let is_price = |label: &String| label.ends_with(", opaque");
            let kept = labels(outline).into_iter().filter(|label| !is_price(label));
            assert!(kept.eq(labels(off)), "{}", outline.name);
            for (index, line) in outline.lines.iter().enumerate() {
                assert_eq!(is_price(&line.label), opaque(outline)[index] == Some(true));
                let of = line.base.map(|base| format!("{}, opaque", outline.lines[base].label));
                assert!(!is_price(&line.label) || of.as_ref() == Some(&line.label));
            }
        }
        let first = &priced[FigureName::Protocols as usize].lines[..5];
        assert_eq!(
            first.iter().map(|line| line.label.as_str()).collect::<Vec<_>>(),
            ["occ", "occ, opaque", "tictoc", "mvto", "mvcc"]
        );
        assert!(on.iter().flat_map(opaque).all(|opaque| opaque != Some(false)));
        assert!(off.iter().flat_map(opaque).all(|opaque| opaque != Some(true)));
        for outline in &both[..3] {
            let count = |on| opaque(outline).iter().filter(|opaque| **opaque == Some(on)).count();
            assert!(count(true) > 0, "{}", outline.name);
        }
    }
}
