//! Looking at a place, without a claim and without a change.

#![forbid(unsafe_code)]

mod snapshot;

use crate::access::{Access, Patience};
use crate::error::ReachError;
use crate::follower::{Follower, Progress};
use crate::leader::Position;
use crate::name::Name;
use crate::object::{Kind, Link, Object};
use crate::place::{Place, PlaceError};
use candide_log::format::Uuid;
use std::sync::Arc;

/// A generation, as a list shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// The number.
    pub number: u64,
    /// The random number of its claim, which its claimant's directory has, too.
    pub claimant: u64,
    /// When it was claimed, in milliseconds since 1970 by its claimant's clock.
    pub claimed: u64,
    /// The last object of its log that can be read: its place, whether it is an end, and when it
    /// was made.
    pub last: Option<(u64, bool, u64)>,
    /// The newest floor: its number, and the place up to which its snapshot contains the log.
    pub floor: Option<(u64, u64)>,
}

/// What is in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The identity of the database.
    pub database: Uuid,
    /// The newest generations, newest first. The first one's claimant leads, or will.
    pub generations: Vec<Generation>,
}

/// Returns what is known of the newest `most` generations; `None` for a place without a claim.
///
/// # Errors
/// [`ReachError::Place`]; [`ReachError::Damaged`] and others if a claim, a floor or the last object
/// of a log cannot be used.
pub fn status(
    place: Arc<dyn Place>,
    most: usize,
    patience: Patience,
) -> Result<Option<Status>, ReachError> {
    let Some(access) = access(place, patience)? else { return Ok(None) };
    let Some(newest) = access.newest_claim()? else { return Ok(None) };
    let numbers = (1..=newest.header.generation).rev().take(most);
    let generations =
        numbers.map(|number| generation(&access, number)).collect::<Result<_, _>>()?;
    Ok(Some(Status { database: access.database, generations }))
}

/// Returns the access to the objects of the database whose claims are in a place.
fn access(place: Arc<dyn Place>, patience: Patience) -> Result<Option<Access>, ReachError> {
    let claimed = claimed(Arc::clone(&place), patience)?;
    Ok(claimed.map(|(_, database)| Access { place, database, patience }))
}

/// Returns a claim that is in a place, and the identity of its database; `None` without one.
pub(crate) fn claimed(
    place: Arc<dyn Place>,
    patience: Patience,
) -> Result<Option<(Name, Uuid)>, ReachError> {
    let access = Access { place, database: Uuid::default(), patience };
    let listed = access.list(&Name::claims())?.pop();
    // An old list may lack all of them.
    let claim = listed.unwrap_or(Name::Claim(1));
    let bytes = access.repeat(|place| place.read(&claim.to_string()))?;
    let Some(bytes) = bytes else {
        return match listed {
            Some(_) => Err(PlaceError::Unknown(format!("{claim} cannot be read yet")).into()),
            None => Ok(None),
        };
    };
    let object = Object::decode(bytes).map_err(|error| ReachError::malformed(claim, &error))?;
    Ok(Some((claim, object.header.database)))
}

fn generation(access: &Access, number: u64) -> Result<Generation, ReachError> {
    let claim = access.read_existing(Name::Claim(number))?;
    let last = access.last_logged(number)?;
    let floor = access.floors(number)?.newest;
    Ok(Generation {
        number,
        claimant: claim.header.number,
        claimed: claim.header.time,
        last: last.map(|last| (last.header.place, last.header.kind == Kind::End, last.header.time)),
        floor: floor.map(|floor| (floor.header.place, floor.header.before.place)),
    })
}

/// What a check of a place has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// The number of objects that were read, each with its checksum.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last object of the log; [`Link::NONE`] if there is none.
    pub last: Link,
    /// The object that is wrong, and what is wrong with it, for each fault.
    pub faults: Vec<(String, String)>,
}

/// Reads every object of a place, and follows the log from the oldest block or the newest snapshot
/// to its end: every checksum, every link, every part. A leader may go on meanwhile. Blocks behind
/// a gap are no fault if the missing one may have been under way when they were made. The rows of
/// the newest snapshot are compared with the sum of its floor, if that has one.
///
/// What the commit records of blocks mean is not checked: a
/// [`Receiver`](crate::Receiver) does that.
///
/// # Errors
/// [`ReachError::Place`]: the place fails, so it is not known what it has.
pub fn verify(place: Arc<dyn Place>, patience: Patience) -> Result<Verified, ReachError> {
    let mut verified = Verified::default();
    let access = match access(Arc::clone(&place), patience) {
        Ok(Some(access)) => access,
        Ok(None) => return Ok(verified),
        Err(error) => return note(error, &mut verified).map(|()| verified),
    };
    // What is listed first is either gone or not behind the end that is found afterwards.
    let names = access.list("")?;
    for name in &names {
        match access.read(*name) {
            Ok(Some(object)) => {
                verified.objects += 1;
                verified.bytes += object.size() as u64;
            }
            Ok(None) => {}
            Err(error) => note(error, &mut verified)?,
        }
    }
    let generations = names.iter().filter_map(|name| match name {
        Name::Claim(generation) => Some(*generation),
        _ => None,
    });
    if let Err(error) = snapshot::check(&access, generations.max().unwrap_or(0)) {
        note(error, &mut verified)?;
    }
    let mut follower = Follower::new(place, access.database, Position::default(), patience);
    loop {
        match follower.step(&mut ()) {
            Ok(Progress::Nothing) => break,
            Ok(_) => {}
            Err(error) => {
                note(error, &mut verified)?;
                break;
            }
        }
    }
    let Position { last, is_end } = follower.position();
    verified.last = last;
    for name in names {
        let Name::Log(generation, place) = name else { continue };
        let is_behind = (generation, place) > (last.generation, last.place);
        // A leader has, or has left, under way what does not say that the missing one was there.
        let is_next = (last == Link::NONE || is_end) && generation == last.generation + 1;
        let is_known = |object: Object| match generation == last.generation {
            true => !is_end && object.known_before() > last.place,
            false => !is_next || object.known_before() > 0,
        };
        if is_behind && access.read(name).is_ok_and(|object| object.is_some_and(is_known)) {
            let (place, generation) = (last.place, last.generation);
            let what =
                format!("the log ends before it, at place {place} of generation {generation}");
            verified.faults.push((name.to_string(), what));
        }
    }
    // The walk meets damage that the reads have met, too.
    verified.faults.sort();
    verified.faults.dedup();
    Ok(verified)
}

/// Adds a fault of an object; returns an error of the place.
fn note(error: ReachError, verified: &mut Verified) -> Result<(), ReachError> {
    let text = error.to_string();
    match error {
        ReachError::Damaged { name, what } => verified.faults.push((name, what)),
        ReachError::OtherDatabase { name, .. } | ReachError::Format { name, .. } => {
            verified.faults.push((name, text));
        }
        error => return Err(error),
    }
    Ok(())
}
