//! The operations of a write set, whichever units they belong to, and what they need.

#![forbid(unsafe_code)]

use super::write_set::{Mark, WriteItem};
use crate::error::Abort;
use crate::record::delta::{PutOff, Room};
use crate::record::{Op, UserUpdate, Words};

/// The number of no operation.
pub(super) const NONE: u32 = u32::MAX;

/// Operations in the order in which they were staged, with their operands.
#[derive(Default)]
pub(super) struct Operations {
    /// Each with its successor within its item.
    ops: Vec<(Op, u32)>,
    operands: Vec<u64>,
    users: Vec<UserUpdate>,
}

impl Operations {
    /// Whether there are none, nor anything that was to belong to one.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.operands.is_empty() && self.users.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.ops.clear();
        self.operands.clear();
        self.users.clear();
    }

    /// The number that the next operation will have.
    pub(super) fn next(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Appends an operation, returning its number.
    #[inline(always)]
    pub(super) fn push(&mut self, op: Op) -> u32 {
        self.ops.push((op, NONE));
        self.ops.len() as u32 - 1
    }

    /// Appends operations, each of an item of its own.
    #[inline(always)]
    pub(super) fn extend(&mut self, ops: impl Iterator<Item = Op>) {
        self.ops.extend(ops.map(|op| (op, NONE)));
    }

    /// Makes one operation the successor of another.
    pub(super) fn link(&mut self, number: u32, next: u32) {
        self.ops[number as usize].1 = next;
    }

    #[inline(always)]
    pub(super) fn push_operands(&mut self, words: impl Iterator<Item = u64>) -> u32 {
        let first = self.operands.len() as u32;
        self.operands.extend(words);
        first
    }

    pub(super) fn operands(&self, first: u32, count: usize) -> &[u64] {
        &self.operands[first as usize..][..count]
    }

    pub(super) fn push_user(&mut self, update: UserUpdate) -> u32 {
        self.users.push(update);
        self.users.len() as u32 - 1
    }

    pub(super) fn has_users(&self) -> bool {
        !self.users.is_empty()
    }

    /// The operations of an item in order, with their numbers.
    #[inline(always)]
    pub(super) fn of<'a>(&'a self, item: &WriteItem) -> impl Iterator<Item = (u32, &'a Op)> + use<'a> {
        let mut next = item.first_op;
        std::iter::from_fn(move || {
            let (op, after) = self.ops.get(next as usize)?;
            Some((std::mem::replace(&mut next, *after), op))
        })
    }

    /// Applies an item's operations that were staged before a mark to an image of its unit.
    ///
    /// # Errors
    /// The number of the operation that failed, and how.
    pub(super) fn apply(&self, item: &WriteItem, mark: Mark, image: &mut [u64]) -> Result<(), (u32, Abort)> {
        for (number, op) in self.of(item).take_while(|&(number, _)| number < mark.0) {
            self.apply_one(item, op, image).map_err(|abort| (number, abort))?;
        }
        Ok(())
    }

    /// How many words an item's operations take if they are put off; `None` if one of them may fail, or cannot be said in words.
    pub(super) fn delta_words(&self, item: &WriteItem) -> Option<usize> {
        self.of(item).try_fold(0, |words, (_, op)| {
            let more = if op.is_user() { self.user(op).words_put_off() } else { op.words_put_off() };
            more.map(|more| words + more)
        })
    }

    /// Writes an item's operations as what is put off.
    pub(super) fn write_delta(&self, item: &WriteItem, room: Room<'_>) {
        room.fill(self.of(item).map(|(_, op)| match op.is_user() {
            true => PutOff::User(self.user(op)),
            false => PutOff::BuiltIn(*op, self.operands(op.operand, op.operands())),
        }));
    }

    fn user(&self, op: &Op) -> &UserUpdate {
        &self.users[op.operand as usize]
    }

    fn apply_one(&self, item: &WriteItem, op: &Op, image: &mut [u64]) -> Result<(), Abort> {
        if op.is_user() {
            return self.user(op).apply(item.at.record(), image);
        }
        let word = usize::from(op.word);
        if op.is_plain() {
            let count = usize::from(op.words);
            image[word..word + count].copy_from_slice(self.operands(op.operand, count));
        } else {
            image[word] = op.compute(&self.operands[op.operand as usize..], image[word])?;
        }
        Ok(())
    }

    /// Replaces the operands of each of an item's operations by the word it makes of `base`.
    ///
    /// # Errors
    /// The number of the operation that failed, and how.
    pub(super) fn evaluate(&mut self, item: &WriteItem, base: Words<'_>) -> Result<(), (u32, Abort)> {
        let mut number = item.first_op;
        while let Some(&(op, next)) = self.ops.get(number as usize) {
            if !op.is_plain() {
                let operands = &mut self.operands[op.operand as usize..];
                operands[0] = op.compute(operands, base.get(usize::from(op.word))).map_err(|abort| (number, abort))?;
            }
            number = next;
        }
        Ok(())
    }
}
