//! The operations of a write set, with their operands and checkpoints.

#![forbid(unsafe_code)]

use super::checkpoints::{Checkpoints, UpTo};
use super::item::NONE;
use super::item::{Mark, WriteItem};
use super::steps;
use super::sums::{Place, Sums};
use super::unit_steps::UnitSteps;
use super::user_codes::{UserCode, UserCodes};
#[cfg(test)]
use super::visits::VISITS;
use crate::error::Abort;
use crate::record::UserUpdate;
use crate::record::delta::{DeltaSpace, PutOff};
use crate::record::long;
use crate::schema::{Op, WIDE_OPERANDS, Words};

/// The number of operations between two checkpoints of a unit. If the unit has more words than
/// this, the number of its words is used instead. Small in tests, so that short scripts have
/// checkpoints.
const CHECKPOINT_OPS: usize = if cfg!(test) { 2 } else { 64 };

/// The number of operations between two checkpoints with sums. Small in tests, too.
const SUMS_OPS: usize = if cfg!(test) { 2 } else { 8 };

/// Operations in the order in which they were staged, with their operands.
#[derive(Default)]
pub(super) struct Operations {
    /// The operations, each with the number of the item's next operation.
    ops: Vec<(Op, u32)>,
    operands: Vec<u64>,
    users: UserCodes,
    /// Empty if there are no `users`.
    unit_steps: UnitSteps,
    checkpoints: Checkpoints,
}

/// Returns whether an operation may fail.
fn is_fallible(op: &Op) -> bool {
    op.is_user() || !op.is_delete() && op.words_put_off().is_none()
}

