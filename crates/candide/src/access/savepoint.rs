//! Savepoints: moments to which a write set can be taken back.
//!
//! A savepoint makes a [`Mark`], so that no later operation replaces an earlier one. The items that
//! are added later, all behind the earlier ones, are removed. Of an earlier item that has later
//! operations, the list of operations ends again before the mark. Its flags may then cover more
//! than the remaining operations do, which only costs time. Its range of changed words is that of
//! the remaining operations: for a larger range, memory may have been refused.

#![forbid(unsafe_code)]

use super::item::{Mark, NONE, WriteItem};
use super::write_set::WriteSet;
use crate::sync::{Mutant, mutant};

/// A moment to which a write set can be taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Savepoint {
    mark: Mark,
    /// The numbers of items, operand words, updaters and checkpoints at that moment.
    items: usize,
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
    /// Returns a savepoint of the current moment.
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        let (operands, users, checkpoints) = self.operations.sizes();
        Savepoint { mark: self.mark(), items: self.items.len(), operands, users, checkpoints }
    }

    /// Returns the items that were added after a savepoint.
    pub(crate) fn added_since(&self, savepoint: &Savepoint) -> &[WriteItem] {
        &self.items[savepoint.items..]
    }

    /// Returns the numbers of the items with an operation after the savepoint that may fail.
    pub(crate) fn fallible_since(&self, savepoint: &Savepoint) -> Vec<usize> {
        let mut fallible = self.changed_since(savepoint);
        fallible.extend(savepoint.items..self.items.len());
        fallible.retain(|&index| {
            let item = &self.items[index];
            !item.is_plain && self.operations.may_fail_from(item, savepoint.mark)
        });
        fallible
    }

    /// Returns the numbers of the items from before the savepoint that have later operations.
    fn changed_since(&self, savepoint: &Savepoint) -> Vec<usize> {
        // If the items added since have all operations since, there is no need to look at others.
        let added = self.added_since(savepoint).iter();
        let of_added: usize = added.map(|item| self.operations.of(item).count()).sum();
        if savepoint.mark.0 as usize + of_added == self.operations.next() as usize {
            return Vec::new();
        }
        let is_changed = |&index: &usize| savepoint.is_before(self.items[index].last_op);
        (0..savepoint.items).filter(is_changed).collect()
    }

    /// Removes everything that was staged after the savepoint.
    ///
    /// Marks that were made since stay valid: a scan that was made after the savepoint sees the
    /// rows as they were at the savepoint, since no later operation gets a number below its mark.
    pub(crate) fn undo(&mut self, savepoint: &Savepoint) {
        for index in self.changed_since(savepoint) {
            self.shorten(index, savepoint.mark);
        }
        self.unindex(savepoint.items);
        for item in &self.items[savepoint.items..] {
            if item.needs_image {
                self.image_words -= item.at.payload_words();
            }
        }
        self.items.truncate(savepoint.items);
        let Savepoint { mark, operands, users, checkpoints, .. } = *savepoint;
        self.operations.truncate(mark.0.max(self.marked), (operands, users, checkpoints));
        if self.operations.is_empty() {
            self.clear_all();
        }
    }

    /// Ends an item's operations before `mark`, before which the item had operations.
    fn shorten(&mut self, index: usize, mark: Mark) {
        let item = &mut self.items[index];
        let (last, newest) = self.operations.end_before(item, mark);
        item.present = !self.operations.get(last).is_delete();
        item.image = newest;
        if !mutant(Mutant::UndoneOpKept) {
            self.operations.link(last, NONE);
            item.last_op = last;
            (item.first_word, item.end_word) = self.operations.changed_words_of(item);
        }
    }
}
