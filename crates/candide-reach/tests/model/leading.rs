//! What a leader does.

use crate::rules::Mutant;
use crate::state::*;
use crate::steps::Step;

/// Lets a process lead that has closed all earlier generations, from this state on.
pub fn begin(step: &mut Step<'_>, mut state: State) {
    let node = &mut state.nodes[step.node];
    let list = node.list;
    let mut local = list;
    if step.node == PRIMARY {
        let tail = if step.rules.is(Mutant::SendsTailUnread) {
            node.local.blocks().skip(usize::from(node.known)).collect::<Vec<u8>>()
        } else {
            node.local.blocks().filter(|block| !list.contains(*block)).collect()
        };
        local = tail.into_iter().fold(list, List::push);
        if !list.is_prefix_of(node.local) && !step.rules.is(Mutant::MergesDiverged) {
            step.stop();
            return;
        }
    }
    node.local = local;
    node.phase = Phase::Leading;
    (node.offered, node.acknowledged, node.fresh, node.floors, node.floored) = Default::default();
    (node.next, node.passed) = Default::default();
    step.after.push(state);
}

/// Writes, acknowledges, makes a snapshot and a floor, deletes, and crashes.
pub fn lead(step: &mut Step<'_>) {
    offer_next(step);
    offer_again(step);
    acknowledge(step);
    make_floor(step);
    delete(step);
}

/// Offers the next block: one that only the local log has, or a new one.
fn offer_next(step: &mut Step<'_>) {
    let node = *step.node();
    let place = usize::from(node.offered) + 1;
    if node.offered - node.acknowledged >= step.rules.window || place >= PLACES {
        return;
    }
    let generation = node.claim as usize;
    let at = node.list.len() as usize + usize::from(node.offered - node.acknowledged);
    if let Some(block) = node.local.blocks().nth(at) {
        step.state(|state, index| {
            state.nodes[index].offered += 1;
            state.blocks[generation][place] = block;
            state.logging[generation][place] |= OWN;
        });
    } else if node.fresh < step.rules.blocks[generation - 1] {
        let block = 3 * (node.claim - 1) + node.fresh + 1;
        step.state(|state, index| {
            let node = &mut state.nodes[index];
            (node.offered, node.fresh) = (node.offered + 1, node.fresh + 1);
            state.behind[usize::from(block)] = node.local.last();
            node.local = node.local.push(block);
            state.blocks[generation][place] = block;
            state.logging[generation][place] |= OWN;
        });
    }
}

/// Offers again what had no answer.
fn offer_again(step: &mut Step<'_>) {
    let node = *step.node();
    for place in node.acknowledged + 1..=node.offered {
        let at = At { generation: node.claim, place };
        if step.before.logged(at) == Logged::Free {
            step.offer(at, OWN);
            if step.rules.is(Mutant::OffersOtherBytes) {
                step.offer(at, OTHER);
            }
        }
    }
}

/// Acknowledges the next place when it is known to have the leader's bytes.
fn acknowledge(step: &mut Step<'_>) {
    let node = *step.node();
    let generation = node.claim as usize;
    let place = usize::from(node.acknowledged) + 1;
    if node.acknowledged == node.offered {
        return;
    }
    let own = step.before.blocks[generation][place];
    let mark = |state: &mut State, block: u8| state.acknowledged[generation] |= 1 << block;
    if step.rules.is(Mutant::AcknowledgesOverGap) && place < usize::from(node.offered) {
        let next = step.before.blocks[generation][place + 1];
        if step.before.log[generation][place + 1] == Logged::Block(next) {
            step.state(|state, _| mark(state, next));
        }
    }
    let is_own = match step.before.log[generation][place] {
        Logged::Free => return,
        Logged::Block(block) => block == own || step.rules.is(Mutant::OffersOtherBytes),
        Logged::End(_) => false,
    };
    if is_own || step.rules.is(Mutant::ExistsIsSuccess) {
        step.state(|state, index| {
            let node = &mut state.nodes[index];
            node.list = node.list.push(own);
            node.known = node.list.len() as u8;
            node.acknowledged += 1;
            mark(state, own);
        });
    } else {
        step.stop();
    }
}

/// Makes a snapshot of what is acknowledged, then the floor that names it.
fn make_floor(step: &mut Step<'_>) {
    let node = *step.node();
    let (generation, place) = (node.claim as usize, usize::from(node.acknowledged));
    if node.acknowledged <= node.floored || node.floors > 0 || node.claim > step.rules.floors {
        return;
    }
    if step.before.snapshots[generation][place].is_empty() {
        step.state(|state, _| state.snapshots[generation][place] = node.list);
        return;
    }
    let number = usize::from(node.floors) + 1;
    match step.before.floors[generation][number] {
        Floored::Free => {
            if step.before.flooring[generation][number] & OWN == 0 {
                step.state(|state, _| {
                    // What was offered once for a place is offered again.
                    let named = &mut state.named[generation][number];
                    *named = if *named == 0 { node.acknowledged } else { *named };
                    state.flooring[generation][number] |= OWN;
                });
            }
        }
        Floored::Floor(covered) => {
            step.with(|node| (node.floors, node.floored) = (node.floors + 1, covered));
        }
        Floored::Seal(_) => step.stop(),
    }
}

/// Deletes the first block that a floor of the leader covers.
fn delete(step: &mut Step<'_>) {
    let node = *step.node();
    let covered =
        if step.rules.is(Mutant::DeletesBeforeFloor) { node.acknowledged } else { node.floored };
    if covered == 0 {
        return;
    }
    let covered = At { generation: node.claim, place: covered };
    for generation in 1..=covered.generation {
        for place in 1..=PLACES as u8 {
            let at = At { generation, place };
            let may_go = match step.before.logged(at) {
                Logged::Free => false,
                Logged::Block(_) => true,
                Logged::End(_) => step.rules.is(Mutant::DeletesEnds),
            };
            if at <= covered && may_go {
                let (generation, place) = (generation as usize, place as usize);
                step.state(|state, _| state.log[generation][place] = Logged::Free);
                return;
            }
        }
    }
}

/// Lets the primary crash, if it may come back. What it has offered is in its own log.
pub fn crash(step: &mut Step<'_>) {
    let is_running = !matches!(step.node().phase, Phase::Down | Phase::Stopped);
    if step.node == PRIMARY && is_running && step.before.restarts < step.rules.restarts {
        step.state(|state, index| {
            state.restarts += 1;
            let node = &mut state.nodes[index];
            node.phase = Phase::Down;
            (node.offered, node.acknowledged) = (0, 0);
            node.number = number_of(PRIMARY, state.restarts);
        });
    }
}
