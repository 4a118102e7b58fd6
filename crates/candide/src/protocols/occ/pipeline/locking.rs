//! Phase L of a commit in a pipeline.

#![forbid(unsafe_code)]

use super::super::early::{Early, Hold, WRITER_ASKS, patience};
use super::super::{Attempt, Occ};
use crate::access::{WriteItem, WriteSet};
use crate::engine::{Context, own_thread};
use crate::error::Abort;
use crate::protocols::shared::cell_lock::{release_cell, try_lock};
use crate::record::{CellAt, Tid};
use crate::sync::{MODELLED, Ordering, Point, Wait, Waited, Wish, pass};

/// Locks the items of the links from number `first` on, in the order of ranks.
///
/// # Errors
/// A conflict, with its cell. The items before keep their locks.
pub(super) fn lock_in_order(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    first: usize,
) -> Result<(), (Abort, CellAt)> {
    pass(Point::Unlocked);
    for number in first..attempt.early.links().len() {
        let link = attempt.early.links()[number];
        let item = &mut writes.items_mut()[link.index];
        let locked = match attempt.early.approach(context, number) {
            true => attempt.early.take(context, number, item),
            false => lock_alone(context, attempt, item).map(|()| attempt.early.note_alone(number)),
        };
        locked.map_err(|abort| (abort, link.at))?;
        attempt.early.hand_on(context, number);
    }
    attempt.early.end_locking(context);
    pass(Point::Locked);
    Ok(())
}

/// Locks the TID word of an item's cell, which is not pipelined, as phase 1 of `occ` does. Waits as
/// long as for a commit at most, so no circle of waits lasts.
fn lock_alone(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    item: &mut WriteItem,
) -> Result<(), Abort> {
    let at = item.at;
    let has = |flags| Tid(at.cell_word(0).load(Ordering::Relaxed)).has(flags);
    let mut unasked = WRITER_ASKS;
    let mut wait: Option<Wait<'_>> = None;
    loop {
        if has(unasked) {
            unasked = 0;
            attempt.early.before_lock(context, at)?;
        }
        if try_lock(item, unasked)? {
            return Ok(());
        }
        if has(unasked) {
            continue;
        }
        let sleeps = !MODELLED && !own_thread::is_held_by_another(at, context.local.id);
        let parking = &context.engine.parking;
        let waiting = wait
            .get_or_insert_with(|| Wait::new(parking, at.address(), Wish::Look, patience(sleeps)));
        if waiting.wait() == Waited::InVain {
            return Err(Abort::Locked);
        }
    }
}

/// Releases the items that are locked without a chain, in a commit that has failed.
pub(super) fn release_alone(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
) {
    for number in 0..attempt.early.links().len() {
        let link = attempt.early.links()[number];
        let item = &mut writes.items_mut()[link.index];
        if link.hold != Hold::InChain && item.note != 0 {
            release_cell(context, link.at, Tid(item.note).unlocked());
            item.note = 0;
        }
        if link.hold != Hold::InChain {
            attempt.early.release_unlisted(context, link.at);
        }
    }
}
