//! Savepoints: moments to which a write set can be taken back.
//!
//! A savepoint makes a [`Mark`], so that no later operation replaces an earlier one, and begins a
//! *part* of the transaction, which ends when the savepoint is left or undone. The items that are
//! added later, all behind the earlier ones, are removed. An earlier item is saved before the part
//! changes it for the first time, and is put back as it was. So completing or undoing a part costs
//! as much as the part's own operations, however many came before.

#![forbid(unsafe_code)]

use super::item::{Mark, NONE, SavedItem, WriteItem};
use super::write_set::WriteSet;

/// A moment to which a write set can be taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Savepoint {
    mark: Mark,
    /// The begin of the part around this one, as in [`WriteSet::part_begin`].
    outer: u32,
    /// The numbers of items, saved items, operand words, updaters and checkpoints at that moment.
    items: usize,
    saved: usize,
    operands: usize,
    users: usize,
    checkpoints: usize,
}

impl Savepoint {
    /// Returns whether the operation with this number came after the savepoint.
    pub(crate) fn is_before(&self, operation: u32) -> bool {
        operation >= self.mark.0
    }
}

impl WriteSet {
    /// Begins a part of the transaction, and returns its savepoint.
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        let (operands, users, checkpoints) = self.operations.sizes();
        let mark = self.mark();
        let outer = std::mem::replace(&mut self.part_begin, mark.0);
        let (items, saved) = (self.items.len(), self.saved.len());
        Savepoint { mark, outer, items, saved, operands, users, checkpoints }
    }

    /// Ends a part of the transaction whose writes are kept.
    pub(crate) fn leave_part(&mut self, savepoint: &Savepoint) {
        self.part_begin = savepoint.outer;
    }

    /// Saves an item that is about to be changed, if the current part has not changed it yet.
    #[inline]
    pub(super) fn save_item(&mut self, index: usize) {
        let item = self.items[index];
        if item.last_op < self.part_begin {
            self.saved.push(SavedItem { index, item });
        }
    }

    /// Returns the items that were added after a savepoint.
    pub(crate) fn added_since(&self, savepoint: &Savepoint) -> &[WriteItem] {
        &self.items[savepoint.items..]
    }

    /// Returns whether one of an item's operations may fail in a transaction that runs no step.
    pub(crate) fn may_fail(&self, item: &WriteItem) -> bool {
        self.operations.may_fail_before_steps(item)
    }

    /// Returns the numbers of the items with an operation after the savepoint that may fail, except
    /// for those with a step, since only the commit runs it, and for the bases of late rows.
    pub(crate) fn fallible_since(&self, savepoint: &Savepoint) -> Vec<usize> {
        let is_fallible = |index: usize, after: Option<u32>| {
            let item = &self.items[index];
            !item.is_plain
                && self.operations.may_fail_after(item, after)
                && !self.operations.is_pending(item, Mark::NOW)
                && !self.is_base(item.at)
        };
        let mut fallible: Vec<usize> = self.saved[savepoint.saved..]
            .iter()
            .filter(|saved| saved.index < savepoint.items)
            .filter(|saved| is_fallible(saved.index, Some(saved.item.last_op)))
            .map(|saved| saved.index)
            .collect();
        // An item is saved anew by each part within this one.
        fallible.sort_unstable();
        fallible.dedup();
        let added = savepoint.items..self.items.len();
        fallible.extend(added.filter(|&index| is_fallible(index, None)));
        fallible
    }

    /// Removes everything that was staged after the savepoint, and ends the part.
    ///
    /// Marks that were made since stay valid: a scan that was made after the savepoint sees the
    /// rows as they were at the savepoint, since no later operation gets a number below its mark.
    pub(crate) fn undo(&mut self, savepoint: &Savepoint) {
        self.part_begin = savepoint.outer;
        self.places.truncate(&self.items, savepoint.items, WriteItem::address);
        for item in &self.items[savepoint.items..] {
            if item.needs_image {
                self.image_words -= item.at.payload_words();
            }
        }
        self.items.truncate(savepoint.items);
        // The oldest state of an item comes last.
        while self.saved.len() > savepoint.saved {
            let SavedItem { index, item } = self.saved.pop().expect("there are more");
            // An item that has been added since has been removed.
            if index < savepoint.items {
                self.put_back(index, item);
            }
        }
        let Savepoint { mark, operands, users, checkpoints, .. } = *savepoint;
        self.operations.truncate(mark.0.max(self.marked), (operands, users, checkpoints));
        if self.operations.is_empty() {
            self.clear_all();
        }
    }

    /// Gives an item the state that it had before later operations.
    fn put_back(&mut self, index: usize, item: WriteItem) {
        if self.items[index].needs_image && !item.needs_image {
            self.image_words -= item.at.payload_words();
        }
        self.operations.link(item.last_op, NONE);
        self.items[index] = item;
    }
}
