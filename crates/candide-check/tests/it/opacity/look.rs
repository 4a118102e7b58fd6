//! The look: which versions need one, its steps, what it covers, and what it asks.

use super::list::List;
use super::memory::{At, Cell, Epoch, Id, Lock, Look};
use super::reader::{self, LOOKS_MAX, Reader, Step};
use super::rule::{Mutant, Variant};
use super::scene::Op;
use super::state::{State, World};

/// Returns whether what was read needs a look before it is shown.
pub fn is_hot(world: &World<'_>, reader: &Reader) -> bool {
    let base = reader.base + Epoch::from(world.is(Mutant::EqualEpochIsFree));
    let replaced = matches!(world.op(reader), Some(Op::Hold(_)))
        && world.is(Mutant::HoldReplacesLook)
        || world.is(Mutant::BeginAfterRead) && reader.looks.is_empty();
    let is_hot = |look: &Look| {
        let is_free = matches!(look, Look::Row(..)) && world.is(Mutant::PeekIsFree);
        look.epoch().is_some_and(|epoch| epoch >= base) && !is_free
    };
    let first = if world.is(Mutant::LastOfBatchDecides) { reader.fresh.len() - 1 } else { 0 };
    !replaced && reader.fresh[first..].iter().any(is_hot)
}

/// Loads E1. Where looks may cost too much, it makes the epoch tick first, or gives up.
pub fn load_epoch(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    let mut next = *state;
    next.reader.new_base = state.memory.epoch + Epoch::from(world.is(Mutant::TickAssumed));
    let is_single = state.reader.fresh.len() == 1;
    if world.varies(Variant::RereadsAfterEpoch) && is_single {
        next.reader.at = Step::Again;
    } else if world.is(Mutant::TickReplacesLook) && state.reader.asked {
        reader::show(world, &mut next, state.memory.epoch);
    } else {
        look_from(world, &mut next, 0);
    }
    out.push(next);
    if world.varies(Variant::CostIsBounded) || world.is(Mutant::TickReplacesLook) {
        let mut other = *state;
        if state.reader.asked {
            reader::stop(world, &mut other);
        } else {
            other.memory.epoch += 1;
            other.reader.asked = true;
        }
        out.push(other);
    }
}

/// Reads the cell once more after E1; then it needs no look itself.
pub fn reread(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    let mut next = *state;
    let (Look::Cell(at, version) | Look::Row(at, version)) = &mut next.reader.fresh[0] else {
        unreachable!("a missing key is not hot");
    };
    let cell = state.memory.cell(*at);
    match cell.lock {
        Lock::Dead => reader::stop(world, &mut next),
        Lock::Installing(_) => return,
        Lock::Free | Lock::Held(_) => {
            *version = cell.version;
            look_from(world, &mut next, 0);
        }
    }
    out.push(next);
}

/// Looks at one of all; then continues, or stops.
pub fn look_at(world: &World<'_>, next: &mut State, number: usize) {
    match due(world, &next.reader).get(number) {
        None => conclude(world, next),
        Some(look) if agrees(world, next, *look) => look_from(world, next, number + 1),
        Some(_) => reader::stop(world, next),
    }
}

/// Goes on with this look, or shows what was read if there are no more.
fn look_from(world: &World<'_>, next: &mut State, number: usize) {
    if number < due(world, &next.reader).len() || is_epoch_late(world) {
        next.reader.at = Step::Look(number as u8);
    } else {
        conclude(world, next);
    }
}

/// Shows what was read, after a look that found no change.
fn conclude(world: &World<'_>, next: &mut State) {
    if world.is(Mutant::TickAfterLook) {
        next.memory.epoch += 1;
    }
    reader::show(world, next, base_after(world, next));
}

/// Returns what a look covers: the look-set and what was just read.
fn due(world: &World<'_>, reader: &Reader) -> List<Look, { LOOKS_MAX + 2 }> {
    let rereads = world.varies(Variant::RereadsAfterEpoch) && reader.fresh.len() == 1;
    let fresh = if rereads || world.is(Mutant::NewUnlooked) { &[] } else { &*reader.fresh };
    let is_left_out = |look: &Look| match look {
        _ if world.is(Mutant::NoLook) => true,
        Look::Node(_) => world.is(Mutant::NodesUnlooked),
        Look::Row(..) if world.is(Mutant::PeeksUnlooked) => true,
        Look::Cell(_, version) | Look::Row(_, version) => {
            world.is(Mutant::OldUnlooked) && version.epoch < reader.base
        }
    };
    let mut due = List::default();
    let looks = reader.looks.iter().chain(fresh).filter(|look| !is_left_out(look));
    looks.for_each(|look| due.push(*look));
    if world.varies(Variant::LooksBackwards) {
        due.reverse();
    }
    due
}

/// Returns whether one look finds what was found before, and no INSTALL. What the reader has staged
/// is no lock of its own yet.
fn agrees(world: &World<'_>, state: &State, look: Look) -> bool {
    let is_staged =
        |at: At| world.is(Mutant::StagedPassesLook) && state.reader.writes.contains(&at);
    let passes = |at: At, lock: Lock| match lock {
        Lock::Free => true,
        Lock::Held(owner) => owner == Id::READER || !world.varies(Variant::LockFailsLook),
        Lock::Installing(_) => world.is(Mutant::InstallPassesLook) || is_staged(at),
        Lock::Dead => false,
    };
    let accepts = |cell: Cell| {
        // Its writer had all its locks before E1, and no other one has come since.
        let is_older = cell.version.epoch < state.reader.new_base;
        is_older && !world.varies(Variant::PeeksByVersion) || world.is(Mutant::PeeksByExistence)
    };
    let is_held = |at: At| state.memory.cell(at).lock == Lock::Held(Id::READER);
    match look {
        Look::Cell(at, _) | Look::Row(at, _) if world.is(Mutant::HeldUnlooked) && is_held(at) => {
            true
        }
        _ => state.memory.agrees(world.scene, look, passes, accepts),
    }
}

/// Returns the base after a look that found no change.
fn base_after(world: &World<'_>, state: &State) -> Epoch {
    let reader = &state.reader;
    if world.varies(Variant::BaseKept) {
        reader.base
    } else if world.varies(Variant::BaseOfVersion) {
        reader.fresh.iter().filter_map(|look| look.epoch()).max().unwrap_or(reader.base)
    } else if is_epoch_late(world) {
        state.memory.epoch
    } else {
        reader.new_base
    }
}

/// Returns whether the new epoch is loaded only when the look has ended, which is too late.
pub fn is_epoch_late(world: &World<'_>) -> bool {
    world.is(Mutant::EpochAfterLook) || world.is(Mutant::TickAfterLook)
}
