//! Operations on rows whose keys the commit computes from the results of steps.
//!
//! Such an operation has no item until the commit has found its row. The commit evaluates the items
//! that it has, as far as the inputs of their steps are known, then knows more keys, finds more
//! rows and goes on. So steps run when their inputs are known, and in the order of the program for
//! each unit.

#![forbid(unsafe_code)]

use super::item::{Intent, WriteItem};
use super::keyed_op::KeyedOp;
use super::steps;
use super::user_codes::UserCode;
use super::write_set::{Failure, WriteSet};
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::{Op, Words};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl WriteSet {
    /// Keeps an operation whose units have these numbers of words, and whose steps have the numbers
    /// from `step` on.
    pub(crate) fn push_keyed(
        &mut self,
        (table, intent): (u16, Intent),
        (key, step): (u32, u32),
        units: u64,
        words: impl Iterator<Item = usize>,
    ) {
        let (mut code, mut sum) = (0, 0);
        for (number, count) in words.enumerate() {
            sum += count;
            if intent != Intent::Delete {
                let pushed = self.push_step(step + number as u32, count);
                code = if number == 0 { pushed } else { code };
            }
        }
        let keyed = KeyedOp { table, intent, units, key, step, code, words: sum };
        self.operations.push_user(UserCode::Keyed(keyed));
    }

    /// Returns the operations on rows whose keys the commit computes, in the order of the program.
    pub(crate) fn keyed(&self) -> impl Iterator<Item = KeyedOp> {
        self.operations.users().keyed()
    }

    /// Makes room for the items of such operations, which have `units` units with `words` words in
    /// all, so that a commit adds and evaluates them without an allocation (C4).
    pub(crate) fn reserve_keyed(&mut self, units: usize, words: usize) {
        self.reserve_late(units);
        self.reserve_images(words);
        self.order.clear();
        self.order.reserve(self.operations.next() as usize + units);
    }

    /// Adds the item of a unit of such an operation, the unit with this number among those of the
    /// operation.
    pub(crate) fn stage_keyed(&mut self, keyed: &KeyedOp, number: u32, at: CellAt) {
        let op = match keyed.intent {
            Intent::Delete => Op::DELETE,
            _ => Op {
                code: crate::schema::Code::User,
                operand: keyed.code + number,
                ..Op::set_words(0, at.payload_words() as u16)
            },
        };
        self.push_item(at, keyed.intent, op);
    }

    /// Evaluates what can be evaluated: of items before `from`, what has had to wait, and all of
    /// the others. Returns whether nothing has to wait any more. `base` returns the words that an
    /// item replaces.
    ///
    /// # Errors
    /// A failure, or the panic of user code.
    pub(crate) fn evaluate_ready(
        &mut self,
        from: usize,
        base: impl Fn(&WriteItem) -> Words<'_>,
    ) -> Result<bool, Failure> {
        match catch_unwind(AssertUnwindSafe(|| self.try_evaluate_ready(from, base))) {
            Ok(evaluated) => evaluated.map_err(Failure::Outcome),
            Err(panic) => Err(Failure::Panic(panic)),
        }
    }

    fn try_evaluate_ready(
        &mut self,
        from: usize,
        base: impl Fn(&WriteItem) -> Words<'_>,
    ) -> Result<bool, Abort> {
        let mut order = std::mem::take(&mut self.order);
        if from == 0 {
            order.clear();
            self.images.clear();
        }
        for (index, item) in self.items.iter_mut().enumerate().skip(from) {
            if !item.needs_evaluation {
                continue;
            }
            self.operations.list(item, index as u32, &mut order);
            if item.needs_image {
                let (first, words) = (self.images.len(), item.at.payload_words());
                if self.operations.replaces_unit(item) {
                    self.images.resize(first + words, 0);
                } else {
                    base(item).extend(words, &mut self.images);
                    if self.operations.reads_unit(item) {
                        // The version is known when the predecessors are over.
                        steps::note_observed(item.at, || 0);
                    }
                }
                item.image = first as u32;
            }
        }
        order.sort_unstable();
        steps::compute_ready()?;
        while self.evaluate_once(&mut order, &base)? {
            steps::compute_ready()?;
        }
        steps::compute_ready()?;
        let is_done = order.is_empty();
        self.order = order;
        Ok(is_done)
    }

    /// Evaluates, in the order of the program, what need not wait, and removes it from `order`.
    /// Returns whether there was any, and something is left.
    fn evaluate_once(
        &mut self,
        order: &mut Vec<(u32, u32)>,
        base: impl Fn(&WriteItem) -> Words<'_>,
    ) -> Result<bool, Abort> {
        let (mut left, all) = (0, order.len());
        for place in 0..all {
            let (number, index) = order[place];
            let item = self.items[index as usize];
            let waits = order[..left].iter().any(|&(_, other)| other == index)
                || self.operations.waits_for_input(number);
            if waits {
                order[left] = order[place];
                left += 1;
                continue;
            }
            let evaluated = if item.needs_image {
                let image = &mut self.images[item.image as usize..][..item.at.payload_words()];
                self.operations.apply_or_run(&item, number, image)
            } else {
                self.operations.evaluate_one(number, base(&item))
            };
            evaluated.inspect_err(|&abort| self.note_failed(item.at, number, abort))?;
        }
        order.truncate(left);
        Ok(left > 0 && left < all)
    }
}
