//! The write set: which units a transaction will change, and how.
//!
//! An item is one unit. It says what the row's existence must be when the unit is locked (its *expectation*), what it
//! will be afterwards, and which operations to apply in between. Operands lie in one arena. Everything is kept from
//! attempt to attempt and cleared, so that a steady transaction allocates nothing.
//!
//! Operations are numbered in the order of the program. A [`Mark`] is a number: what a scan sees of the set is what
//! had been staged when the scan was made.

#![forbid(unsafe_code)]

use crate::error::Abort;
use crate::record::{CellAt, Code, Op, UserUpdate, Words};
use crate::sync::{AtomicU64, Ordering};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a write means for the row's existence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// The row is there and stays.
    Update,
    /// The row is not there and comes.
    Insert,
    /// Whether or not the row is there, it is afterwards.
    Put,
    /// The row is there and goes.
    Delete,
}

impl Intent {
    /// What must be true of the row before; `None` if it does not matter.
    fn expects(self) -> Option<bool> {
        match self {
            Intent::Update | Intent::Delete => Some(true),
            Intent::Insert => Some(false),
            Intent::Put => None,
        }
    }
}

/// A moment in the life of a write set: everything staged before it, nothing staged after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u32);

impl Mark {
    /// Behind everything staged so far.
    pub(crate) const NOW: Mark = Mark(NONE);
}

/// One unit that will change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteItem {
    pub(crate) at: CellAt,
    /// Whether the row must exist before; `None` if it does not matter.
    pub(crate) expects: Option<bool>,
    /// Whether the row exists afterwards.
    pub(crate) present: bool,
    /// Set by a commit that left the unit as it was: the row came and went within the transaction.
    pub(crate) untouched: bool,
    /// For the protocol: what the cell said when it was locked, the pending version, ….
    pub(crate) note: u64,
    first_op: u32,
    last_op: u32,
    /// Where the image of the unit lies in the arena, if its operations have to work on one.
    image: u32,
}

const NONE: u32 = u32::MAX;

impl WriteItem {
    /// Whether its expectation holds for a row that `is_present`.
    #[inline]
    pub(crate) fn accepts(&self, is_present: bool) -> bool {
        self.expects.is_none_or(|expected| expected == is_present)
    }
}

/// Why the operations of a write set could not be evaluated.
pub(crate) enum Failure {
    /// A guard did not hold, or a number left its range.
    Outcome(Abort),
    /// A user's updater panicked.
    Panic(Box<dyn Any + Send>),
}

/// The write set of a transaction.
#[derive(Default)]
pub struct WriteSet {
    items: Vec<WriteItem>,
    /// In the order in which they were staged, each with its successor within its item.
    ops: Vec<(Op, u32)>,
    arena: Vec<u64>,
    /// As large as the largest image, so that evaluating one allocates nothing.
    scratch: Vec<u64>,
    users: Vec<UserUpdate>,
    /// Whether any operation has to be evaluated; a set that only replaces words need not be looked at before it is
    /// installed.
    needs_evaluation: bool,
    /// What the last mark may still want to see: operations below it are kept, though later ones replace what they did.
    marked: u32,
    /// One bit per unit, so that most lookups of units that are not in the set end here.
    filter: u64,
    /// From addresses to items plus one, by open addressing; empty while the set is small.
    table: Vec<u32>,
}

/// Sets up to this size are searched from end to end.
const SCANNED_MAX: usize = 8;

impl WriteSet {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn items(&self) -> &[WriteItem] {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut [WriteItem] {
        &mut self.items
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.items.len() > SCANNED_MAX {
            if self.table.len() > 32 * self.items.len() {
                // Left by a far larger transaction; clearing it again and again would cost more than growing anew.
                self.table.clear();
            } else {
                self.table.fill(0);
            }
        }
        self.items.clear();
        self.ops.clear();
        self.arena.clear();
        self.users.clear();
        self.needs_evaluation = false;
        self.marked = 0;
        self.filter = 0;
    }

    /// Now, as something to look back to.
    pub(crate) fn mark(&mut self) -> Mark {
        self.marked = self.ops.len() as u32;
        Mark(self.marked)
    }

    #[cfg(test)]
    pub(crate) fn table_len_for_tests(&self) -> usize {
        self.table.len()
    }

    /// Appends operand words, returning where they begin.
    #[inline(always)]
    pub(crate) fn push_operands(&mut self, words: impl Iterator<Item = u64>) -> u32 {
        let first = self.arena.len() as u32;
        self.arena.extend(words);
        first
    }

    /// Keeps a user's updater, returning its number.
    pub(crate) fn push_user(&mut self, update: UserUpdate) -> u32 {
        self.users.push(update);
        self.users.len() as u32 - 1
    }

    /// The item of a unit.
    #[inline(always)]
    pub(crate) fn find(&self, at: CellAt) -> Option<usize> {
        if self.filter == 0 { None } else { self.find_filtered(at.address()) }
    }

