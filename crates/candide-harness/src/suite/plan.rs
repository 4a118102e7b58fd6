//! The plan of a command: the databases to load, and the numbers of threads with which each
//! database is run.

use candide::experiments::{Factor, Timestamps};

use crate::any_workload::Variant;
use crate::failure::Failure;
use crate::registry::{Choice, Choices};

/// The settings whose combinations are all measured.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The protocols.
    pub protocols: Choices,
    /// The numbers of threads.
    pub threads: Vec<usize>,
    /// Whether updates are applied at commit.
    pub cu: Vec<bool>,
    /// Whether each column group has its own timestamp.
    pub ts: Vec<bool>,
    /// The sources of timestamps, for protocols that offer a choice; if empty, the default of each
    /// protocol.
    pub timestamps: Vec<Timestamps>,
    /// Whether databases are opaque, for protocols that leave the choice; if empty, they are.
    pub opaque: Vec<bool>,
    /// The bad design choices that apply to every combination.
    pub factors: Vec<Factor>,
    /// Whether all combinations count commits that OCC would have aborted.
    pub counts_stale: bool,
}

/// One database, loaded once and run with each of the thread counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) variant: Variant,
    pub(crate) threads: Vec<usize>,
}

/// The cases, and notes about them for the report.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Returns every requested combination that can be run, or an error if there is none.
    pub(crate) fn new(matrix: &Matrix, cores: usize) -> Result<Plan, Failure> {
        let asked = &matrix.threads;
        let mut plan = Plan { cases: Vec::new(), notes: Vec::new() };
        for &protocol in &matrix.protocols.0 {
            let (threads, refused): (Vec<_>, Vec<_>) =
                asked.iter().partition(|&&threads| protocol.permits(threads));
            if !refused.is_empty() {
                plan.notes.push(format!(
                    "{} runs one transaction at a time, so it is left out with {} threads",
                    protocol.name(),
                    refused.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ")
                ));
            }
            if threads.is_empty() {
                continue;
            }
            for &cu in &matrix.cu {
                for &ts in &matrix.ts {
                    for (timestamps, opaque) in pairs(
                        &protocol.timestamps(&matrix.timestamps),
                        &protocol.opacities(&matrix.opaque),
                    ) {
                        let factors = matrix.factors.clone();
                        let Matrix { counts_stale, .. } = *matrix;
                        let variant =
                            Variant { protocol, cu, ts, timestamps, opaque, factors, counts_stale };
                        variant.validate()?;
                        plan.cases.push(Case { variant, threads: threads.clone() });
                    }
                }
            }
        }
        let asks = [
            (
                "--timestamps",
                !matrix.timestamps.is_empty(),
                Choice::leaves_timestamps as fn(_) -> _,
            ),
            ("--opaque", !matrix.opaque.is_empty(), Choice::leaves_opacity),
        ];
        for (option, _, leaves) in asks.into_iter().filter(|(_, is_asked, _)| *is_asked) {
            plan.notes.extend(unconcerned(&matrix.protocols, option, leaves)?);
        }
        if plan.cases.is_empty() {
            return Err(Failure::Usage(format!("{}; use --threads 1", plan.notes.join("; "))));
        }
        plan.notes.extend(crowding(asked, cores));
        Ok(plan)
    }
}

/// Returns every pair of an element of `first` and one of `second`.
fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> impl Iterator<Item = (A, B)> {
    first.iter().flat_map(move |&a| second.iter().map(move |&b| (a, b)))
}

/// Checks a given option, which has an effect under the protocols for which `leaves` returns
/// `true`. Returns an error if it has no effect under all of `protocols`, and a note if it has no
/// effect under some of them.
pub fn unconcerned(
    protocols: &Choices,
    option: &str,
    leaves: fn(Choice) -> bool,
) -> Result<Option<String>, Failure> {
    let (with, without): (Vec<Choice>, Vec<Choice>) =
        protocols.0.iter().partition(|protocol| leaves(**protocol));
    let names = without.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", ");
    match (with.is_empty(), without.is_empty()) {
        (true, _) => {
            let able = Choices::names_of(leaves).join(", ");
            Err(Failure::Usage(format!("{option} has no effect under {names}; it is for {able}")))
        }
        (false, true) => Ok(None),
        (false, false) => Ok(Some(format!("{option} has no effect under {names}"))),
    }
}

/// Returns a note if there are more threads than cores.
pub fn crowding(threads: &[usize], cores: usize) -> Option<String> {
    let most = threads.iter().max().filter(|&&threads| threads > cores)?;
    Some(format!(
        "{most} threads share {cores} cores: the scheduler is measured along with the engine"
    ))
}
