//! The sums over all rows after the last objects, to be compared with those of the leader.

#![forbid(unsafe_code)]

use crate::object::{FloorNumber, Header, Link, Object};
use std::collections::VecDeque;

/// The number of objects whose sums are kept. A snapshot is complete before so many later objects
/// have come, or it is not compared.
const KEPT: usize = 1 << 14;

/// The sums after the last objects, oldest first, and the floors that blocks have named.
#[derive(Debug, Default)]
pub(super) struct Sums {
    after: VecDeque<(Link, u64)>,
    known: FloorNumber,
    to_compare: Option<FloorNumber>,
}

impl Sums {
    /// Returns the sums of a state that has begun with the snapshot of a floor.
    pub(super) fn from(floor: &Header) -> Sums {
        let known = FloorNumber { generation: floor.generation, number: floor.place };
        Sums { known, ..Sums::default() }
    }

    /// Notes the sum after an object.
    pub(super) fn note(&mut self, last: Link, sum: u64) {
        if self.after.len() == KEPT {
            self.after.pop_front();
        }
        self.after.push_back((last, sum));
    }

    /// Notes that a block has named a floor.
    pub(super) fn meet(&mut self, floor: FloorNumber) {
        if floor > self.known {
            self.known = floor;
            self.to_compare = Some(floor);
        }
    }

    pub(super) fn take_floor(&mut self) -> Option<FloorNumber> {
        self.to_compare.take()
    }

    /// Compares a floor with the sum after the object that it names, if it is known.
    pub(super) fn compare(&self, floor: &Object) -> Option<String> {
        let at = |(last, _): &&(Link, u64)| *last == floor.header.before;
        let (_, sum) = self.after.iter().rev().find(at)?;
        difference(floor, *sum)
    }
}

/// Returns the difference between what a floor says and the sum here; `None` if there is none, or
/// the floor says nothing.
pub(super) fn difference(floor: &Object, sum: u64) -> Option<String> {
    let leaders = u64::from_le_bytes(floor.payload().try_into().ok()?);
    let Link { generation, place, .. } = floor.header.before;
    (leaders != sum).then(|| {
        format!(
            "the rows after object {place} of generation {generation} differ from the leader's: \
             their sum is {sum:016x}, and the leader's {leaders:016x}; follow with an empty \
             directory, and verify the leader's files"
        )
    })
}
