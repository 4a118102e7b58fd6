//! Exploration of all runs of a scene.

use super::burial;
use super::judge::{self, Fault};
use super::memory::Id;
use super::quick::Quick;
use super::reader;
use super::rule::Rule;
use super::scene::Scene;
use super::state::{State, World};
use super::writer;
use std::collections::HashSet;
use std::fmt;

/// A run, step by step.
#[derive(Default)]
pub struct Run(Vec<State>);

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|state| writeln!(f, "\n{state:?}"))
    }
}

/// Explores the runs of a scene, and returns a fault that counts with the first run that has it.
pub fn explore(scene: &Scene, rule: Rule, counts: impl Fn(Fault) -> bool) -> Option<(Fault, Run)> {
    let world = World { scene, rule };
    let first = State::new(scene);
    let mut known: HashSet<State, Quick> = HashSet::from_iter([first]);
    let mut path = vec![(first, steps(&world, &first))];
    let mut is_done = false;
    while let Some((_, open)) = path.last_mut() {
        let Some(next) = open.pop() else {
            path.pop();
            continue;
        };
        if !known.insert(next) {
            continue;
        }
        let open = steps(&world, &next);
        let fault = if next.is_over(scene) {
            judge::fault(&world, &next)
        } else {
            open.is_empty().then_some(Fault::Stuck)
        };
        is_done |= is_complete(scene, &next);
        path.push((next, open));
        if let Some(fault) = fault.filter(|fault| counts(*fault)) {
            let run = Run(path.into_iter().map(|(state, _)| state).collect());
            return Some((fault, run));
        }
    }
    (!is_done).then(|| (Fault::NeverDone, Run::default()))
}

/// Returns whether the reader has ended and done all that it does in a scene.
fn is_complete(scene: &Scene, state: &State) -> bool {
    let reader = &state.reader;
    let has_committed = reader.writes.is_empty() || state.past.committed.has(Id::READER);
    usize::from(reader.op) == scene.ops.len() && has_committed && reader.has_ended()
}

/// Returns the states after each step that is possible.
fn steps(world: &World<'_>, state: &State) -> Vec<State> {
    let mut next = Vec::new();
    if state.is_over(world.scene) {
        return next;
    }
    reader::step(world, state, &mut next);
    for number in 1..=world.scene.writers.len() {
        writer::step(world, state, Id(number as u8), &mut next);
    }
    burial::pass(world, state, &mut next);
    burial::collect(world, state, &mut next);
    next
}
