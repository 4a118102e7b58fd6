//! How a process comes to lead: claim, seal, read, close.
//!
//! 1. *Claim*: the process creates the claim of generation m, the newest claimed one plus 1.
//! 2. *Seal*: from m-1 down to a generation that was led, it creates a seal behind the floors. The
//!    leader of that generation had sealed and closed all earlier ones. From then on, no floor is
//!    added to them, and what is behind the newest floor is not deleted.
//! 3. *Read*: it reads from the snapshot of that floor on.
//! 4. *Close*: it creates an end at the first free place of each of these generations. What was
//!    there first belongs to the log.
//!
//! Then no earlier leader can acknowledge anything: the place that it needs next is taken. An end
//! or seal by the claimant of a later generation means that this process is superseded itself.

#![forbid(unsafe_code)]

use super::{Leader, Position};
use crate::access::{Access, Patience, Settled, now};
use crate::error::ReachError;
use crate::name::{NUMBER_MAX, Name};
use crate::object::{FloorNumber, Header, Kind, Link, Object};
use crate::place::{Place, PlaceError};
use crate::probe::probe;
use crate::receiver::{Receiver, behind, receive, receive_snapshot};
use candide_log::format::Uuid;
use std::sync::Arc;

/// What a process needs to claim a generation.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The identity of the database.
    pub database: Uuid,
    /// The random number of this opening, not 0, made by [`random_number`](crate::random_number).
    /// It is durable in the directory before the claim, beside the earlier numbers.
    pub number: u64,
    /// The numbers with which this directory has claimed since it has last led, that one included.
    /// When [`Leader::claim`] succeeds, they can be forgotten.
    pub earlier: &'a [u64],
    /// Whether to claim although another directory has: a promotion, or a take-over by the
    /// operator. Without it, a directory that comes back leads only if no other process has
    /// claimed.
    pub against_others: bool,
    /// The object up to which the receiver has the log, as a follower knows it. The log is read
    /// from there on if the newest floor is not behind it.
    pub position: Option<Position>,
    /// How often calls without an answer are repeated.
    pub patience: Patience,
}

impl Leader {
    /// Claims the generation behind the newest claimed one, ends all earlier ones, and gives
    /// `receiver` what they have: a snapshot, unless [`Claim::position`] is not older, and the
    /// blocks behind it.
    ///
    /// # Errors
    /// * [`ReachError::Led`]: another directory has claimed. Nothing was changed.
    /// * [`ReachError::Superseded`]: another process has claimed meanwhile.
    /// * [`ReachError::Place`]: the place fails or does not answer. The claim may exist or not, and
    ///   claiming again, with the same number or with a new one, is right.
    /// * [`ReachError::Damaged`], [`ReachError::OtherDatabase`], [`ReachError::Format`],
    ///   [`ReachError::Receiver`]: what was read cannot be used. The claim exists.
    ///
    /// After an error the receiver may have a part of a snapshot, or blocks behind the position.
    pub fn claim(
        place: Arc<dyn Place>,
        claim: &Claim<'_>,
        receiver: &mut dyn Receiver,
    ) -> Result<Leader, ReachError> {
        take_over(place, claim, receiver)
    }
}

/// Claims a generation and takes over.
fn take_over(
    place: Arc<dyn Place>,
    claim: &Claim<'_>,
    receiver: &mut dyn Receiver,
) -> Result<Leader, ReachError> {
    if claim.number == 0 {
        return Err(ReachError::Misuse("the number of a claim is 0; draw a random one".into()));
    }
    let access = Access { place, database: claim.database, patience: claim.patience };
    access.repeat(probe)?;
    let generation = create_claim(&access, claim)?;
    let taking = Taking { access: &access, generation };
    let floor = taking.seal()?;
    let place_of = |link: Link| (link.generation, link.place);
    let is_behind =
        |floor: &Object, own: Position| place_of(own.last) < place_of(floor.header.before);
    let position = match (claim.position, &floor) {
        (Some(own), floor) if !floor.as_ref().is_some_and(|floor| is_behind(floor, own)) => own,
        (_, Some(floor)) => Position::behind_block(receive_snapshot(&access, floor, receiver)?),
        (_, None) => Position::default(),
    };
    let last = taking.close(position, receiver)?;
    let floor = floor.map_or_else(FloorNumber::default, |floor| FloorNumber {
        generation: floor.header.generation,
        number: floor.header.place,
    });
    Ok(Leader::new(access, claim.number, generation, last, floor))
}

