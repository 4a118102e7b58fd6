//! `candide reproduce`: the published figures that can be measured, at a size that suits the
//! machine. Each paper's figures have their own file.

mod granularity;
mod mocc;
mod optimism;
mod size;

use std::time::Duration;

use candide::experiments::free_memory;
use candide_harness::figure::Outline;
use candide_harness::{Cores, Failure, Profile, Report, Rules, crowding};

use crate::cli::{FigureName, ReproduceArgs};
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

/// The limits and choices on which the plan of a figure depends.
struct Bounds {
    /// The numbers of threads, in ascending order.
    threads: Vec<usize>,
    /// The measured time of a run.
    duration: Duration,
    room: Room,
}

impl Bounds {
    /// Returns the largest number of threads.
    fn most(&self) -> usize {
        *self.threads.last().expect("there is one")
    }
}

impl Reproduction {
    /// Returns the plan for the figure in `args`, sized for this machine.
    pub(crate) fn plan(args: &ReproduceArgs) -> Result<Self, Failure> {
        let cores = Cores::allowed();
        let only_most = matches!(
            args.figure,
            FigureName::SeparateEffects | FigureName::SetSizes | FigureName::Mocc
        );
        let duration = args.duration.unwrap_or(match args.figure {
            FigureName::Mocc => Duration::from_secs(2),
            _ => Duration::from_secs(3),
        });
        let mut threads = args.threads.clone();
        if threads.is_empty() {
            threads = if only_most { vec![cores.count()] } else { up_to(cores.count()) };
        }
        threads.sort_unstable();
        threads.dedup();
        let bounds = Bounds {
            threads,
            duration,
            room: Room::new(free_memory().unwrap_or(FREE_UNKNOWN), cores.count(), args.scale),
        };
        let mut outline = match args.figure {
            FigureName::Factors => optimism::factors(&bounds),
            FigureName::Delivery => optimism::delivery(&bounds),
            FigureName::Protocols => optimism::protocols(&bounds),
            FigureName::HighContention => optimism::high_contention(&bounds),
            FigureName::SeparateEffects => optimism::separate_effects(&bounds),
            FigureName::SetSizes => optimism::set_sizes(&bounds),
            FigureName::Reordering => optimism::reordering(&bounds),
            FigureName::ThreeTimestamps => optimism::three_timestamps(&bounds),
            FigureName::Indexes => optimism::indexes(&bounds),
            FigureName::Granularity => granularity::outline(&bounds),
            FigureName::Mocc => mocc::outline(&bounds),
        };
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

/// Returns the powers of two below `cores`, and then `cores`.
fn up_to(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
    powers.take_while(|&threads| threads < cores).chain([cores]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_the_cores() {
        assert_eq!(up_to(1), [1]);
        assert_eq!(up_to(2), [1, 2]);
        assert_eq!(up_to(6), [1, 2, 4, 6]);
    }
}
