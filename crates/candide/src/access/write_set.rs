//! The write set: which units a transaction will change, and how.
//!
//! An item describes one unit: whether the row must exist when the unit is locked (the
//! *expectation*), whether the row exists after the commit, and the operations on the unit.
//! Operands lie in one arena. Buffers are kept from attempt to attempt and cleared, so that a
//! steady transaction allocates nothing.
//!
//! Operations are numbered in the order of the program. A [`Mark`] is such a number: a scan sees
//! the operations that had been staged when the scan was made.

#![forbid(unsafe_code)]

use super::by_address::ByAddress;
use super::change::{Change, ChangeKind, ChangeSink};
use super::filter::Filter;
use super::item::NONE;
use super::item::{Intent, Mark, SavedItem, WriteItem};
use super::operations::Operations;
use super::outcome_note::{OutcomeNote, Outcomes};
use super::steps;
use super::sums::{Place, Sums};
use super::user_codes::UserCode;
#[cfg(test)]
use super::visits::VISITS;
use crate::error::Abort;
use crate::record::delta::DeltaSpace;
use crate::record::{CellAt, UserUpdate};
use crate::schema::{Op, Words};
use crate::sync::{AtomicU64, Ordering};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason for which the operations of a write set could not be evaluated.
#[derive(Debug)]
pub enum Failure {
    /// A guard did not hold, or a number left its range.
    Outcome(Abort),
    /// A user's updater panicked.
    Panic(Box<dyn Any + Send>),
}

/// The write set of a transaction.
#[derive(Default)]
pub struct WriteSet {
    pub(super) items: Vec<WriteItem>,
    pub(super) operations: Operations,
    /// The images of those items that need one, in the order of the items. The evaluation makes
    /// them.
    pub(super) images: Vec<u64>,
    /// The number of words of all images. Memory for them is reserved, so that the evaluation
    /// allocates nothing.
    pub(super) image_words: usize,
    /// Whether any item needs evaluation. A write set that only replaces words is installed without
    /// evaluation.
    needs_evaluation: bool,
    /// The last [`Mark`] that was made, which a scan may still use. Operations before this mark are
    /// kept, even if later operations replace their results.
    pub(super) marked: u32,
    /// The number of the first operation of the innermost part that has not ended; 0 outside of
    /// parts.
    pub(super) part_begin: u32,
    /// Items as they were before parts of the transaction changed them, in the order of these
    /// changes.
    pub(super) saved: Vec<SavedItem>,
    /// The filter of the units of all items. Most lookups of other units end at this filter.
    filter: Filter,
    pub(super) places: ByAddress,
    /// Whether searches are plain, by the factor `PlainSets`.
    is_plain: bool,
    /// The operations of items that need evaluation, in the order of the program, each with the
    /// number of its item. Only filled during an evaluation with steps.
    pub(super) order: Vec<(u32, u32)>,
    /// The last outcomes of operations, of this transaction or of earlier ones.
    pub(crate) outcomes: Outcomes,
}

