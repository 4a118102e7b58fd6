//! `candide reproduce`: measures what a published figure shows, at a size that suits the machine, and puts beside it what the
//! paper's text says and in what this differs.
//!
//! Everything is run once in each round, so that a slow moment of the machine hits all alike, and compared with what was run in the
//! same round.

mod granularity;
mod mocc;
mod optimism;
mod outcome;
mod outline;
mod size;

use std::num::NonZeroUsize;

use crate::affinity::Cores;
use crate::cli::{FigureName, Profile, ReproduceArgs};
use crate::failure::Failure;
use crate::machine::{self, Machine};
use crate::plan::crowding;
use crate::progress::Agenda;
use crate::report::Report;
use crate::stand::{Rules, Stand, Turn};
use crate::suite::admit;
pub(crate) use outcome::{Figure, Line, Point};
use outline::Outline;
use size::Room;

/// A figure, and how to measure it here.
pub(crate) struct Reproduction {
    outline: Outline,
    rules: Rules,
    /// What has to be said beside the figure.
    notes: Vec<String>,
}

/// What a figure may depend on.
struct Bounds {
    /// The numbers of threads, in ascending order.
    threads: Vec<usize>,
    room: Room,
}

impl Bounds {
    /// The most threads.
    fn most(&self) -> usize {
        *self.threads.last().expect("there is one")
    }
}

impl Reproduction {
    /// What the arguments come to on this machine.
    pub(crate) fn plan(args: &ReproduceArgs) -> Result<Self, Failure> {
        let cores = Cores::allowed();
        let only_most = args.figure == FigureName::SeparateEffects;
        let mut threads: Vec<_> = args.threads.iter().copied().map(NonZeroUsize::get).collect();
        if threads.is_empty() {
            threads = if only_most { vec![cores.count()] } else { up_to(cores.count()) };
        }
        threads.sort_unstable();
        threads.dedup();
        let bounds = Bounds { threads, room: Room::new(machine::free_memory(), cores.count(), args.scale) };
        let mut outline = match args.figure {
            FigureName::Factors => optimism::factors(&bounds),
            FigureName::Delivery => optimism::delivery(&bounds),
            FigureName::Protocols => optimism::protocols(&bounds),
            FigureName::HighContention => optimism::high_contention(&bounds),
            FigureName::SeparateEffects => optimism::separate_effects(&bounds),
            FigureName::Granularity => granularity::outline(&bounds),
            FigureName::TpccMocc => mocc::outline(&bounds),
        };
        outline.cases.iter().try_for_each(|case| case.subject.validate()).map_err(Failure::Usage)?;
        let (duration, runs) = (humantime::format_duration(args.duration), args.runs);
        let list = bounds.threads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        outline.deviations.insert(
            0,
            format!(
                "{}; here {list} threads on {} cores, runs of {duration}, the median of {runs}",
                outline.measured,
                cores.count()
            ),
        );
        let notes = crowding(&bounds.threads, cores.count()).into_iter().collect();
        outline.deviations.extend(bounds.room.into_reduced());
        let rules = Rules {
            cores,
            warmup: args.warmup,
            duration: args.duration,
            runs: args.runs.get(),
            seed: args.seed,
            rate: None,
            slice: None,
            hottest: false,
            profile: Profile::Paper,
        };
        Ok(Reproduction { outline, rules, notes })
    }

    /// Measures it.
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let Reproduction { outline, rules, mut notes } = self;
        admit(&mut notes, outline.cases.iter().map(|case| &*case.subject));
        let cases = outline.cases.iter();
        let mut stands: Vec<_> =
            cases.map(|case| Stand::new(&*case.subject, case.variant.clone(), &case.threads)).collect();
        let turns: usize = stands.iter().map(Stand::len).sum();
        let mut agenda = Agenda::new(turns * rules.runs, rules.warmup + rules.duration);
        let ended_early = rounds(&mut stands, &rules, &mut agenda)? == Turn::EndedEarly;
        let mut figure = outcome::Figure::new(&outline, &stands);
        let mut results = Vec::new();
        for (case, stand) in stands.into_iter().enumerate() {
            for (index, measurement) in stand.into_measurements(&rules)?.into_iter().enumerate() {
                if let Some(measurement) = measurement {
                    figure.link(case, index, results.len());
                    results.push(measurement);
                }
            }
        }
        let mut report = Report::new(Machine::inspect(rules.cores.count()), notes, results, ended_early)?;
        report.figure = Some(figure);
        Ok(report)
    }
}

/// So many rounds of everything. There is one database at a time, so that it may be as large as memory permits.
fn rounds(stands: &mut [Stand<'_>], rules: &Rules, agenda: &mut Agenda) -> Result<Turn, Failure> {
    for _ in 0..rules.runs {
        for stand in stands.iter_mut() {
            for index in 0..stand.len() {
                if stand.turn(index, rules, agenda)? == Turn::EndedEarly {
                    stand.close(agenda)?;
                    return Ok(Turn::EndedEarly);
                }
                agenda.advance();
            }
            stand.close(agenda)?;
        }
    }
    Ok(Turn::Whole)
}

/// The powers of two below `cores`, and `cores`.
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
