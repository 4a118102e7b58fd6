//! What takes in the blocks and snapshots of a log.

#![forbid(unsafe_code)]

use crate::access::{Access, check_link};
use crate::error::ReachError;
use crate::name::{Name, PART_MAX};
use crate::object::{Header, Kind, Link, Object};
use std::error::Error;

/// What a receiver refuses with.
pub type Refusal = Box<dyn Error + Send + Sync>;

/// A state that blocks and snapshots are applied to, in the order of the log.
pub trait Receiver {
    /// Begins with a snapshot: forgets all that was received. Parts follow, then the blocks behind
    /// the snapshot. The header of `floor` says up to which object the snapshot contains the log.
    ///
    /// # Errors
    /// The receiver cannot go on.
    fn begin(&mut self, floor: &Object) -> Result<(), Refusal>;

    /// Takes the next part of the snapshot.
    ///
    /// # Errors
    /// The receiver cannot go on.
    fn part(&mut self, part: &Object) -> Result<(), Refusal>;

    /// Completes the snapshot: all its parts were received.
    ///
    /// # Errors
    /// The receiver cannot go on.
    fn complete(&mut self) -> Result<(), Refusal>;

    /// Takes the next block of the log.
    ///
    /// # Errors
    /// The receiver cannot go on.
    fn block(&mut self, block: &Object) -> Result<(), Refusal>;
}

/// Takes everything and keeps nothing, for callers to which the order of the objects is enough.
impl Receiver for () {
    fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }

    fn part(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Gives a receiver the snapshot that a floor names. Returns the object behind which the log goes
/// on.
///
/// # Errors
/// A part is missing or damaged, or is not the one behind the part before.
pub(crate) fn receive_snapshot(
    access: &Access,
    floor: &Object,
    receiver: &mut dyn Receiver,
) -> Result<Link, ReachError> {
    let Header { generation, place, before, .. } = floor.header;
    let name = Name::Floor(generation, place);
    if before.generation != generation {
        let what = format!("its snapshot is one of generation {}", before.generation);
        return Err(ReachError::damaged(name, what));
    }
    receive_parts(access, floor, name, receiver)?;
    Ok(before)
}

/// Gives a receiver the snapshot of a floor, or of a restart as a floor, which is called `name`.
fn receive_parts(
    access: &Access,
    floor: &Object,
    name: Name,
    receiver: &mut dyn Receiver,
) -> Result<(), ReachError> {
    let Header { before, part: parts, number: last_crc, .. } = floor.header;
    receiver.begin(floor).map_err(ReachError::Receiver)?;
    let mut last = before;
    for number in 0..parts.min(PART_MAX) {
        let name = Name::Snapshot(before.generation, before.place, number);
        let part = access.read_existing(name)?;
        // The CRC of a restart was not known when its first part was made.
        let is_first_of_restart = number == 0 && part.header.before == Link { crc: 0, ..before };
        if part.header.before != last && !is_first_of_restart {
            return Err(ReachError::damaged(name, "it does not belong behind the part before"));
        }
        last = Link { crc: part.crc, ..before };
        receiver.part(&part).map_err(ReachError::Receiver)?;
    }
    if u64::from(last.crc) != last_crc {
        return Err(ReachError::damaged(name, "it names another last part than there is"));
    }
    receiver.complete().map_err(ReachError::Receiver)
}

/// Gives a receiver an object of a log that comes behind another: a block, or the snapshot of a
/// restart. After an error within a snapshot, the same object makes the receiver whole again.
///
/// # Errors
/// It does not name the other one, the receiver refuses it, or a part is missing or damaged.
pub(crate) fn receive(
    access: &Access,
    object: &Object,
    before: Link,
    receiver: &mut dyn Receiver,
) -> Result<(), ReachError> {
    check_link(object, before)?;
    let Header { kind, generation, place, .. } = object.header;
    match kind {
        Kind::Block => receiver.block(object).map_err(ReachError::Receiver),
        Kind::Restart => {
            receive_parts(access, &object.as_floor(), Name::Log(generation, place), receiver)
        }
        _ => Ok(()),
    }
}

/// Returns the name of the object that comes behind another one, which is an end or not.
pub(crate) fn behind(last: Link, is_end: bool) -> Name {
    match last {
        Link::NONE => Name::Log(1, 1),
        Link { generation, .. } if is_end => Name::Log(generation + 1, 1),
        Link { generation, place, .. } => Name::Log(generation, place + 1),
    }
}
