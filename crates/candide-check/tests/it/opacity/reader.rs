//! The reader: what it does between its begin and its commit.

use super::commit::{self, Commit};
use super::list::List;
use super::look;
use super::memory::{At, Epoch, Id, Ids, KEY, Lock, Look};
use super::rule::{Mutant, Variant};
use super::scene::Op;
use super::state::{State, World};

/// The most cells and nodes that a scene's reader looks at.
pub const LOOKS_MAX: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reader {
    pub at: Step,
    /// The number of the operation that is next or under way.
    pub op: u8,
    /// e0: versions of earlier epochs are taken as they are.
    pub base: Epoch,
    /// E1, between the hot version and the end of the look.
    pub new_base: Epoch,
    /// Whether it has made the epoch tick.
    pub asked: bool,
    /// The look-set.
    pub looks: List<Look, LOOKS_MAX>,
    /// For each look that was shown, the transactions that had all their locks by then.
    pub shown: List<Ids, LOOKS_MAX>,
    /// What was read and is not shown yet.
    pub fresh: List<Look, 2>,
    /// The cells that it writes.
    pub writes: List<At, 2>,
    pub commit: Commit,
    /// The transactions that had ended when it began.
    pub after: Ids,
}

/// What a reader does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Step {
    #[default]
    Begin,
    Pin,
    /// The first access of an operation, or the next one of a batch.
    Access,
    /// The access to a cell that was found through the index.
    Cell,
    /// E1.
    Epoch,
    /// The cell once more, after E1: a variant's.
    Again,
    /// The look at this one of all.
    Look(u8),
    /// The commit, or giving back what is held.
    Commit,
    Nothing,
}

impl Reader {
    pub fn end(&mut self) {
        self.at = Step::Nothing;
    }

    pub fn has_ended(&self) -> bool {
        self.at == Step::Nothing
    }

    /// Stages a write, which is no lock until the commit.
    fn stage(&mut self, at: At) {
        if !self.writes.contains(&at) {
            self.writes.push(at);
        }
    }
}

/// Makes the next step of the reader, in each way that it can go; none if it waits.
pub fn step(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    let mut next = *state;
    match state.reader.at {
        Step::Begin => {
            let epoch = state.memory.epoch;
            let is_first = state.reader.looks.is_empty();
            next.reader.base = epoch.saturating_sub(world.varies(Variant::OldPin).into());
            if is_first {
                next.reader.after = state.past.ended;
            }
            next.reader.at = Step::Pin;
            if !world.scene.buries || !is_first {
                seek(world, &mut next);
            }
            out.push(next);
        }
        Step::Pin => {
            next.memory.pin = Some(state.reader.base);
            seek(world, &mut next);
            out.push(next);
        }
        Step::Access => access(world, state, out),
        Step::Cell => read(world, state, KEY, out),
        Step::Epoch => look::load_epoch(world, state, out),
        Step::Again => look::reread(world, state, out),
        Step::Look(number) => {
            look::look_at(world, &mut next, usize::from(number));
            out.push(next);
        }
        Step::Commit => commit::step(world, state, Id::READER, &state.reader.writes, out),
        Step::Nothing => {}
    }
}

/// Goes on to the next operation that touches what is shared, or to the end.
fn seek(world: &World<'_>, next: &mut State) {
    while let Some(Op::Stage(at)) = world.op(&next.reader) {
        next.reader.stage(at);
        next.reader.op += 1;
    }
    if world.op(&next.reader).is_some() {
        next.reader.at = Step::Access;
    } else if next.reader.writes.is_empty() {
        // Nothing is validated.
        stop(world, next);
    } else {
        next.reader.at = Step::Commit;
    }
}

/// Ends the attempt without a commit: gives back what it holds first.
pub fn stop(world: &World<'_>, next: &mut State) {
    if world.scene.buries || next.memory.locked_by(Id::READER).is_some() {
        next.reader.commit.give_up();
        next.reader.at = Step::Commit;
    } else {
        next.leave(Id::READER, false);
    }
}

