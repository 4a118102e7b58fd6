//! What an invocation comes to: which databases are loaded, and with how many threads each is run.

use std::num::NonZeroUsize;

use crate::cli::Common;
use crate::failure::Failure;
use crate::registry::{Choice, Choices};
use crate::subject::Variant;

/// One database, loaded once and run with each of the thread counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) variant: Variant,
    pub(crate) threads: Vec<usize>,
}

/// The cases, and what has to be said about them.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Every combination that was asked for and can be run. It is an error if there is none.
    pub(crate) fn new(common: &Common, cores: usize) -> Result<Plan, Failure> {
        let asked: Vec<usize> = common.threads.iter().copied().map(NonZeroUsize::get).collect();
        let mut plan = Plan { cases: Vec::new(), notes: Vec::new() };
        for &protocol in &common.protocol.0 {
            let (threads, refused): (Vec<_>, Vec<_>) = asked.iter().partition(|&&threads| protocol.permits(threads));
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
            for cu in &common.cu {
                for ts in &common.ts {
                    for timestamps in protocol.timestamps(&common.timestamps) {
                        let factors = common.factors.clone();
                        let variant = Variant { protocol, cu: cu.is_on(), ts: ts.is_on(), timestamps, factors };
                        plan.cases.push(Case { variant, threads: threads.clone() });
                    }
                }
            }
        }
        plan.notes.extend(unconcerned(common)?);
        if plan.cases.is_empty() {
            return Err(Failure::Usage(format!("{}; use --threads 1", plan.notes.join("; "))));
        }
        plan.notes.extend(crowding(&asked, cores));
        Ok(plan)
    }
}

/// What is to be said if it was asked where timestamps come from: an error if none of the protocols leaves that choice, a note if some do
/// not.
fn unconcerned(common: &Common) -> Result<Option<String>, Failure> {
    if common.timestamps.is_empty() {
        return Ok(None);
    }
    let (with, without): (Vec<Choice>, Vec<Choice>) =
        common.protocol.0.iter().partition(|protocol| protocol.leaves_timestamps());
    let names = without.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", ");
    match (with.is_empty(), without.is_empty()) {
        (true, _) => {
            let able = Choices::with_timestamps().join(", ");
            Err(Failure::Usage(format!("--timestamps means nothing to {names}; it is for {able}")))
        }
        (false, true) => Ok(None),
        (false, false) => Ok(Some(format!("--timestamps means nothing to {names}"))),
    }
}

/// What is to be said if there are more threads than cores.
pub(crate) fn crowding(threads: &[usize], cores: usize) -> Option<String> {
    let most = threads.iter().max().filter(|&&threads| threads > cores)?;
    Some(format!("{most} threads share {cores} cores: the scheduler is measured along with the engine"))
}
