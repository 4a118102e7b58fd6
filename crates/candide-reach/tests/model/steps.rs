//! What can happen next: to requests on their way, and in each process.

use crate::leading;
use crate::rules::{Mutant, Rules};
use crate::state::*;

/// What breaks the protocol in a step.
pub type Violation = String;

/// A step of the process with this index, whose next states are collected.
pub struct Step<'a> {
    pub rules: &'a Rules,
    pub before: &'a State,
    pub node: usize,
    pub after: &'a mut Vec<State>,
}

impl Step<'_> {
    pub fn node(&self) -> &Node {
        &self.before.nodes[self.node]
    }

    /// Adds the state in which only the process has changed.
    pub fn with(&mut self, change: impl FnOnce(&mut Node)) {
        self.state(|state, node| change(&mut state.nodes[node]));
    }

    /// Adds a state.
    pub fn state(&mut self, change: impl FnOnce(&mut State, usize)) {
        let mut state = *self.before;
        change(&mut state, self.node);
        self.after.push(state);
    }

    pub fn stop(&mut self) {
        self.with(|node| node.phase = Phase::Stopped);
    }

    /// Offers an object of the log, unless the request is on its way already.
    pub fn offer(&mut self, at: At, request: Requests) {
        let (generation, place) = (at.generation as usize, at.place as usize);
        if self.before.logging[generation][place] & request == 0 {
            self.state(|state, _| state.logging[generation][place] |= request);
        }
    }
}

/// Collects all states that can follow a state.
pub fn successors(state: &State, rules: &Rules, after: &mut Vec<State>) -> Result<(), Violation> {
    deliver(state, rules, after);
    for node in 0..state.nodes.len() {
        let mut step = Step { rules, before: state, node, after };
        match step.node().phase {
            Phase::Idle => begin(&mut step),
            Phase::Following => follow(&mut step)?,
            Phase::Claiming => claim(&mut step),
            Phase::Sealing => seal(&mut step),
            Phase::Closing => close(&mut step)?,
            Phase::Leading => leading::lead(&mut step),
            Phase::Down => come_back(&mut step),
            Phase::Stopped => {}
        }
        leading::crash(&mut step);
    }
    Ok(())
}

/// Lets each request arrive, get lost, or arrive and stay on its way.
fn deliver(state: &State, rules: &Rules, after: &mut Vec<State>) {
    let bits = |requests: Requests| (0..8).map(|bit| 1 << bit).filter(move |b| requests & b != 0);
    let mut add = |lost: State, arrived: State| {
        after.push(arrived);
        if rules.losses {
            after.push(lost);
        }
    };
    for generation in 1..=GENERATIONS {
        for number in bits(state.claiming[generation]) {
            let mut lost = *state;
            lost.claiming[generation] &= !number;
            let mut arrived = lost;
            if arrived.claims[generation] == 0 {
                arrived.claims[generation] = number.trailing_zeros() as u8;
            }
            add(lost, arrived);
        }
        for place in 1..=PLACES {
            for request in bits(state.logging[generation][place]) {
                let mut lost = *state;
                lost.logging[generation][place] &= !request;
                let mut arrived = lost;
                if arrived.log[generation][place] == Logged::Free {
                    arrived.log[generation][place] = match request {
                        OWN => Logged::Block(state.blocks[generation][place]),
                        OTHER => Logged::Block(11 + place as u8),
                        end => Logged::End(end.trailing_zeros() as u8 - 1),
                    };
                }
                add(lost, arrived);
                if rules.twice {
                    // It stays on its way.
                    lost = arrived;
                    lost.logging[generation][place] |= request;
                    add(lost, lost);
                }
            }
        }
        for place in 1..3 {
            for request in bits(state.flooring[generation][place]) {
                let mut lost = *state;
                lost.flooring[generation][place] &= !request;
                let mut arrived = lost;
                if arrived.floors[generation][place] == Floored::Free {
                    arrived.floors[generation][place] = match request {
                        OWN => Floored::Floor(state.named[generation][place]),
                        seal => Floored::Seal(seal.trailing_zeros() as u8 - 1),
                    };
                }
                add(lost, arrived);
            }
        }
    }
}

