//! A copy of a database whose log is in a place, which follows no more.

#![forbid(unsafe_code)]

use super::applier::Applier;
use super::error::StandbyError;
use super::reached::Reached;
use super::{StandbyOptions, Step, step};
use crate::follower::Follower;
use crate::leader::Position;
use crate::place::Place;
use crate::tools;
use candide_log::format::Uuid;
use std::path::Path;
use std::sync::Arc;

/// What a restored database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The identity of the database whose log is in the place. The new one has its own.
    pub database: Uuid,
    /// The position up to which it has the log.
    pub position: Position,
}

/// Makes a database in the new directory `dir` that has all that `place` has, and closes it. The
/// place is not changed: its leader goes on, and the new database is another one, which any program
/// can open and write to.
///
/// # Errors
/// [`StandbyError`]: as [`Standby::follow`](super::Standby::follow); or the directory has a database
/// already. What was made in the directory stays.
pub fn restore(
    place: impl Place + 'static,
    dir: impl AsRef<Path>,
    options: StandbyOptions,
) -> Result<Restored, StandbyError> {
    let place: Arc<dyn Place> = Arc::new(place);
    let claimed = tools::claimed(Arc::clone(&place), options.patience)?;
    let (_, database) = claimed.ok_or(StandbyError::Nothing)?;
    let replica = options.builder.clone().follow(dir, options.log.clone())?;
    if replica.last_note().is_some() {
        let what = "the directory has a database already; restore into a new one";
        return Err(StandbyError::Stopped(what.to_owned()));
    }
    let mut applier = Applier::new(replica, database, None, Arc::<Reached>::default());
    let start = Position::default();
    let mut follower = Follower::new(Arc::clone(&place), database, start, options.patience);
    loop {
        match step(&mut follower, &mut applier, &place, &options) {
            Step::Met => {}
            Step::Nothing if applier.is_whole() => break,
            Step::Nothing => return Err(StandbyError::Nothing),
            Step::Trouble(error) => return Err(error.into()),
            Step::Over(error) => return Err(StandbyError::Stopped(error)),
        }
    }
    drop(applier.end()?);
    Ok(Restored { database, position: follower.position() })
}