    fn find_filtered(&self, address: u64) -> Option<usize> {
        if self.filter & filter_bit(address) == 0 {
            return None;
        }
        if self.items.len() <= SCANNED_MAX {
            return self.items.iter().position(|item| item.at.address() == address);
        }
        let mut place = self.probe_start(address);
        loop {
            let index = self.table[place].checked_sub(1)? as usize;
            if self.items[index].at.address() == address {
                return Some(index);
            }
            place = (place + 1) & (self.table.len() - 1);
        }
    }

    /// Adds an operation to a unit's item; returns the item's number.
    pub(crate) fn stage(&mut self, at: CellAt, intent: Intent, op: Op) -> usize {
        let index = match self.find(at) {
            Some(index) => index,
            None => self.add_item(at, intent.expects()),
        };
        self.items[index].present = intent != Intent::Delete;
        self.add_op(index, op);
        index
    }

    /// What an item was at a mark: `None` if nothing had been staged, otherwise whether the row existed.
    pub(crate) fn present_at(&self, index: usize, mark: Mark) -> Option<bool> {
        let item = &self.items[index];
        if item.last_op < mark.0 {
            return Some(item.present);
        }
        let last = self.ops_of(item).take_while(|&(number, _)| number < mark.0).last()?;
        Some(last.1.code != Code::Delete)
    }

    fn add_item(&mut self, at: CellAt, expects: Option<bool>) -> usize {
        let item = WriteItem {
            at,
            expects,
            present: true,
            untouched: false,
            note: 0,
            first_op: NONE,
            last_op: NONE,
            image: NONE,
        };
        self.items.push(item);
        self.filter |= filter_bit(at.address());
        if self.items.len() > SCANNED_MAX {
            self.index_items();
        }
        self.items.len() - 1
    }

    /// Enters the newest item into the table, or all of them if the table had to grow.
    fn index_items(&mut self) {
        let count = self.items.len();
        let grown = self.table.len() < 2 * count;
        if grown {
            self.table.clear();
            self.table.resize((4 * count).next_power_of_two(), 0);
        }
        let first = if grown || count == SCANNED_MAX + 1 { 0 } else { count - 1 };
        for index in first..count {
            let mut place = self.probe_start(self.items[index].at.address());
            while self.table[place] != 0 {
                place = (place + 1) & (self.table.len() - 1);
            }
            self.table[place] = index as u32 + 1;
        }
    }

    fn probe_start(&self, address: u64) -> usize {
        (mix(address) >> 32) as usize & (self.table.len() - 1)
    }

    fn add_op(&mut self, index: usize, op: Op) {
        let added = self.ops.len() as u32;
        self.needs_evaluation |= !op.is_plain();
        self.ops.push((op, NONE));
        let item = self.items[index];
        let replaces_unit = op.is_plain() && usize::from(op.words) == item.at.payload_words();
        let replaceable = || item.first_op >= self.marked && self.ops_of(&item).all(|(_, op)| op.is_plain());
        if item.first_op == NONE || replaces_unit && replaceable() {
            // Nothing that could fail comes before it, nor anything a scan looks back to, so nothing of it is missed.
            let item = &mut self.items[index];
            (item.first_op, item.last_op) = (added, added);
            item.image = NONE;
        } else {
            let overlaps = |other: &Op| {
                other.code == Code::User || other.word < op.word + op.words && op.word < other.word + other.words
            };
            if item.image == NONE && (op.code == Code::User || self.ops_of(&item).any(|(_, other)| overlaps(other))) {
                self.items[index].image = self.reserve_image(item.at.payload_words());
            }
            self.ops[item.last_op as usize].1 = added;
            self.items[index].last_op = added;
        }
        if op.code == Code::User && self.items[index].image == NONE {
            self.items[index].image = self.reserve_image(item.at.payload_words());
        }
    }

    fn reserve_image(&mut self, words: usize) -> u32 {
        self.needs_evaluation = true;
        let first = self.arena.len();
        self.arena.resize(first + words, 0);
        self.scratch.resize(words.max(self.scratch.len()), 0);
        first as u32
    }

    /// The operations of an item in order, with their numbers.
    fn ops_of<'a>(&'a self, item: &WriteItem) -> impl Iterator<Item = (u32, &'a Op)> {
        let mut next = item.first_op;
        std::iter::from_fn(move || {
            let (op, after) = self.ops.get(next as usize)?;
            Some((std::mem::replace(&mut next, *after), op))
        })
    }

    /// Whether the item's operations begin by replacing the whole unit, so that what was there does not matter.
    pub(crate) fn replaces_unit(&self, index: usize) -> bool {
        let item = &self.items[index];
        let first = self.ops.get(item.first_op as usize);
        first.is_some_and(|(op, _)| op.is_plain() && usize::from(op.words) == item.at.payload_words())
    }

    /// Applies an item's operations to an image of its unit.
    ///
    /// # Errors
    /// The number of the operation that failed, and how.
    pub(crate) fn overlay(&self, index: usize, image: &mut [u64]) -> Result<(), (u32, Abort)> {
        self.overlay_at(index, Mark::NOW, image)
    }

