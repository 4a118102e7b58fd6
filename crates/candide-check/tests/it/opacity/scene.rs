//! A scene: what the reader does, what writers do beside it, and what there is at first.

use super::memory::{At, Epoch, Id, KEY};

/// An operation of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads these cells and shows them together.
    Read(&'static [At]),
    /// Asks whether the row of `KEY` is there, as a blind write does.
    Peek,
    /// Reads for update: locks the cell until the attempt ends.
    Hold(At),
    /// Stages a write, which touches nothing that is shared.
    Stage(At),
    /// Inserts the row of `KEY`, if it is not there, and says whether it did.
    Insert,
}

/// What a writer does: holds, reads, links, commits.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub holds: Option<At>,
    pub reads: &'static [At],
    pub writes: &'static [At],
    /// Whether its write of `KEY` deletes the row.
    pub deletes: bool,
    /// Whether it may abort when it has all its locks.
    pub may_abort: bool,
}

/// Whether `KEY` is found through the index, and what is there at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A row like the others, found without the index.
    Row,
    /// No record.
    Missing,
    /// A record with a row.
    Present,
}

#[derive(Clone, Debug)]
pub struct Scene {
    pub name: &'static str,
    pub ops: Vec<Op>,
    pub writers: Vec<Plan>,
    /// The epoch at first; versions that are there at first are of epoch 0.
    pub epoch: Epoch,
    pub ticks: u8,
    pub key: Key,
    /// Whether records are buried.
    pub buries: bool,
}

impl Scene {
    pub fn new(name: &'static str, ops: &[Op], writers: &[Plan]) -> Self {
        let (ops, writers) = (ops.to_vec(), writers.to_vec());
        Scene { name, ops, writers, epoch: 1, ticks: 2, key: Key::Row, buries: false }
    }

    /// Returns a scene in which what is there at first is of the epoch in which the reader begins.
    pub fn hot(self) -> Self {
        Scene { epoch: 0, ..self }
    }

    pub fn with_ticks(self, ticks: u8) -> Self {
        Scene { ticks, ..self }
    }

    pub fn with_key(self, key: Key) -> Self {
        Scene { key, ..self }
    }

    /// Returns a scene with a record that is buried when its row is deleted.
    pub fn burying(self) -> Self {
        Scene { key: Key::Present, buries: true, ..self }
    }

    /// Returns whether the row of a cell is there in the version of a transaction.
    pub fn has_row(&self, at: At, by: Id) -> bool {
        match by {
            _ if at != KEY => true,
            Id::FIRST => self.key != Key::Missing,
            Id::READER => true,
            Id(number) => !self.writers[usize::from(number - 1)].deletes,
        }
    }

    /// Returns whether a cell is found through the index.
    pub fn is_indexed(&self, at: At) -> bool {
        at == KEY && self.key != Key::Row
    }
}

impl Plan {
    const NONE: Plan =
        Plan { holds: None, reads: &[], writes: &[], deletes: false, may_abort: false };

    /// Returns a writer of cells in this order.
    pub const fn of(writes: &'static [At]) -> Self {
        Plan { writes, ..Plan::NONE }
    }

    /// Returns one that also reads.
    pub const fn reading(self, reads: &'static [At]) -> Self {
        Plan { reads, ..self }
    }

    /// Returns one that holds a cell from its begin.
    pub const fn holding(self, at: At) -> Self {
        Plan { holds: Some(at), ..self }
    }

    /// Returns one that deletes the row of `KEY`.
    pub const fn deleting(self) -> Self {
        Plan { deletes: true, ..self }
    }

    /// Returns one that may abort when it has all its locks.
    pub const fn wavering(self) -> Self {
        Plan { may_abort: true, ..self }
    }
}