/// Makes the first access of an operation, or the next one of a batch: to the index, or to a cell.
fn access(world: &World<'_>, state: &State, out: &mut Vec<State>) {
    let at = match world.op(&state.reader) {
        Some(Op::Read(cells)) => cells[state.reader.fresh.len()],
        Some(Op::Hold(at)) => at,
        _ => KEY,
    };
    if !world.scene.is_indexed(at) {
        return read(world, state, at, out);
    }
    let mut next = *state;
    if state.memory.node.linked {
        next.reader.at = Step::Cell;
    } else if world.op(&state.reader) == Some(Op::Insert) {
        link(world, &mut next);
    } else {
        add(world, &mut next, Look::Node(state.memory.node.version));
    }
    out.push(next);
}

/// Links a record of the reader's own, which tells that the key was missing and needs no epoch. The
/// look at the node follows, if that was of the version before; from then on the record's cell says
/// whether the key is missing.
fn link(world: &World<'_>, next: &mut State) {
    let before = next.memory.node.version;
    next.memory.node.link();
    if !world.is(Mutant::OwnLinkFailsLook) {
        let followed = Look::Node(next.memory.node.version);
        let observed = next.reader.looks.iter_mut().filter(|look| **look == Look::Node(before));
        observed.for_each(|look| *look = followed);
    }
    if !world.is(Mutant::OwnLinkUnwatched) {
        next.reader.fresh.push(Look::Row(KEY, next.memory.cell(KEY).version));
    }
    let base = next.reader.base;
    show(world, next, base);
}

/// Reads a cell, and holds it first if it is read for update.
fn read(world: &World<'_>, state: &State, at: At, out: &mut Vec<State>) {
    let mut next = *state;
    let cell = next.memory.cell_mut(at);
    let has_row = world.scene.has_row(at, cell.version.by);
    let op = world.op(&state.reader);
    let holds = matches!(op, Some(Op::Hold(_))) && has_row;
    let waits_for_held = holds || world.is(Mutant::HeldIsAwaited);
    match cell.lock {
        Lock::Dead => {
            stop(world, &mut next);
            return out.push(next);
        }
        // To give up instead of waiting is the beginning of a run that is explored anyway.
        Lock::Installing(_) if !world.is(Mutant::ReadsInstalling) => return,
        Lock::Held(owner) if owner != Id::READER && waits_for_held => return,
        Lock::Free if holds => cell.lock = Lock::Held(Id::READER),
        _ => {}
    }
    let look = match op {
        Some(Op::Peek | Op::Insert) => Look::Row(at, cell.version),
        _ => Look::Cell(at, cell.version),
    };
    add(world, &mut next, look);
    out.push(next);
}

/// Adds what was read, and decides how it continues when the operation has read all.
fn add(world: &World<'_>, next: &mut State, look: Look) {
    let reader = &mut next.reader;
    reader.fresh.push(look);
    let op = world.op(reader);
    if matches!(op, Some(Op::Read(cells)) if reader.fresh.len() < cells.len()) {
        reader.at = Step::Access;
    } else if !look::is_hot(world, reader) {
        let base = reader.base;
        show(world, next, base);
    } else if look::is_epoch_late(world) {
        reader.at = Step::Look(0);
    } else {
        reader.at = Step::Epoch;
    }
}

/// Shows the closure what was read.
pub fn show(world: &World<'_>, next: &mut State, base: Epoch) {
    let locked = next.past.locked.iter().copied().collect();
    let reader = &mut next.reader;
    if world.op(reader) == Some(Op::Insert) {
        let has_row =
            |look: &Look| matches!(look, Look::Row(at, of) if world.scene.has_row(*at, of.by));
        if !reader.fresh.iter().any(has_row) {
            reader.stage(KEY);
        }
    }
    let is_first = reader.looks.is_empty();
    for look in std::mem::take(&mut reader.fresh).iter() {
        reader.looks.push(*look);
        reader.shown.push(locked);
    }
    reader.base = if world.is(Mutant::BaseWithoutLook) { next.memory.epoch } else { base };
    reader.new_base = 0;
    reader.op += 1;
    seek(world, next);
    if world.is(Mutant::BeginAfterRead) && is_first && next.reader.at == Step::Access {
        next.reader.at = Step::Begin;
    }
}