/// Lets the newcomer be promoted.
fn begin(step: &mut Step<'_>) {
    if step.rules.promotes[0] {
        promote(step);
    }
}

/// Wants the generation after the newest claim.
fn promote(step: &mut Step<'_>) {
    let claim = step.before.newest() + 1;
    if usize::from(claim) <= GENERATIONS {
        step.with(|node| (node.phase, node.claim) = (Phase::Claiming, claim));
    }
}

/// Opens the primary's directory again: it leads only if the newest claim is its own.
fn come_back(step: &mut Step<'_>) {
    let newest = step.before.claims[step.before.newest() as usize];
    if is_of_primary(newest) || step.rules.claims_against() {
        promote(step);
    } else {
        step.stop();
    }
}

/// Reads what comes next, begins again from a floor, or is promoted.
fn follow(step: &mut Step<'_>) -> Result<(), Violation> {
    let node = *step.node();
    if step.rules.promotes[1] {
        promote(step);
    }
    match step.before.logged(node.next) {
        Logged::Free => {}
        found if !names_what_was_read(step, found) => {}
        Logged::Block(block) => take(step, block)?,
        Logged::End(by) => {
            if usize::from(node.next.generation) < GENERATIONS {
                step.with(|node| go_past_end(node, by));
            }
        }
    }
    for generation in 1..=GENERATIONS {
        for floor in step.before.floors[generation] {
            let Floored::Floor(place) = floor else { continue };
            let at = At { generation: generation as u8, place };
            if at.generation > node.next.generation
                || at.generation == node.next.generation && at.place >= node.next.place
            {
                let list = step.before.snapshots[generation][place as usize];
                step.with(|node| begin_at(node, at, list));
            }
        }
    }
    Ok(())
}

/// Reads a block.
fn take(step: &mut Step<'_>, block: u8) -> Result<(), Violation> {
    let list = step.node().list;
    if list.contains(block) {
        return Err(format!("block {block} is in the log twice"));
    }
    let (last, behind) = (list.last(), step.before.behind[usize::from(block)]);
    if last != behind {
        return Err(format!(
            "block {block} was written behind {behind}, and is read behind {last}"
        ));
    }
    step.with(|node| {
        node.list = node.list.push(block);
        node.next.place += 1;
        node.passed = None;
    });
    Ok(())
}

/// Returns whether an object that is read names the end that was read before it.
fn names_what_was_read(step: &Step<'_>, found: Logged) -> bool {
    let node = step.node();
    let Some(passed) = node.passed else { return true };
    let writer = match found {
        Logged::End(by) => by,
        _ => node.next.generation,
    };
    let named = step.before.ends[writer as usize][node.next.generation as usize - 1];
    named == passed || step.rules.is(Mutant::FollowsAnyEnd)
}

fn go_past_end(node: &mut Node, by: u8) {
    node.passed = Some((node.next.place, by));
    node.next = At { generation: node.next.generation + 1, place: 1 };
}

/// Continues behind a snapshot.
fn begin_at(node: &mut Node, at: At, list: List) {
    node.list = list;
    node.next = At { generation: at.generation.max(1), place: at.place + 1 };
    node.passed = None;
}

/// Offers a claim until its fate is known.
fn claim(step: &mut Step<'_>) {
    let node = *step.node();
    let at = node.claim as usize;
    let found = step.before.claims[at];
    if found == node.number || found == 0 && step.rules.is(Mutant::SilenceIsSuccess) {
        step.with(|node| {
            node.phase = Phase::Sealing;
            let follows = node.phase_before_claim() == Phase::Following;
            node.own = if follows { node.next } else { At::default() };
            node.floor = At::default();
            node.cursor = At { generation: node.claim - 1, place: 1 };
        });
    } else if found != 0 {
        step.with(|node| node.phase = node.phase_before_claim());
    } else if step.before.claiming[at] & 1 << node.number == 0 {
        step.state(|state, _| state.claiming[at] |= 1 << node.number);
    }
}

