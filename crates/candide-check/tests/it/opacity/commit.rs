//! The commit of a transaction that writes, be it a writer or the reader: lock, fence, epoch,
//! validation, install.

use super::memory::{At, Cell, Epoch, Id, KEY, Lock, Version};
use super::rule::{Mutant, Variant};
use super::state::{State, World};

/// How far a commit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Commit {
    phase: Phase,
    /// The epoch of its versions, once it is loaded.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The next is the lock of this one of the cells that are written.
    Lock(u8),
    /// The next is the epoch, or a look at this one of what was seen.
    Validate(u8),
    Install(u8),
    /// What is still locked is given back; nothing is locked afterwards.
    GiveBack {
        committed: bool,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Phase::Lock(0)
    }
}

impl Commit {
    /// Goes on with giving back, without a commit.
    pub fn give_up(&mut self) {
        self.phase = Phase::GiveBack { committed: false };
    }

    /// Takes the epoch, and with it the next step.
    fn load(mut self, epoch: Epoch) -> Self {
        self.epoch = Some(epoch);
        self
    }
}

/// Makes the next step of a transaction that commits or gives back.
pub fn step(world: &World<'_>, state: &State, id: Id, writes: &[At], out: &mut Vec<State>) {
    let mut next = *state;
    match state.commit(id).phase {
        Phase::Lock(number) => lock(world, &mut next, id, writes, number),
        Phase::Validate(number) => {
            let may_abort =
                id != Id::READER && world.scene.writers[usize::from(id.0 - 1)].may_abort;
            validate(world, &mut next, id, writes, number);
            if may_abort && next.commit(id).phase == Phase::Install(0) {
                let mut aborted = next;
                aborted.commit_mut(id).give_up();
                out.push(aborted);
            }
        }
        Phase::Install(number) => install(&mut next, id, writes, number),
        Phase::GiveBack { committed } => match next.memory.locked_by(id) {
            Some(at) => next.memory.cell_mut(at).lock = Lock::Free,
            None => next.leave(id, committed),
        },
    }
    out.push(next);
}

fn lock(world: &World<'_>, next: &mut State, id: Id, writes: &[At], number: u8) {
    let commit = next.commit(id);
    let is_early = world.is(Mutant::EpochBeforeLocks) && number == 0
        || world.is(Mutant::EpochBetweenLocks) && number == 1;
    if is_early && commit.epoch.is_none() {
        *next.commit_mut(id) = commit.load(next.memory.epoch);
        return;
    }
    let cell = next.memory.cell_mut(writes[usize::from(number)]);
    let is_last = usize::from(number) + 1 == writes.len();
    cell.lock = match cell.lock {
        Lock::Held(owner) if owner == id && world.is(Mutant::HeldInstallsLate) => cell.lock,
        Lock::Held(owner) if owner == id => Lock::Installing(id),
        Lock::Free => Lock::Installing(id),
        _ => return next.commit_mut(id).give_up(),
    };
    if is_last {
        next.past.locked.push(id);
    }
    next.commit_mut(id).phase = if is_last { Phase::Validate(0) } else { Phase::Lock(number + 1) };
}

fn validate(world: &World<'_>, next: &mut State, id: Id, writes: &[At], number: u8) {
    let looks = match id {
        Id::READER if world.is(Mutant::OpaqueReadsUnvalidated) => &[],
        _ => next.looks(id),
    };
    let look = looks.get(usize::from(number)).copied();
    let commit = next.commit(id);
    if commit.epoch.is_none() && (look.is_none() || !world.varies(Variant::EpochAfterValidation)) {
        *next.commit_mut(id) = commit.load(next.memory.epoch);
        return;
    }
    if world.is(Mutant::LinkAfterEpoch) && writes.contains(&KEY) && !next.memory.node.linked {
        return next.memory.node.link();
    }
    if let Some(look) = look {
        let passes = |_: At, lock: Lock| match lock {
            Lock::Free | Lock::Held(_) => true,
            Lock::Installing(owner) if owner == id => !world.is(Mutant::OwnInstallUnexcused),
            Lock::Installing(_) => world.is(Mutant::OthersInstallExcused),
            Lock::Dead => false,
        };
        // What is locked stays as it is.
        let accepts = |cell: Cell| cell.lock == Lock::Installing(id);
        match next.memory.agrees(world.scene, look, passes, accepts) {
            true => next.commit_mut(id).phase = Phase::Validate(number + 1),
            false => next.commit_mut(id).give_up(),
        }
        return;
    }
    // Only the mutant that raises INSTALL late has such a cell.
    let held = writes.iter().find(|at| next.memory.cell(**at).lock == Lock::Held(id));
    match held {
        Some(at) => next.memory.cell_mut(*at).lock = Lock::Installing(id),
        None => next.commit_mut(id).phase = Phase::Install(0),
    }
}

fn install(next: &mut State, id: Id, writes: &[At], number: u8) {
    let epoch = next.commit(id).epoch.expect("loaded before validation ends");
    let cell = next.memory.cell_mut(writes[usize::from(number)]);
    cell.version = Version { by: id, epoch: epoch.max(cell.version.epoch) };
    cell.lock = Lock::Free;
    if usize::from(number) + 1 < writes.len() {
        next.commit_mut(id).phase = Phase::Install(number + 1);
    } else if next.memory.locked_by(id).is_some() {
        next.commit_mut(id).phase = Phase::GiveBack { committed: true };
    } else {
        next.leave(id, true);
    }
}