/// Creates the claim of the generation behind the newest claimed one.
fn create_claim(access: &Access, claim: &Claim<'_>) -> Result<u64, ReachError> {
    // The same bytes are offered again for the same name.
    let time = now();
    let known = claim.position.map_or(0, Position::claimed);
    loop {
        let newest = access.newest_claim_since(known)?;
        if newest.is_none() && known > 0 {
            // A folder in which nothing is mounted is an empty place.
            let what = format!("no claim can be read, and generation {known} has been claimed");
            return Err(PlaceError::Unknown(what).into());
        }
        let number = newest.as_ref().map(|newest| newest.header.number);
        let is_own = number.is_none_or(|n| n == claim.number || claim.earlier.contains(&n));
        if let Some(newest) = newest.as_ref().filter(|_| !is_own && !claim.against_others) {
            return Err(led(access, newest)?);
        }
        let generation = newest.map_or(0, |newest| newest.header.generation) + 1;
        if generation > NUMBER_MAX {
            return Err(ReachError::Misuse("there are no further generations".into()));
        }
        let header = Header {
            number: claim.number,
            time,
            ..Header::new(Kind::Claim, access.database, generation, 0)
        };
        match access.create(Name::Claim(generation), &header.encode(&[], &[]))? {
            Settled::Own => return Ok(generation),
            // An earlier request of this opening that arrived late has the same number.
            Settled::Other(found) if found.header.number == claim.number => return Ok(generation),
            Settled::Other(_) => {}
        }
    }
}

/// Describes the process that has the newest claim.
pub(crate) fn led(access: &Access, newest: &Object) -> Result<ReachError, ReachError> {
    let generation = newest.header.generation;
    let last = access.last_logged(generation)?;
    Ok(ReachError::Led {
        generation,
        since: newest.header.time,
        last: last.map(|last| (last.header.place, last.header.time)),
    })
}

/// A process between its claim and its lead.
struct Taking<'a> {
    access: &'a Access,
    generation: u64,
}

impl Taking<'_> {
    /// Seals the floors of the generations before. Returns the newest floor.
    fn seal(&self) -> Result<Option<Object>, ReachError> {
        for generation in (1..self.generation).rev() {
            if let Some(floor) = self.seal_one(generation)? {
                return Ok(Some(floor));
            }
            // An end says nothing about the claimant of its generation.
            let first = self.access.read(Name::Log(generation, 1))?;
            if let Some(first) = first.filter(|first| first.header.kind != Kind::End) {
                let FloorNumber { generation, number } = first.header.floor;
                return match generation {
                    0 => Ok(None),
                    _ => self.access.floor(generation, number).map(Some),
                };
            }
        }
        Ok(None)
    }

    /// Seals the floors of a generation. Returns its newest one.
    fn seal_one(&self, generation: u64) -> Result<Option<Object>, ReachError> {
        let header = Header {
            number: self.generation,
            time: now(),
            ..Header::new(Kind::Seal, self.access.database, generation, 1)
        };
        loop {
            let floors = self.access.floors(generation)?;
            if let Some(seal) = floors.seal {
                self.check_creator(&seal)?;
                return Ok(floors.newest);
            }
            let seal = Header { place: floors.next, ..header };
            let name = Name::Floor(generation, floors.next);
            match self.access.create(name, &seal.encode(&[], &[]))? {
                Settled::Own => return Ok(floors.newest),
                // A floor that came first, or the seal of another claimant: seen in the next round.
                Settled::Other(_) => {}
            }
        }
    }

    /// Reads the logs of the generations before from a position on, and ends each. Returns the last
    /// end.
    fn close(&self, from: Position, receiver: &mut dyn Receiver) -> Result<Link, ReachError> {
        let Position { mut last, mut is_end } = from;
        loop {
            let name = behind(last, is_end);
            let Name::Log(generation, place) = name else { unreachable!("objects of a log") };
            if generation >= self.generation {
                return Ok(last);
            }
            let object = match self.access.read(name)? {
                Some(object) => object,
                None => {
                    let end = Header {
                        before: last,
                        number: self.generation,
                        time: now(),
                        ..Header::new(Kind::End, self.access.database, generation, place)
                    };
                    let bytes = end.encode(&[], &[]);
                    match self.access.create(name, &bytes)? {
                        Settled::Own => self.access.check(name, bytes)?,
                        Settled::Other(object) => object,
                    }
                }
            };
            if object.header.kind == Kind::End {
                self.check_creator(&object)?;
            }
            match receive(self.access, &object, last, receiver) {
                Err(damage @ ReachError::Damaged { .. }) => {
                    // The leader of a later generation may have deleted what this process has
                    // ended.
                    self.check_newest()?;
                    return Err(damage);
                }
                received => received?,
            }
            (last, is_end) = (object.link(), object.header.kind == Kind::End);
        }
    }

    /// Returns an error if a seal or an end is by the claimant of a later generation.
    fn check_creator(&self, object: &Object) -> Result<(), ReachError> {
        let by = object.header.number;
        if by > self.generation {
            return Err(ReachError::Superseded { generation: self.generation, by });
        }
        Ok(())
    }

    /// Returns an error if a later generation was claimed.
    fn check_newest(&self) -> Result<(), ReachError> {
        match self.access.newest_claim()? {
            Some(newest) if newest.header.generation > self.generation => {
                let by = newest.header.generation;
                Err(ReachError::Superseded { generation: self.generation, by })
            }
            _ => Ok(()),
        }
    }
}
