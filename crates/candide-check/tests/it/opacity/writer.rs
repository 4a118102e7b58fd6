//! Writers: their reads are looked at when they commit, as those of an attempt that is not opaque.

use super::commit::{self, Commit};
use super::list::List;
use super::memory::{Id, Ids, KEY, Lock, Look};
use super::rule::Mutant;
use super::scene::Plan;
use super::state::{State, World};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Writer {
    at: Step,
    pub looks: List<Look, 1>,
    pub commit: Commit,
    /// Those that had ended when it began, once it has.
    pub after: Option<Ids>,
}

/// What a writer does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Step {
    #[default]
    Hold,
    Read,
    /// The record of `KEY`, which it links if it is missing and to be written; what is not there
    /// is not deleted.
    Find,
    Commit,
    Nothing,
}

impl Writer {
    pub fn end(&mut self) {
        self.at = Step::Nothing;
    }

    pub fn has_ended(&self) -> bool {
        self.at == Step::Nothing
    }
}

/// Makes the next step of a writer, unless it waits.
pub fn step(world: &World<'_>, state: &State, id: Id, out: &mut Vec<State>) {
    let plan = &world.scene.writers[usize::from(id.0 - 1)];
    let mut next = *state;
    let ended = state.past.ended;
    next.writer_mut(id).after.get_or_insert(ended);
    match pending(world, state, id, plan) {
        Step::Hold => {
            let cell = next.memory.cell_mut(plan.holds.expect("a writer that holds"));
            if cell.lock != Lock::Free {
                return;
            }
            cell.lock = Lock::Held(id);
            next.writer_mut(id).at = Step::Read;
            out.push(next);
        }
        Step::Read => {
            let at = plan.reads[state.writer(id).looks.len()];
            let cell = state.memory.cell(at);
            if let Lock::Installing(_) = cell.lock {
                return;
            }
            if cell.lock != Lock::Free && world.is(Mutant::HeldIsAwaited) {
                return;
            }
            next.writer_mut(id).at = Step::Read;
            next.writer_mut(id).looks.push(Look::Cell(at, cell.version));
            out.push(next);
        }
        Step::Find => {
            next.writer_mut(id).at = Step::Commit;
            match (state.memory.node.linked, plan.deletes) {
                (true, _) => {}
                (false, false) => next.memory.node.link(),
                (false, true) => next.leave(id, false),
            }
            out.push(next);
        }
        Step::Commit => {
            next.writer_mut(id).at = Step::Commit;
            commit::step(world, &next, id, plan.writes, out);
        }
        Step::Nothing => {}
    }
}

/// Returns what a writer does next, past what its plan does not have.
fn pending(world: &World<'_>, state: &State, id: Id, plan: &Plan) -> Step {
    let writer = state.writer(id);
    let finds = world.scene.is_indexed(KEY)
        && plan.writes.contains(&KEY)
        && (plan.deletes || !state.memory.node.linked && !world.is(Mutant::LinkAfterEpoch));
    match writer.at {
        Step::Hold if plan.holds.is_some() => Step::Hold,
        Step::Hold | Step::Read if writer.looks.len() < plan.reads.len() => Step::Read,
        Step::Hold | Step::Read | Step::Find if finds => Step::Find,
        Step::Hold | Step::Read | Step::Find => Step::Commit,
        at => at,
    }
}