/// Seals the floors of earlier generations, from the newest down to one that has been led.
fn seal(step: &mut Step<'_>) {
    let node = *step.node();
    let (generation, place) = (node.cursor.generation as usize, node.cursor.place as usize);
    match step.before.floors[generation][place] {
        Floored::Floor(covered) => {
            let at = At { generation: generation as u8, place: covered };
            step.with(|node| {
                node.floor = node.floor.max(at);
                node.cursor.place += 1;
            });
            if step.rules.is(Mutant::BelievesList) {
                step.with(|node| node.cursor.place += 1);
            }
        }
        Floored::Seal(by) if by > node.claim => step.stop(),
        Floored::Free if !step.rules.is(Mutant::NoSeal) => {
            if step.before.flooring[generation][place] & by(node.claim) == 0 {
                step.state(|state, _| state.flooring[generation][place] |= by(node.claim));
            }
        }
        Floored::Seal(_) | Floored::Free => {
            // An end says nothing about the claimant of its generation.
            let was_led = matches!(step.before.log[generation][1], Logged::Block(_))
                || matches!(step.before.floors[generation][1], Floored::Floor(_));
            if was_led || generation == 1 {
                begin_to_close(step);
            } else {
                let generation = generation as u8 - 1;
                step.with(|node| node.cursor = At { generation, place: 1 });
            }
        }
    }
}

/// Continues from the newest floor, or from what the process has itself if that is newer.
fn begin_to_close(step: &mut Step<'_>) {
    let node = *step.node();
    let older = step.before.bases[node.cursor.generation as usize];
    let floor = if node.floor == At::default() && !step.rules.is(Mutant::ForgetsOlderFloor) {
        older
    } else {
        node.floor
    };
    let has_more = |own: At| {
        (own.generation, own.place) > (floor.generation, floor.place)
            || step.rules.is(Mutant::PromotesFromAnywhere) && own != At::default()
    };
    let list = step.before.snapshots[floor.generation as usize][floor.place as usize];
    step.state(|state, index| {
        state.bases[node.claim as usize] = floor;
        let node = &mut state.nodes[index];
        node.phase = Phase::Closing;
        if has_more(node.own) {
            // What it writes next names the end that it has gone past as a follower.
            if let Some(passed) = node.passed {
                state.ends[node.claim as usize][node.next.generation as usize - 1] = passed;
            }
        } else {
            begin_at(node, floor, list);
        }
        (node.own, node.floor, node.cursor) = Default::default();
    });
}

/// Reads the logs of earlier generations, and ends each at its first free place.
fn close(step: &mut Step<'_>) -> Result<(), Violation> {
    let node = *step.node();
    match step.before.logged(node.next) {
        Logged::Free => {
            step.offer(node.next, by(node.claim));
            if step.rules.is(Mutant::LeadsBeforeClosed) {
                leading::begin(step, *step.before);
            }
        }
        found if !names_what_was_read(step, found) => {
            // Only the leader of a later generation deletes what a claimant has to read.
            if step.before.newest() == node.claim {
                return Err(format!("the newest claimant, {}, cannot read the log", node.claim));
            }
            step.stop();
        }
        Logged::Block(block) => take(step, block)?,
        Logged::End(by) if by > node.claim => step.stop(),
        Logged::End(by) => {
            let generation = node.next.generation;
            let is_last =
                generation + 1 >= node.claim || step.rules.is(Mutant::ClosesOneGeneration);
            let mut state = *step.before;
            state.ends[node.claim as usize][generation as usize] = (node.next.place, by);
            if is_last {
                leading::begin(step, state);
            } else {
                go_past_end(&mut state.nodes[step.node], by);
                step.after.push(state);
            }
        }
    }
    Ok(())
}
