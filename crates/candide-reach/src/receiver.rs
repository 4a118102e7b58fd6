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
    /// the snapshot.
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
    let Header { generation, before, part: parts, number, .. } = floor.header;
    if before.generation != generation {
        let name = Name::Floor(generation, floor.header.place);
        let what = format!("its snapshot is one of generation {}", before.generation);
        return Err(ReachError::damaged(name, what));
    }
    receiver.begin(floor).map_err(ReachError::Receiver)?;
    let mut last = before;
    for number in 0..parts.min(PART_MAX) {
        let part = access.read_existing(Name::Snapshot(generation, before.place, number))?;
        if part.header.before != last {
            let name = Name::Snapshot(generation, before.place, number);
            return Err(ReachError::damaged(name, "it does not belong behind the part before"));
        }
        last = Link { crc: part.crc, ..before };
        receiver.part(&part).map_err(ReachError::Receiver)?;
    }
    if u64::from(last.crc) != number {
        let name = Name::Floor(generation, floor.header.place);
        return Err(ReachError::damaged(name, "it names another last part than there is"));
    }
    receiver.complete().map_err(ReachError::Receiver)?;
    Ok(before)
}

/// Gives a receiver an object of a log that comes behind another, if it is a block.
///
/// # Errors
/// It does not name the other one, or the receiver refuses it.
pub(crate) fn receive(
    object: &Object,
    before: Link,
    receiver: &mut dyn Receiver,
) -> Result<(), ReachError> {
    check_link(object, before)?;
    if object.header.kind == Kind::Block {
        receiver.block(object).map_err(ReachError::Receiver)?;
    }
    Ok(())
}

/// Returns the name of the object that comes behind another one, which is an end or not.
pub(crate) fn behind(last: Link, is_end: bool) -> Name {
    match last {
        Link::NONE => Name::Log(1, 1),
        Link { generation, .. } if is_end => Name::Log(generation + 1, 1),
        Link { generation, place, .. } => Name::Log(generation, place + 1),
    }
}