/// The largest number of a unit's operations that are compared with a new operation for overlapping
/// words.
const COMPARED_MAX: usize = 32;

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

    /// Clears the set, which is usually empty.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self) {
        // Every item has an operation, so without operations there are no items.
        if !self.operations.is_empty() {
            self.clear_all();
        }
    }

    #[inline(never)]
    pub(super) fn clear_all(&mut self) {
        self.places.clear(self.items.len());
        self.items.clear();
        self.operations.clear();
        self.image_words = 0;
        self.needs_evaluation = false;
        self.marked = 0;
        self.part_begin = 0;
        self.saved.clear();
        self.filter = if self.is_plain { Filter::FULL } else { Filter::default() };
    }

    /// Returns the number of the last operation; 0 if there is none.
    pub(crate) fn last_operation(&self) -> u32 {
        self.operations.next().saturating_sub(1)
    }

    /// Adds an operation of no item, and returns its number.
    pub(crate) fn push_nothing(&mut self) -> u32 {
        self.operations.push(Op::DELETE)
    }

    /// Returns the mark of the current moment.
    pub(crate) fn mark(&mut self) -> Mark {
        self.marked = self.operations.next();
        Mark(self.marked)
    }

    #[cfg(test)]
    pub(crate) fn places_capacity_for_tests(&self) -> usize {
        self.places.capacity_for_tests()
    }

    /// Appends operand words, and returns the place of the first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push_operands(&mut self, words: impl Iterator<Item = u64>) -> u32 {
        self.operations.push_operands(words)
    }

    /// Keeps a user's updater, and returns its number.
    pub(crate) fn push_user(&mut self, update: UserUpdate) -> u32 {
        self.operations.push_user(UserCode::Updater(update))
    }

    /// Keeps the step with this number, whose unit has `words` words, and returns the number of its
    /// code.
    pub(crate) fn push_step(&mut self, number: u32, words: usize) -> u32 {
        let image = self.push_operands(std::iter::repeat_n(0, words));
        self.operations.push_user(UserCode::Step { number, image })
    }

    /// Notes that the last operation on a unit is a step. Does nothing if the unit has no item, in
    /// a protocol that applies operations at once.
    #[cold]
    pub(crate) fn note_step(&mut self, at: CellAt) {
        if let Some(index) = self.find(at) {
            self.operations.note_step(&self.items[index]);
        }
    }

    /// Runs the first step of an item's unit, which the attempt has observed, on `image`, the words
    /// of the unit without the transaction's own writes. From then on, the operation replaces the
    /// unit by the step's result.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(crate) fn run_first_step(
        &mut self,
        index: usize,
        image: &mut [u64],
    ) -> Result<(), (u32, Abort)> {
        let item = self.items[index];
        let Some((operation, step)) = self.operations.first_step(&item) else { return Ok(()) };
        let ran = self.operations.apply_before_steps(&item, image);
        let ran = ran.and_then(|()| steps::run(step, image).map_err(|abort| (operation, abort)));
        if let Err((number, abort)) = ran {
            self.note_failed(item.at, number, abort);
            return Err((number, abort));
        }
        self.operations.note_result(&item, operation, image);
        Ok(())
    }

    /// Returns whether an item's unit was waiting for a step at a mark.
    pub(crate) fn is_pending(&self, index: usize, mark: Mark) -> bool {
        self.operations.has_users() && self.operations.is_pending(&self.items[index], mark)
    }

    /// Makes room for the evaluation of steps, so that it allocates nothing.
    pub(crate) fn reserve_order(&mut self) {
        self.order.clear();
        self.order.reserve(self.operations.next() as usize);
    }

    /// Returns the number of the item of a unit; `None` if the unit has no item.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(&self, at: CellAt) -> Option<usize> {
        let may_be_there = !self.items.is_empty() && self.filter.may_have(at.address());
        if may_be_there { self.find_among(at.address()) } else { None }
    }

    #[inline(never)]
    fn find_among(&self, address: u64) -> Option<usize> {
        self.places.find(&self.items, WriteItem::address, address)
    }

    /// Adds an operation to a unit's item; returns the item's number.
    pub(crate) fn stage(&mut self, at: CellAt, intent: Intent, op: Op) -> usize {
        match self.find(at) {
            Some(index) => {
                self.add_op(index, intent, op);
                index
            }
            None => self.add_item(at, intent, op),
        }
    }

    /// Adds the items of an inserted row, none of whose units is in the set. The words of its units
    /// are consecutive operands.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stage_new(
        &mut self,
        cells: impl Iterator<Item = CellAt> + Clone,
        mut operand: u32,
    ) {
        debug_assert!(cells.clone().all(|at| self.find(at).is_none()));
        let (count, mut number) = (self.items.len(), self.operations.next());
        let filter = &mut self.filter;
        let item = |at: CellAt| {
            filter.add(at.address());
            let op = number;
            number += 1;
            WriteItem {
                at,
                expects: Intent::Insert.expects(),
                present: true,
                untouched: false,
                is_delta: false,
                note: 0,
                first_op: op,
                last_op: op,
                first_word: 0,
                end_word: at.payload_words() as u16,
                needs_evaluation: false,
                needs_image: false,
                is_plain: true,
                image: NONE,
            }
        };
        self.items.extend(cells.clone().map(item));
        self.operations.extend(cells.map(|at| {
            let words = at.payload_words();
            let op = Op { operand, ..Op::set_words(0, words as u16) };
            operand += words as u32;
            op
        }));
        self.places.added(&self.items, count, WriteItem::address);
    }

    /// Returns whether the row existed at a mark; `None` if nothing had been staged for the item at
    /// that mark.
    pub(crate) fn present_at(&self, index: usize, mark: Mark) -> Option<bool> {
        let item = &self.items[index];
        #[cfg(test)]
        VISITS.set(VISITS.get() + 1);
        if item.last_op < mark.0 {
            return Some(item.present);
        }
        self.operations.last_before(item, item.image, mark).map(|last| !last.is_delete())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_item(&mut self, at: CellAt, intent: Intent, op: Op) -> usize {
        if op.is_user() {
            self.reserve_image(at);
        }
        self.push_item(at, intent, op)
    }

    /// Adds an item, for whose image there is room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn push_item(&mut self, at: CellAt, intent: Intent, op: Op) -> usize {
        let number = self.operations.push(op);
        let (needs_image, needs_evaluation) = (op.is_user(), !op.is_plain());
        let (first_word, end_word) = op.changed();
        self.needs_evaluation |= needs_evaluation;
        self.items.push(WriteItem {
            at,
            expects: intent.expects(),
            present: intent != Intent::Delete,
            untouched: false,
            is_delta: false,
            note: 0,
            first_op: number,
            last_op: number,
            first_word,
            end_word,
            needs_evaluation,
            needs_image,
            is_plain: op.is_plain(),
            image: NONE,
        });
        self.filter.add(at.address());
        let index = self.items.len() - 1;
        self.places.added(&self.items, index, WriteItem::address);
        index
    }

    /// Adds an operation to an item that already has operations. Out of line, so that the first
    /// operation of an item is staged quickly.
    #[inline(never)]
    fn add_op(&mut self, index: usize, intent: Intent, op: Op) {
        self.save_item(index);
        let added = self.operations.push(op);
        let mut item = self.items[index];
        item.present = intent != Intent::Delete;
        let replaces_unit = op.is_plain() && usize::from(op.words) == item.at.payload_words();
        let (first, end) = op.changed();
        if replaces_unit && item.is_plain && item.first_op >= self.marked {
            // None of the item's earlier operations can fail, and no scan can see them, so they can
            // be dropped.
            (item.first_op, item.last_op, item.image) = (added, added, NONE);
            (item.needs_evaluation, item.needs_image) = (false, false);
            (item.first_word, item.end_word) = (first, end);
        } else {
            let may_overlap = first < item.end_word && item.first_word < end;
            // An operation that replaces the unit comes after a delete, or overlaps the others.
            if !item.needs_image
                && (op.is_user()
                    || replaces_unit
                    || may_overlap && self.overlaps_one_of(&item, &op))
            {
                item.needs_image = true;
                self.reserve_image(item.at);
            }
            item.is_plain &= op.is_plain();
            item.needs_evaluation |= item.needs_image || !op.is_plain();
            self.operations.link(item.last_op, added);
            item.last_op = added;
            if item.first_word == item.end_word {
                (item.first_word, item.end_word) = (first, end);
            } else if first < end {
                (item.first_word, item.end_word) =
                    (item.first_word.min(first), item.end_word.max(end));
            }
        }
        self.needs_evaluation |= item.needs_evaluation;
        self.items[index] = item;
    }

    /// Returns whether `op` overlaps words of one of the item's operations. Returns `true`, too, if
    /// there are too many operations to compare, since an image is always correct.
    fn overlaps_one_of(&self, item: &WriteItem, op: &Op) -> bool {
        let mut looked_at = 0;
        let mut overlaps = |(_, other): (u32, &Op)| {
            looked_at += 1;
            looked_at > COMPARED_MAX || other.overlaps(op)
        };
        self.operations.of(item).any(&mut overlaps)
    }

    /// Reserves room for one more image.
    fn reserve_image(&mut self, at: CellAt) {
        self.image_words += at.payload_words();
        self.images.clear();
        self.images.reserve(self.image_words);
    }

    /// Reserves room for images of `more` words in all, beside those of the items.
    pub(super) fn reserve_images(&mut self, more: usize) {
        self.images.clear();
        self.images.reserve(self.image_words + more);
    }

    /// Returns whether the item's operations begin by replacing the whole unit, so that its old
    /// words do not matter.
    pub(crate) fn replaces_unit(&self, index: usize) -> bool {
        self.operations.replaces_unit(&self.items[index])
    }

    /// Returns what an item's operations add to the number at a place, one after another; `None` if
    /// they change the number in another way, too, or have guards.
    pub(crate) fn sums_on(&mut self, index: usize, place: Place) -> Option<Sums> {
        let item = self.items[index];
        self.operations.sums_on(&item, &mut self.items[index].image, place)
    }

    /// Returns the number of words that an item's operations take if they are deferred until a
    /// reader needs the unit; `None` if they cannot be deferred.
    pub(crate) fn delta_words(&self, index: usize) -> Option<usize> {
        self.operations.delta_words(&self.items[index])
    }

    /// Writes an item's operations as a delta.
    pub(crate) fn write_delta(&self, index: usize, room: DeltaSpace<'_>) {
        self.operations.write_delta(&self.items[index], room);
    }

    /// Returns the number of words that the results of an item's operations take as a delta; `None`
    /// if the results are an image of the whole unit.
    pub(crate) fn changed_words(&self, index: usize) -> Option<usize> {
        let item = &self.items[index];
        (!item.needs_image).then(|| self.operations.changed_words(item))
    }

    /// Writes the results of an item's evaluated operations as a delta.
    pub(crate) fn write_changes(&self, index: usize, room: DeltaSpace<'_>) {
        self.operations.write_changes(&self.items[index], room);
    }

    /// Applies an item's operations that were staged before a mark to an image of its unit, which
    /// the attempt has observed.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(crate) fn overlay_at(
        &mut self,
        index: usize,
        mark: Mark,
        image: &mut [u64],
    ) -> Result<(), (u32, Abort)> {
        let item = self.items[index];
        let applied = self.operations.apply_on(&item, &mut self.items[index].image, mark, image);
        applied.inspect_err(|&(number, abort)| self.note_failed(item.at, number, abort))
    }

    /// Returns whether the commit has to evaluate the set before it installs anything.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn needs_evaluation(&self) -> bool {
        self.needs_evaluation
    }

    /// Makes the commit evaluate the set, since it writes units with values.
    pub(crate) fn note_values(&mut self) {
        self.needs_evaluation = true;
    }

    /// Returns what an evaluated item of a present row stores in word `word` of its unit; `None` if
    /// it leaves the word as it is. No operation stores a part of the word.
    pub(crate) fn new_word(&self, index: usize, word: usize) -> Option<u64> {
        let item = &self.items[index];
        if item.needs_image {
            return Some(self.images[item.image as usize + word]);
        }
        self.operations.last_store(item, word)
    }

    /// Evaluates every item against the words that the item will replace. After that, installing
    /// cannot fail.
    ///
    /// `base` returns these words: locked words, or those of the version that the new version
    /// follows. `version` returns their version, for the recorder of histories. Neither is called
    /// for an item that replaces its unit.
    ///
    /// # Errors
    /// The first failure in program order, or the panic of a user's updater.
    #[inline]
    pub(crate) fn evaluate(
        &mut self,
        base: impl Fn(&WriteItem) -> Words<'_>,
        version: impl Fn(&WriteItem) -> u64,
    ) -> Result<(), Failure> {
        if !self.needs_evaluation {
            return Ok(());
        }
        if !self.operations.has_users() {
            return self.evaluate_items(base).map_err(Failure::Outcome);
        }
        let evaluate = || match self.operations.has_steps() {
            true => self.evaluate_in_program_order(base, version),
            false => self.evaluate_items(base),
        };
        match catch_unwind(AssertUnwindSafe(evaluate)) {
            Ok(evaluated) => evaluated.map_err(Failure::Outcome),
            Err(panic) => Err(Failure::Panic(panic)),
        }
    }

    fn evaluate_items(&mut self, base: impl Fn(&WriteItem) -> Words<'_>) -> Result<(), Abort> {
        let mut first_failure = None::<(u32, Abort, CellAt)>;
        self.images.clear();
        for item in self.items.iter_mut().filter(|item| item.needs_evaluation && !item.is_delta) {
            let evaluated = if item.needs_image {
                let (first, words) = (self.images.len(), item.at.payload_words());
                if self.operations.replaces_unit(item) {
                    self.images.resize(first + words, 0);
                } else {
                    base(item).extend(words, &mut self.images);
                }
                item.image = first as u32;
                self.operations.apply(item, &mut self.images[first..])
            } else {
                self.operations.evaluate(item, base(item))
            };
            if let Err((number, abort)) = evaluated
                && first_failure.is_none_or(|(first, ..)| number < first)
            {
                first_failure = Some((number, abort, item.at));
            }
        }
        let Some((number, abort, at)) = first_failure else { return Ok(()) };
        self.note_failed(at, number, abort);
        Err(abort)
    }

    /// Evaluates every item as [`WriteSet::evaluate_items`] does, one operation after the other in
    /// the order of the program, so that a step can use the results of earlier steps, of other
    /// units, too. Stops at the first failure.
    #[cold]
    fn evaluate_in_program_order(
        &mut self,
        base: impl Fn(&WriteItem) -> Words<'_>,
        version: impl Fn(&WriteItem) -> u64,
    ) -> Result<(), Abort> {
        self.images.clear();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for (index, item) in self.items.iter_mut().enumerate() {
            if !item.needs_evaluation || item.is_delta {
                continue;
            }
            self.operations.list(item, index as u32, &mut order);
            if item.needs_image {
                let (first, words) = (self.images.len(), item.at.payload_words());
                if self.operations.replaces_unit(item) {
                    self.images.resize(first + words, 0);
                } else {
                    base(item).extend(words, &mut self.images);
                    if self.operations.first_step(item).is_some() {
                        steps::note_observed(item.at, || version(item));
                    }
                }
                item.image = first as u32;
            }
        }
        order.sort_unstable();
        let evaluated = order.iter().try_for_each(|&(number, index)| {
            let item = self.items[index as usize];
            let evaluated = if item.needs_image {
                let image = &mut self.images[item.image as usize..][..item.at.payload_words()];
                self.operations.apply_or_run(&item, number, image)
            } else {
                self.operations.evaluate_one(number, base(&item))
            };
            evaluated.inspect_err(|&abort| self.note_failed(item.at, number, abort))
        });
        self.order = order;
        evaluated
    }

    /// Applies the operations before steps to `images`, which hold the words of all items' units
    /// one after another. Returns the first failure in program order; `None` if no operation fails.
    pub(crate) fn first_failure(&self, images: &mut [u64]) -> Option<OutcomeNote> {
        let (mut first, mut rest) = (None::<(u32, Abort, CellAt)>, images);
        for item in &self.items {
            let (image, after) = std::mem::take(&mut rest).split_at_mut(item.at.payload_words());
            rest = after;
            if let Err((number, abort)) = self.operations.apply_before_steps(item, image)
                && first.is_none_or(|(first, ..)| number < first)
            {
                first = Some((number, abort, item.at));
            }
        }
        first.map(|(number, abort, at)| self.failure_of(at, number, abort))
    }

    /// Passes every change of a commit, which has evaluated and installed the items, to `sink`. A
    /// delete is a change of the row's first unit alone.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn changes(&self, sink: &mut impl ChangeSink) {
        for item in &self.items {
            let has_one = item.first_op == item.last_op && !item.needs_image && item.present;
            if !has_one || item.untouched {
                self.changes_of(item, sink);
                continue;
            }
            let op = self.operations.get(item.first_op);
            if op.words > 0 {
                let words = self.operations.operands(op.operand, usize::from(op.words));
                let (kind, words) = (kind_of(item), Words::Own(words));
                sink.add(Change { at: item.at, kind, first: op.word.into(), words });
            }
        }
    }

    /// Passes the changes of one item to `sink`.
    #[inline(never)]
    fn changes_of(&self, item: &WriteItem, sink: &mut dyn ChangeSink) {
        if item.untouched {
            return;
        }
        debug_assert!(!item.is_delta, "the operations of a logged commit are evaluated");
        let (at, kind) = (item.at, kind_of(item));
        if !item.present {
            if at.is_first() {
                sink.add(Change::delete(at));
            }
            return;
        }
        if item.needs_image {
            let words = &self.images[item.image as usize..][item.changed()];
            return sink.add(Change {
                at,
                kind,
                first: item.changed().start,
                words: Words::Own(words),
            });
        }
        for (_, op) in self.operations.of(item).filter(|(_, op)| op.words > 0) {
            let words = self.operations.operands(op.operand, usize::from(op.words));
            sink.add(Change { at, kind, first: op.word.into(), words: Words::Own(words) });
        }
    }

    /// Stores the evaluated words of an item in its unit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn install(&self, index: usize, payload: &[AtomicU64]) {
        let item = &self.items[index];
        if item.needs_image {
            return self.install_image(item, payload);
        }
        for (_, op) in self.operations.of(item) {
            let count = usize::from(op.words);
            store(
                &payload[usize::from(op.word)..][..count],
                self.operations.operands(op.operand, count),
            );
        }
    }

    #[inline(never)]
    fn install_image(&self, item: &WriteItem, payload: &[AtomicU64]) {
        // The other words are those of the unit already.
        let (changed, image) = (item.changed(), item.image as usize);
        store(&payload[changed.clone()], &self.images[image + changed.start..image + changed.end]);
    }

    /// Makes all searches plain, by the factor `PlainSets`. The set is empty.
    pub(crate) fn search_plainly(&mut self) {
        (self.is_plain, self.filter, self.places) = (true, Filter::FULL, ByAddress::never());
    }

    /// Sorts the items by tables and primary keys, by the factor `SortedKeys`. `key_words` returns
    /// the number of words of a table's keys.
    pub(crate) fn sort_by_keys(&mut self, key_words: impl Fn(u16) -> usize) {
        let order = |one: &WriteItem, other: &WriteItem| {
            let table = one.at.table();
            table.cmp(&other.at.table()).then_with(|| {
                let [one, other] = [one, other].map(|item| (item.at.record(), item.at.unit()));
                let words = 0..key_words(table);
                let [key, other_key] =
                    [one.0, other.0].map(|row| words.clone().map(move |word| row.key_word(word)));
                key.cmp(other_key).then(one.1.cmp(&other.1))
            })
        };
        self.items.sort_unstable_by(order);
        self.places.added(&self.items, 0, WriteItem::address);
    }

    /// Sorts the items by their addresses, for protocols that lock in a global order.
    pub(crate) fn sort(&mut self) {
        self.items.sort_unstable_by_key(WriteItem::address);
        self.places.added(&self.items, 0, WriteItem::address);
    }
}

/// Returns the kind of change that an item makes to its row, if the row exists afterwards.
#[cfg_attr(not(debug_assertions), inline(always))]
fn kind_of(item: &WriteItem) -> ChangeKind {
    match item.expects {
        Some(true) => ChangeKind::Update,
        Some(false) | None => ChangeKind::Put,
    }
}

/// Stores the values of words that the caller has locked.
#[cfg_attr(not(debug_assertions), inline(always))]
fn store(words: &[AtomicU64], values: &[u64]) {
    // The loop is by index, since the adapters of a pair of iterators are not always inlined.
    let count = words.len().min(values.len());
    let (words, values) = (&words[..count], &values[..count]);
    for index in 0..count {
        words[index].store(values[index], Ordering::Release); // E3
    }
}