impl Operations {
    /// Returns whether there are no operations, operands or updaters.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_empty(&self) -> bool {
        self.ops.len() | self.operands.len() | self.users.len() == 0
    }

    pub(super) fn clear(&mut self) {
        self.ops.clear();
        self.operands.clear();
        self.checkpoints.clear();
        if !self.users.is_empty() {
            self.clear_users();
        }
    }

    #[cold]
    fn clear_users(&mut self) {
        self.users.clear();
        self.unit_steps.clear();
    }

    /// Returns the numbers of operand words, of updaters and of checkpoints.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.operands.len(), self.users.len(), self.checkpoints.len())
    }

    /// Removes the operations from number `next` on, and the updaters and operand words that were
    /// added after the `sizes` were taken. If there are newer checkpoints, keeps the words: the
    /// images of checkpoints lie among them, and may be needed by operations that stay.
    pub(super) fn truncate(&mut self, next: u32, sizes: (usize, usize, usize)) {
        let (operands, users, checkpoints) = sizes;
        self.ops.truncate(next as usize);
        if self.users.len() > users {
            self.users.truncate(users);
            self.unit_steps.truncate(users);
        }
        if self.checkpoints.len() == checkpoints {
            self.operands.truncate(operands);
        }
    }

    /// Returns the number that the next operation will have.
    pub(super) fn next(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Appends an operation, returning its number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn push(&mut self, op: Op) -> u32 {
        self.ops.push((op, NONE));
        self.ops.len() as u32 - 1
    }

    /// Makes room for `more` operations.
    pub(super) fn reserve(&mut self, more: usize) {
        self.ops.reserve(more);
    }

    /// Appends operations, each of an item of its own.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn extend(&mut self, ops: impl Iterator<Item = Op>) {
        self.ops.extend(ops.map(|op| (op, NONE)));
    }

    /// Makes one operation the successor of another.
    pub(super) fn link(&mut self, number: u32, next: u32) {
        self.ops[number as usize].1 = next;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn push_operands(&mut self, words: impl Iterator<Item = u64>) -> u32 {
        let first = self.operands.len() as u32;
        self.operands.extend(words);
        first
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn operands(&self, first: u32, count: usize) -> &[u64] {
        &self.operands[first as usize..][..count]
    }

    pub(super) fn push_user(&mut self, code: UserCode) -> u32 {
        self.users.push(code)
    }

    /// Returns what the operations do by users' code, and the late rows.
    pub(super) fn users(&self) -> &UserCodes {
        &self.users
    }

    /// Returns the late rows for changes.
    pub(super) fn users_mut(&mut self) -> &mut UserCodes {
        &mut self.users
    }

    pub(super) fn has_users(&self) -> bool {
        !self.users.is_empty()
    }

    /// Returns whether there is a step that has not run.
    pub(super) fn has_steps(&self) -> bool {
        self.users.has_steps()
    }

    /// Returns whether one of an item's operations before a mark waits for a step that has not run.
    pub(super) fn is_pending(&self, item: &WriteItem, mark: Mark) -> bool {
        self.has_steps() && self.unit_steps.of(item.address()).waiting < mark.0
    }

    /// Returns an item's first step that has not run: the numbers of the operation and of the step.
    pub(super) fn first_step(&self, item: &WriteItem) -> Option<(u32, u32)> {
        let operation = self.unit_steps.of(item.address()).waiting;
        let (op, _) = self.ops.get(operation as usize)?;
        Some((operation, self.step(op)?))
    }

    /// Returns whether a step gets words of an item's unit that were there before the transaction,
    /// which does not replace the unit. The step of an insert makes the row.
    pub(super) fn reads_unit(&self, item: &WriteItem) -> bool {
        item.expects != Some(false)
            && (self.first_step(item).is_some() || self.step(self.get(item.first_op)).is_some())
    }

    /// Notes that the last operation of an item is a step.
    pub(super) fn note_step(&mut self, item: &WriteItem) {
        let code = self.get(item.last_op).operand;
        self.unit_steps.staged(item.address(), item.last_op, code);
    }

    /// Returns the number of the step that an operation has to run, if any.
    fn step(&self, op: &Op) -> Option<u32> {
        match self.users.get(op.operand as usize) {
            Some(&UserCode::Step { number, .. }) if op.is_user() => Some(number),
            _ => None,
        }
    }

    /// Appends the numbers of an item's operations, each with the item's number, to `order`.
    pub(super) fn list(&self, item: &WriteItem, index: u32, order: &mut Vec<(u32, u32)>) {
        order.extend(self.of(item).map(|(number, _)| (number, index)));
    }

    /// Returns the operation with this number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn get(&self, number: u32) -> &Op {
        &self.ops[number as usize].0
    }

    /// Returns the operations of an item in order, with their numbers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn of<'a>(
        &'a self,
        item: &WriteItem,
    ) -> impl Iterator<Item = (u32, &'a Op)> + use<'a> {
        self.from(item.first_op)
    }

    /// Returns an operation, and the number of the item's next one; `None` at the end of the list.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn visit(&self, number: u32) -> Option<&(Op, u32)> {
        #[cfg(test)]
        VISITS.set(VISITS.get() + 1);
        self.ops.get(number as usize)
    }

    /// Returns an operation and the later operations of the same item.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from(&self, first: u32) -> impl Iterator<Item = (u32, &Op)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let (op, after) = self.visit(next)?;
            Some((std::mem::replace(&mut next, *after), op))
        })
    }

    /// Returns what the last of an item's operations that stores word `word` stores there; `None`
    /// if none does.
    pub(super) fn last_store(&self, item: &WriteItem, word: usize) -> Option<u64> {
        let place = |op: &Op| word.checked_sub(op.word.into()).filter(|at| *at < op.words.into());
        let stores = self.of(item).filter_map(|(_, op)| Some((op, place(op)?)));
        stores.last().map(|(op, at)| self.operands[op.operand as usize + at])
    }

    /// Returns whether an item's operations begin by replacing the whole unit.
    pub(super) fn replaces_unit(&self, item: &WriteItem) -> bool {
        let first = self.of(item).next();
        first.is_some_and(|(_, op)| {
            op.is_plain() && usize::from(op.words) == item.at.payload_words()
        })
    }

    /// Returns what an item's operations add to the number at a place, one after another; `None` if
    /// they change the number in another way, too. `newest` is the number of the item's newest
    /// checkpoint.
    ///
    /// The checkpoints that are made save a transaction which adds and asks in turn from going over
    /// all earlier operations each time. They hold whatever the stored number is.
    pub(super) fn sums_on(
        &mut self,
        item: &WriteItem,
        newest: &mut u32,
        place: Place,
    ) -> Option<Sums> {
        let mut sums = Sums::default();
        let (mut next, mut last, mut added) = (item.first_op, NONE, 0);
        if let Some((last_op, kept)) = self.checkpoints.sums_of(*newest, place) {
            (sums, next) = (kept, self.ops[last_op as usize].1);
        }
        let mut are_summands = true;
        while let Some(&(op, after)) = self.visit(next) {
            if !is_elsewhere(&op, place) {
                let Some(summand) = op.summand(place, &self.operands) else {
                    are_summands = false;
                    break;
                };
                sums.add(summand);
            }
            (last, next, added) = (next, after, added + 1);
        }
        if added >= SUMS_OPS {
            self.checkpoints.add(last, UpTo::Sums(place, sums), newest);
        }
        are_summands.then_some(sums)
    }

    /// Applies an item's operations to an image of its unit.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(super) fn apply(&self, item: &WriteItem, image: &mut [u64]) -> Result<(), (u32, Abort)> {
        for (number, op) in self.of(item) {
            self.apply_one(item, op, image).map_err(|abort| (number, abort))?;
        }
        Ok(())
    }

    /// Applies an item's operations that come before its first step to an image of its unit.
    /// Begins with the last step that has run, if there is one.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(super) fn apply_before_steps(
        &self,
        item: &WriteItem,
        image: &mut [u64],
    ) -> Result<(), (u32, Abort)> {
        let steps = self.unit_steps.of(item.address());
        let first = if steps.done == NONE { item.first_op } else { steps.done };
        for (number, op) in self.from(first).take_while(|&(number, _)| number != steps.waiting) {
            self.apply_one(item, op, image).map_err(|abort| (number, abort))?;
        }
        Ok(())
    }

    /// Applies one operation, which may be a step, to an image of its item's unit.
    ///
    /// # Errors
    /// The outcome of the operation, if it has failed.
    #[inline(never)]
    pub(super) fn apply_or_run(
        &self,
        item: &WriteItem,
        number: u32,
        image: &mut [u64],
    ) -> Result<(), Abort> {
        let op = self.get(number);
        match self.step(op) {
            Some(step) => steps::run(step, image),
            None => self.apply_one(item, op, image),
        }
    }

    /// Returns whether an operation is a step whose inputs are not known yet.
    pub(super) fn waits_for_input(&self, number: u32) -> bool {
        self.step(self.get(number)).is_some_and(|step| !steps::is_ready(step))
    }

    /// Notes that the step of an operation, the first one of its item that has not run, has left
    /// `result` in the unit. So the operation has this result, and the step does not run again.
    pub(super) fn note_result(&mut self, item: &WriteItem, number: u32, result: &[u64]) {
        let image = self.users.note_done(self.ops[number as usize].0.operand as usize);
        self.operands[image as usize..][..result.len()].copy_from_slice(result);
        let mut rest = self.from(self.ops[number as usize].1);
        let next = rest.find(|(_, op)| self.step(op).is_some()).map_or(NONE, |(next, _)| next);
        drop(rest);
        self.unit_steps.ran(item.address(), next);
    }

    /// Applies the operations of an item before `mark`, beginning with the last checkpoint before
    /// `mark`. `newest` is the number of the item's newest checkpoint.
    ///
    /// Without checkpoints, a transaction that updates and reads a unit in turn would apply all
    /// earlier operations at each read. Only reads use checkpoints: a commit applies all operations
    /// to the locked words, or defers them. So guards, overflow and users' updaters are evaluated
    /// as if nothing had been read. A read may use checkpoints under every protocol: the unit's
    /// stored words were observed when the checkpoint was made, so they are unchanged in an attempt
    /// that commits. (Each read observes these words again, which ends a loop in a doomed attempt.)
    /// With checkpoints, reads call a user's updater less often. An updater whose result differs
    /// from call to call shows the closure another value than it commits, with or without
    /// checkpoints.
    ///
    /// A checkpoint has at most as many words as there are operations between it and the previous
    /// checkpoint. So the memory of checkpoints is proportional to the number of operations. A read
    /// at any mark applies at most as many operations as it copies words, or 64.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(super) fn apply_on(
        &mut self,
        item: &WriteItem,
        newest: &mut u32,
        mark: Mark,
        image: &mut [u64],
    ) -> Result<(), (u32, Abort)> {
        let spacing = CHECKPOINT_OPS.max(image.len());
        let (mut next, mut applied) = (item.first_op, 0);
        if let Some((last_op, words)) = self.checkpoints.image_before(*newest, mark) {
            image.copy_from_slice(self.operands(words, image.len()));
            next = self.ops[last_op as usize].1;
        }
        // `NONE`, the end of the list, is also the number of `Mark::NOW`, so the loop ends at the
        // end.
        while next < mark.0 {
            let &(op, after) = self.visit(next).expect("the list goes on");
            self.apply_one(item, &op, image).map_err(|abort| (next, abort))?;
            applied += 1;
            // The operation with this number is not reached if a read at a later mark has already
            // made a later checkpoint.
            if applied == spacing {
                let words = self.push_operands(image.iter().copied());
                self.checkpoints.add(next, UpTo::Image(words), newest);
                applied = 0;
            }
            next = after;
        }
        Ok(())
    }

    /// Returns the last operation of an item before `mark`; `None` if all operations come after
    /// `mark`.
    pub(super) fn last_before(&self, item: &WriteItem, newest: u32, mark: Mark) -> Option<&Op> {
        let known = self.checkpoints.last_op_before(newest, mark);
        let first = known.unwrap_or(item.first_op);
        self.from(first).take_while(|&(number, _)| number < mark.0).last().map(|(_, op)| op)
    }

    /// Returns whether one of an item's operations may fail: of those after the operation `after`,
    /// or of all.
    pub(super) fn may_fail_after(&self, item: &WriteItem, after: Option<u32>) -> bool {
        let first = after.map_or(item.first_op, |number| self.ops[number as usize].1);
        self.from(first).any(|(_, op)| is_fallible(op))
    }

    /// Returns whether one of an item's operations before its first step that waits may fail.
    pub(super) fn may_fail_before_steps(&self, item: &WriteItem) -> bool {
        let steps = self.first_step(item).map_or(NONE, |(number, _)| number);
        let before = self.from(item.first_op).take_while(|&(number, _)| number < steps);
        before.map(|(_, op)| op).any(is_fallible)
    }

    /// Returns the number of words that an item's operations take if they are deferred; `None` if
    /// one of the operations may fail, or cannot be encoded in words.
    pub(super) fn delta_words(&self, item: &WriteItem) -> Option<usize> {
        self.of(item).try_fold(0, |words, (_, op)| {
            let more = match op.is_user() {
                true => self.updater(op).and_then(UserUpdate::words_put_off),
                false => op.words_put_off(),
            };
            more.map(|more| words + more)
        })
    }

    /// Writes an item's operations as a delta.
    pub(super) fn write_delta(&self, item: &WriteItem, room: DeltaSpace<'_>) {
        room.fill(self.of(item).map(|(_, op)| match op.is_user() {
            true => PutOff::User(self.updater(op).expect("a step is not put off")),
            false => PutOff::BuiltIn(*op, self.operands(op.operand, op.operands())),
        }));
    }

    /// Returns the number of words that the results of an item's operations take as a delta.
    pub(super) fn changed_words(&self, item: &WriteItem) -> usize {
        self.of(item).map(|(_, op)| 1 + usize::from(op.words)).sum()
    }

    /// Writes the results of an item's evaluated operations as a delta.
    pub(super) fn write_changes(&self, item: &WriteItem, room: DeltaSpace<'_>) {
        room.fill(self.of(item).map(|(_, op)| {
            let words = self.operands(op.operand, usize::from(op.words));
            PutOff::BuiltIn(Op::set_words(op.word, op.words), words)
        }));
    }

    /// Returns the updater of a user's operation; `None` if the operation is a step.
    fn updater(&self, op: &Op) -> Option<&UserUpdate> {
        match self.users.of(op) {
            UserCode::Updater(update) => Some(update),
            _ => None,
        }
    }

    fn apply_one(&self, item: &WriteItem, op: &Op, image: &mut [u64]) -> Result<(), Abort> {
        if op.is_user() {
            return self.apply_user(item, op, image);
        }
        let word = usize::from(op.word);
        if op.is_plain() {
            let count = usize::from(op.words);
            image[word..word + count].copy_from_slice(self.operands(op.operand, count));
        } else if op.is_wide() {
            let operands = self.operands(op.operand, WIDE_OPERANDS);
            let new = op.compute_wide(operands, [image[word], image[word + 1]])?;
            image[word..word + 2].copy_from_slice(&new);
        } else {
            let operands = &self.operands[op.operand as usize..];
            image[word] = op.evaluate(operands, image[word], are_equal)?;
        }
        Ok(())
    }

    fn apply_user(&self, item: &WriteItem, op: &Op, image: &mut [u64]) -> Result<(), Abort> {
        match self.users.of(op) {
            UserCode::Updater(update) => update.apply(item.at.record(), image),
            &UserCode::Done { image: first } => {
                image.copy_from_slice(self.operands(first, image.len()));
                Ok(())
            }
            UserCode::Step { .. } => unreachable!("a step is run, not applied"),
            UserCode::Late(_) | UserCode::Settled(_) | UserCode::Begin(_) | UserCode::Keyed(_) => {
                unreachable!("no operation names a note or a late row")
            }
        }
    }

    /// Evaluates one operation of an item on `base`, as [`Operations::evaluate`] does.
    ///
    /// # Errors
    /// The outcome of the operation, if it has failed.
    pub(super) fn evaluate_one(&mut self, number: u32, base: Words<'_>) -> Result<(), Abort> {
        let op = *self.get(number);
        if !op.is_plain() {
            self.compute(&op, base)?;
        }
        Ok(())
    }

    /// Replaces the first operand of an operation, or the first two of one on a number of two
    /// words, by what it computes on `base`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn compute(&mut self, op: &Op, base: Words<'_>) -> Result<(), Abort> {
        let (word, operands) = (usize::from(op.word), &mut self.operands[op.operand as usize..]);
        if op.is_wide() {
            let new = op.compute_wide(operands, [base.get(word), base.get(word + 1)])?;
            operands[..2].copy_from_slice(&new);
        } else {
            operands[0] = op.evaluate(operands, base.get(word), are_equal)?;
        }
        Ok(())
    }

    /// Evaluates the operations of an item on `base`. Replaces the first operand of each operation
    /// that is not plain by the computed word, or the first two by the two words.
    ///
    /// # Errors
    /// The number of the operation that failed, and its outcome.
    pub(super) fn evaluate(
        &mut self,
        item: &WriteItem,
        base: Words<'_>,
    ) -> Result<(), (u32, Abort)> {
        let mut number = item.first_op;
        while let Some(&(op, next)) = self.visit(number) {
            if !op.is_plain() {
                self.compute(&op, base).map_err(|abort| (number, abort))?;
            }
            number = next;
        }
        Ok(())
    }
}

/// Returns whether two words have the same value of any length. One is an operand, which the
/// attempt has staged; the other one has been read from a present row in its pin, or is staged, too
/// (BL2).
fn are_equal(expected: u64, word: u64) -> bool {
    long::are_equal(expected, word, &())
}

/// Returns whether an operation leaves the number at a place as it is.
fn is_elsewhere(op: &Op, (word, shift, mask): Place) -> bool {
    let shares_word = (op.word..op.word + op.words).contains(&word);
    !op.is_user() && (!shares_word || (op.mask << op.shift) & (mask << shift) == 0)
}
