//! The crash laboratory: random scripts on a simulated disk, and all states that a crash could
//! leave.
//!
//! A script is drawn from its seed: tables, transactions of several sessions, checkpoints, backups,
//! openings, and faults of the disk. After it has run, [`examine`] goes through the states that the
//! end of the process, or of power, could have left after each operation of the disk
//! ([`SimDisk::crash_states`]). Each of these states must open, and
//!
//! * contain exactly the commits up to a cut that a block has closed, and all tables that were
//!   durable;
//! * contain everything that was acknowledged before: as durable against a loss of power, as
//!   written against the end of the process;
//! * be the same when it is opened again, also when recovery itself crashes, and continue to take
//!   commits that are durable.
//!
//! A share of the states is opened by a [`WholeEngine`], too.

mod draws;
mod found;
mod judge;
mod model;
mod place;
mod plan;
mod script;
mod write;

pub use judge::{Counts, WholeEngine};
pub use place::{Place, PlaceError};
pub use plan::Plan;
pub use write::Contents;

use crate::disk::SimDisk;
use judge::Judge;
use script::Script;
use std::fmt::{self, Display, Formatter};

/// A wrong state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The seed of the script.
    pub seed: u64,
    /// The state; `None` if something was wrong while the script ran.
    pub place: Option<Place>,
    /// The description of the error.
    pub what: String,
    /// The operations of the disk before the crash, and the pieces that the crash has left.
    pub story: String,
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        if let Some(place) = &self.place {
            write!(f, ":{place}")?;
        }
        writeln!(f, ": {}\n{}", self.what, self.story)
    }
}

impl std::error::Error for Finding {}

/// Runs the script of a seed and judges all states that it could leave.
///
/// # Errors
/// The first state that is not as it must be.
pub fn examine(
    seed: u64,
    plan: &Plan,
    engine: Option<&dyn WholeEngine>,
) -> Result<Counts, Box<Finding>> {
    let (script, ended) = Script::run(seed, plan);
    ended.map_err(|what| finding(seed, &script.disk, None, what))?;
    let judged = Judge::new(&script, plan, engine, seed).all();
    judged.map_err(|wrong| finding(seed, &script.disk, Some(wrong.0), wrong.1))
}

/// Runs the script of a seed again and judges one state, in every way. Returns the operations of
/// the disk before the crash, and the pieces that the crash has left.
///
/// The identity of the database and the salts of its segments are drawn anew, so states that depend
/// on them may be others.
///
/// # Errors
/// The state is not as it must be, or there is no such state.
pub fn replay(
    seed: u64,
    place: Place,
    plan: &Plan,
    engine: Option<&dyn WholeEngine>,
) -> Result<String, ReplayError> {
    let whole = Plan { recovery_share: 1.0, engine_share: 1.0, ..plan.clone() };
    let (script, ended) = Script::run(seed, &whole);
    ended.map_err(|what| ReplayError::Found(finding(seed, &script.disk, None, what)))?;
    let mut judge = Judge::new(&script, &whole, engine, seed);
    let last = script.disk.position();
    let judged = match place {
        Place::Killed(position) if position <= last => judge.killed(position),
        Place::Killed(_) => return Err(ReplayError::NoState { last }),
        Place::Crash(id) => {
            judge.crashed(&script.disk.state(id).ok_or(ReplayError::NoState { last })?)
        }
    };
    let found = |(place, what)| finding(seed, &script.disk, Some(place), what);
    judged.map_err(|wrong| ReplayError::Found(found(*wrong)))?;
    Ok(story(&script.disk, Some(place)))
}

/// The reason why a state could not be judged again, or the fault of the state.
#[derive(Debug)]
pub enum ReplayError {
    /// The state is wrong.
    Found(Box<Finding>),
    /// The disk has no state of this name.
    NoState {
        /// The number of operations that the disk does.
        last: usize,
    },
}

fn finding(seed: u64, disk: &SimDisk, place: Option<Place>, what: String) -> Box<Finding> {
    Box::new(Finding { seed, place, what, story: story(disk, place) })
}

/// The number of operations before a crash that a report lists.
const TOLD: usize = 40;

/// Lists the last operations before a state, and the parts of them that the crash leaves.
fn story(disk: &SimDisk, place: Option<Place>) -> String {
    let operations = disk.operations();
    let (end, left) = match place {
        None => (operations.len(), String::new()),
        Some(Place::Killed(position)) => (position, "the process ends\n".to_string()),
        Some(Place::Crash(id)) => {
            (id.position, disk.state(id).map_or_else(String::new, |state| state.describe()))
        }
    };
    let told = end.saturating_sub(TOLD)..end.min(operations.len());
    let lines = told.map(|number| format!("{number} {}\n", operations[number]));
    lines.collect::<String>() + &left
}

#[cfg(test)]
mod tests;
