//! What a transaction leaves to be done when its session is free: calls to be made, and values to
//! be dropped, which runs code of the program.

#![forbid(unsafe_code)]

use crate::engine::{Common, VALUES_AT_ONCE, keep_buffer};
use crate::record::value::Value;
use crate::sync::{MODELLED, is_inside_transaction};
use crate::txn::Effects;
use std::cell::Cell;

thread_local! {
    /// Whether the thread is dropping values.
    static DROPS: Cell<bool> = const { Cell::new(false) };
}

/// The number of values between the one that is dropped and the one that is prefetched.
const AHEAD: usize = 8;

/// What a transaction leaves. Its values are dropped at the end, also by a panic.
pub(super) struct Left<'a> {
    engine: &'a Common,
    pub(super) effects: Effects,
}

impl<'a> Left<'a> {
    #[inline]
    pub(super) fn of(engine: &'a Common) -> Left<'a> {
        Left { engine, effects: Effects::default() }
    }

    /// Runs all effects of the transaction, which has committed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn run_all(&mut self) {
        if !self.effects.is_empty() {
            self.effects.run_all();
        }
    }
}

impl Drop for Left<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        if !self.effects.is_empty() {
            drop_kept(self.engine, &self.effects);
        }
    }
}

/// Drops the values that a transaction has left, and then what its calls and steps hold.
#[cold]
#[inline(never)]
fn drop_kept(engine: &Common, effects: &Effects) {
    if let Some(mut kept) = effects.take() {
        drop_values(engine, std::mem::take(&mut kept.values));
    }
}

/// Drops values that a transaction or a session of the database has left. The drop of a value may
/// run transactions, and may wait for locks of the program. So if the thread is inside another
/// transaction, or inside such a drop, the values are left to the next transaction; likewise all
/// but some of very many.
#[cold]
#[inline(never)]
pub(super) fn drop_values(engine: &Common, mut values: Vec<Value>) {
    if values.is_empty() {
        return;
    }
    if is_inside_transaction() {
        return engine.shared_garbage.put_unwanted(&mut values);
    }
    let Some(_dropping) = Dropping::begin() else {
        return engine.shared_garbage.put_unwanted(&mut values);
    };
    let mut rest = values.split_off(values.len().min(VALUES_AT_ONCE));
    engine.shared_garbage.put_unwanted(&mut rest);
    let mut rest = values.drain(..);
    while let Some(value) = rest.next() {
        // A value that is dropped is often in no cache.
        rest.as_slice().get(AHEAD).inspect(|later| later.prefetch());
        drop(value);
    }
    drop(rest);
    keep_buffer(values);
}

/// The time during which the thread drops values.
struct Dropping;

impl Dropping {
    /// Returns `None` if the thread drops values already. In a model, whose threads share
    /// thread-local data, that is not known.
    fn begin() -> Option<Dropping> {
        let is_inner = !MODELLED && DROPS.try_with(|drops| drops.replace(true)).unwrap_or(false);
        // Not by `then_some`, which would make one in any case, whose drop ends the outer one.
        if is_inner { None } else { Some(Dropping) }
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        let _ = DROPS.try_with(|drops| drops.set(false));
    }
}
