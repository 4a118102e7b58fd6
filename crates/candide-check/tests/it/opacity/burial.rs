//! The epoch, which passes, and burial: a record without a row is made dead and unlinked when the
//! epoch of its deletion is below the horizon.

use super::memory::{KEY, Lock};
use super::rule::Mutant;
use super::state::{State, World};

/// Makes a step of the advancer: the epoch, or the look at the reader's slot that follows it.
pub fn pass(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    let mut next = *state;
    let memory = &mut next.memory;
    if let Some(epoch) = memory.pass.take() {
        let bound = memory.pin.map_or(epoch, |pin| pin.min(epoch));
        memory.horizon = memory.horizon.max(bound);
        out.push(next);
    } else if memory.ticks > 0 {
        memory.ticks -= 1;
        memory.epoch += 1;
        memory.pass = world.scene.buries.then_some(memory.epoch);
        out.push(next);
    }
}

/// Makes a step of the collector.
pub fn collect(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    if !world.scene.buries || !state.memory.node.linked {
        return;
    }
    let mut next = *state;
    let cell = next.memory.cell_mut(KEY);
    let is_old = cell.version.epoch < state.memory.horizon || world.is(Mutant::BuriedEarly);
    match cell.lock {
        Lock::Dead => next.memory.node.linked = false,
        Lock::Free if !world.scene.has_row(KEY, cell.version.by) && is_old => {
            cell.lock = Lock::Dead
        }
        _ => return,
    }
    out.push(next);
}