    /// As [`WriteSet::overlay`], with the operations staged before a mark.
    pub(crate) fn overlay_at(&self, index: usize, mark: Mark, image: &mut [u64]) -> Result<(), (u32, Abort)> {
        let item = &self.items[index];
        for (number, op) in self.ops_of(item).take_while(|&(number, _)| number < mark.0) {
            self.apply(item.at, op, image).map_err(|abort| (number, abort))?;
        }
        Ok(())
    }

    fn apply(&self, at: CellAt, op: &Op, image: &mut [u64]) -> Result<(), Abort> {
        let (word, operand) = (usize::from(op.word), op.operand as usize);
        if op.code == Code::User {
            return self.users[operand].apply(at.record(), image);
        }
        if op.is_plain() {
            let count = usize::from(op.words);
            image[word..word + count].copy_from_slice(&self.arena[operand..operand + count]);
        } else {
            image[word] = op.compute(&self.arena[operand..], image[word])?;
        }
        Ok(())
    }

    /// Evaluates every item against the words it will replace, so that installing cannot fail any more.
    ///
    /// `base` gives the words of an item: locked, or of the version that the new one follows.
    ///
    /// # Errors
    /// The first failure in program order, or the panic of a user's updater.
    pub(crate) fn evaluate(&mut self, base: impl Fn(&WriteItem) -> Words<'_>) -> Result<(), Failure> {
        if !self.needs_evaluation {
            return Ok(());
        }
        if self.users.is_empty() {
            return self.evaluate_items(base).map_err(Failure::Outcome);
        }
        match catch_unwind(AssertUnwindSafe(|| self.evaluate_items(base))) {
            Ok(evaluated) => evaluated.map_err(Failure::Outcome),
            Err(panic) => Err(Failure::Panic(panic)),
        }
    }

    fn evaluate_items(&mut self, base: impl Fn(&WriteItem) -> Words<'_>) -> Result<(), Abort> {
        let mut first_failure = None;
        for index in 0..self.items.len() {
            let item = self.items[index];
            let evaluated = if item.image == NONE {
                self.evaluate_in_place(&item, base(&item))
            } else {
                self.evaluate_image(index, base(&item))
            };
            if let Err(failure) = evaluated
                && first_failure.is_none_or(|(number, _)| failure.0 < number)
            {
                first_failure = Some(failure);
            }
        }
        first_failure.map_or(Ok(()), |(_, abort)| Err(abort))
    }

    /// Replaces the operands of each operation by the word it makes.
    #[inline]
    fn evaluate_in_place(&mut self, item: &WriteItem, base: Words<'_>) -> Result<(), (u32, Abort)> {
        let mut number = item.first_op;
        while let Some(&(op, next)) = self.ops.get(number as usize) {
            if !op.is_plain() {
                let operands = &mut self.arena[op.operand as usize..];
                operands[0] = op.compute(operands, base.get(usize::from(op.word))).map_err(|abort| (number, abort))?;
            }
            number = next;
        }
        Ok(())
    }

    fn evaluate_image(&mut self, index: usize, base: Words<'_>) -> Result<(), (u32, Abort)> {
        let item = self.items[index];
        let (first, count) = (item.image as usize, item.at.payload_words());
        // Images are allocated with their operands in one arena; the operations read the one and write the other.
        let mut image = std::mem::take(&mut self.scratch);
        base.copy(0, count, |word, value| image[word] = value);
        let applied = self.overlay(index, &mut image[..count]);
        self.arena[first..first + count].copy_from_slice(&image[..count]);
        self.scratch = image;
        applied
    }

    /// The first failure in program order if the operations were applied to `images`, unit after unit.
    pub(crate) fn first_failure(&self, images: &mut [u64]) -> Option<Abort> {
        let (mut first, mut rest) = (None::<(u32, Abort)>, images);
        for (index, item) in self.items.iter().enumerate() {
            let (image, after) = std::mem::take(&mut rest).split_at_mut(item.at.payload_words());
            rest = after;
            if let Err(failure) = self.overlay(index, image)
                && first.is_none_or(|(number, _)| failure.0 < number)
            {
                first = Some(failure);
            }
        }
        first.map(|(_, abort)| abort)
    }

    /// Stores what the evaluated item makes of its unit.
    #[inline]
    pub(crate) fn install(&self, index: usize, payload: &[AtomicU64]) {
        let item = &self.items[index];
        let store = |first: usize, operand: usize, count: usize| {
            for (word, &value) in payload[first..first + count].iter().zip(&self.arena[operand..operand + count]) {
                word.store(value, Ordering::Release); // E3
            }
        };
        if item.image != NONE {
            return store(0, item.image as usize, payload.len());
        }
        for (_, op) in self.ops_of(item) {
            store(usize::from(op.word), op.operand as usize, usize::from(op.words));
        }
    }

    /// Puts the items into the order of their addresses, for protocols that lock in a global order.
    pub(crate) fn sort(&mut self) {
        self.items.sort_unstable_by_key(|item| item.at.address());
        if self.items.len() > SCANNED_MAX {
            self.table.clear();
            self.index_items();
        }
    }
}

/// A multiplication that spreads an address over all bits.
#[inline(always)]
fn mix(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn filter_bit(address: u64) -> u64 {
    1 << (mix(address) >> 58)
}
