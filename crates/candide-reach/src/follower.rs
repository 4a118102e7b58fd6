//! A process that reads the log as it grows.
//!
//! A follower reads one object after another, and believes each only if it names the one before by
//! its place and CRC. What comes behind an end has to name that end. If it does not, the end is
//! that of a process that was superseded, at a place whose block was deleted. So it was below a
//! floor, and the follower begins again from the newest one. It does so, too, if what it needs is
//! not there and a newer floor is.

#![forbid(unsafe_code)]

use crate::access::{Access, Patience};
use crate::error::ReachError;
use crate::leader::Position;
use crate::object::{Header, Kind, Link, Object};
use crate::place::Place;
use crate::receiver::{Receiver, behind, receive, receive_snapshot};
use candide_log::format::Uuid;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The longest pause before another search for a snapshot.
const PAUSE: Duration = Duration::from_millis(50);

/// What one step of a follower has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A block.
    Block,
    /// The end of a generation.
    End,
    /// A snapshot of a floor or a restart, with which the receiver has begun anew.
    Snapshot,
    /// Nothing: the log ends here for now.
    Nothing,
}

/// A reader of a database's log, which gives blocks and snapshots to a receiver.
#[derive(Debug)]
pub struct Follower {
    access: Access,
    position: Position,
    /// Whether only a snapshot makes the receiver whole: it has a part of one, for example.
    is_torn: bool,
    /// Whether what comes behind the position in the log does not belong there.
    is_astray: bool,
    /// The last object that the receiver had before that snapshot: no older one makes it whole.
    whole: Link,
    /// The number of steps in a row that have met nothing.
    misses: u64,
    /// The time of the newest object, in milliseconds since 1970 by its leader's clock.
    time: u64,
}

impl Follower {
    /// Returns a follower behind `position`, up to which the receiver has the log; with the default
    /// position it begins with the newest snapshot, or the first block if there is none.
    pub fn new(
        place: Arc<dyn Place>,
        database: Uuid,
        position: Position,
        patience: Patience,
    ) -> Follower {
        let access = Access { place, database, patience };
        let (is_torn, is_astray) = (false, false);
        let whole = position.last;
        Follower { access, position, is_torn, is_astray, whole, misses: 0, time: 0 }
    }

    /// Has the next steps begin anew with a snapshot that is newer than the position: nothing else
    /// makes the receiver whole.
    pub(crate) fn leave_log(&mut self) {
        if !self.is_torn {
            (self.is_torn, self.whole) = (true, self.position.last);
        }
        self.position = Position::default();
    }

    /// Returns whether only a newer snapshot makes the receiver whole.
    #[cfg(feature = "engine")]
    pub(crate) fn has_left_log(&self) -> bool {
        self.is_torn
    }

    /// Returns the position up to which the receiver has the log; the default one if it has nothing
    /// whole. A process that is promoted gives it to its claim.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns when the newest object was made, in milliseconds since 1970 by the clock of its
    /// leader; 0 before the first one.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Reads the next object, if there is one, and gives it to the receiver.
    ///
    /// When nothing is there, it looks for a newer snapshot, too: at the first such step in a row,
    /// and at the second, fourth, eighth and so on.
    ///
    /// # Errors
    /// * [`ReachError::Place`]: the place fails or does not answer.
    /// * [`ReachError::Damaged`], [`ReachError::OtherDatabase`], [`ReachError::Format`]: what was
    ///   read cannot be used. The same step may succeed later if the leader makes a new snapshot.
    /// * [`ReachError::Receiver`]: the receiver has refused something.
    ///
    /// After an error within a snapshot, the next step begins with the newest one again. After any
    /// other error the position is as before.
    pub fn step(&mut self, receiver: &mut dyn Receiver) -> Result<Progress, ReachError> {
        if self.is_torn {
            return self.begin_anew(receiver);
        }
        let Position { last, is_end } = self.position;
        let object = self.access.read(behind(last, is_end))?;
        // Otherwise the end behind which this is read is not the one of the log.
        let belongs = |object: &Object| !is_end || object.header.before == last;
        let was_astray = self.is_astray;
        self.is_astray = object.as_ref().is_some_and(|object| !belongs(object));
        let Some(object) = object.filter(belongs) else {
            self.misses = if self.is_astray && !was_astray { 1 } else { self.misses + 1 };
            if !self.misses.is_power_of_two() {
                return Ok(Progress::Nothing);
            }
            return self.begin_anew(receiver);
        };
        if let Err(error) = receive(&self.access, &object, last, receiver) {
            // A late request may have created a restart again whose parts are covered and gone.
            let is_gone = object.header.kind == Kind::Restart;
            if is_gone && matches!(error, ReachError::Damaged { .. }) {
                let begun = self.begin_anew(receiver)?;
                if begun == Progress::Snapshot {
                    return Ok(begun);
                }
            }
            return Err(error);
        }
        let is_end = object.header.kind == Kind::End;
        self.position = Position { last: object.link(), is_end };
        self.met(&object);
        Ok(match object.header.kind {
            Kind::End => Progress::End,
            Kind::Restart => Progress::Snapshot,
            _ => Progress::Block,
        })
    }

    /// Waits until the next object is there, at most for `timeout`. Returns whether it is. If only
    /// a newer snapshot is of use, it pauses for a moment.
    ///
    /// # Errors
    /// [`ReachError::Place`].
    pub fn wait(&self, timeout: Duration) -> Result<bool, ReachError> {
        if self.is_torn || self.is_astray {
            thread::sleep(timeout.min(PAUSE));
            return Ok(false);
        }
        let name = behind(self.position.last, self.position.is_end).to_string();
        self.access.repeat(|place| place.wait(&name, timeout))
    }

    /// Gives the receiver the newest snapshot, if there is one that is newer than the position.
    fn begin_anew(&mut self, receiver: &mut dyn Receiver) -> Result<Progress, ReachError> {
        let Some(floor) = self.newest_floor()? else { return Ok(Progress::Nothing) };
        self.leave_log();
        let last = receive_snapshot(&self.access, &floor, receiver)?;
        (self.is_torn, self.is_astray) = (false, false);
        self.position = Position::behind_block(last);
        self.met(&floor);
        Ok(Progress::Snapshot)
    }

    /// Returns the newest floor whose snapshot is newer than what the receiver has, or had.
    fn newest_floor(&self) -> Result<Option<Object>, ReachError> {
        let last = if self.is_torn { self.whole } else { self.position.last };
        let Some(newest) = self.access.newest_claim()? else { return Ok(None) };
        let oldest = last.generation.max(1);
        for generation in (oldest..=newest.header.generation).rev() {
            if let Some(floor) = self.access.floors(generation)?.newest {
                let Header { before, .. } = floor.header;
                let is_newer = (before.generation, before.place) > (last.generation, last.place);
                return Ok(Some(floor).filter(|_| is_newer));
            }
        }
        Ok(None)
    }

    fn met(&mut self, object: &Object) {
        self.misses = 0;
        self.time = object.header.time;
    }
}
