//! A state of a scene: what is shared, how far each transaction is, and what only the judge knows.

use super::commit::Commit;
use super::list::List;
use super::memory::{Id, Ids, Look, Memory};
use super::reader::Reader;
use super::rule::{Mutant, Rule, Variant};
use super::scene::{Op, Scene};
use super::writer::Writer;

/// What all states of an exploration have in common.
#[derive(Clone, Copy, Debug)]
pub struct World<'s> {
    pub scene: &'s Scene,
    pub rule: Rule,
}

impl World<'_> {
    pub fn is(&self, mutant: Mutant) -> bool {
        self.rule.is(mutant)
    }

    pub fn varies(&self, variant: Variant) -> bool {
        self.rule.varies(variant)
    }

    /// Returns the operation that the reader comes to next, if there is one.
    pub fn op(&self, reader: &Reader) -> Option<Op> {
        self.scene.ops.get(usize::from(reader.op)).copied()
    }
}

/// What happened so far, for the judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    /// Transactions in the order of their last locks.
    pub locked: List<Id, 4>,
    pub ended: Ids,
    pub committed: Ids,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: Memory,
    pub reader: Reader,
    pub writers: [Writer; 3],
    pub past: Past,
}

impl State {
    pub fn new(scene: &Scene) -> Self {
        State { memory: Memory::new(scene), ..State::default() }
    }

    pub fn writer(&self, id: Id) -> &Writer {
        &self.writers[usize::from(id.0 - 1)]
    }

    pub fn writer_mut(&mut self, id: Id) -> &mut Writer {
        &mut self.writers[usize::from(id.0 - 1)]
    }

    pub fn commit(&self, id: Id) -> Commit {
        if id == Id::READER { self.reader.commit } else { self.writer(id).commit }
    }

    pub fn commit_mut(&mut self, id: Id) -> &mut Commit {
        if id == Id::READER { &mut self.reader.commit } else { &mut self.writer_mut(id).commit }
    }

    /// Returns what a transaction has looked at.
    pub fn looks(&self, id: Id) -> &[Look] {
        if id == Id::READER { &self.reader.looks } else { &self.writer(id).looks }
    }

    /// Ends a transaction, which holds nothing any more.
    pub fn leave(&mut self, id: Id, committed: bool) {
        self.past.ended.add(id);
        if committed {
            self.past.committed.add(id);
        }
        if id == Id::READER {
            self.memory.pin = None;
            self.reader.end();
        } else {
            self.writer_mut(id).end();
        }
    }

    /// Returns whether all transactions of a scene have ended.
    pub fn is_over(&self, scene: &Scene) -> bool {
        let mut writers = self.writers[..scene.writers.len()].iter();
        self.reader.has_ended() && writers.all(Writer::has_ended)
    }
}
