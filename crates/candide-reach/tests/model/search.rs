//! The search through all states, and what must hold in each.

use crate::rules::{Mutant, Rules};
use crate::state::*;
use crate::steps::{Violation, successors};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// What a search has met, so that a model in which nothing happens does not count as correct.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub states: usize,
    /// States with an acknowledgement by the leader of generation 3.
    pub third: usize,
    /// States in which the standby has read a block of a later generation than it began with.
    pub followed: usize,
    /// States in which a primary that came back has acknowledged a block again or a new one.
    pub returned: usize,
    /// States in which a standby leads and has acknowledged.
    pub promoted: usize,
}

/// Searches at most `limit` states.
///
/// # Errors
/// A violation, and the number of states until it was found.
pub fn search(rules: &Rules, limit: usize) -> Result<Seen, (usize, Violation)> {
    // Two hashes of 64 bits with fixed keys: the numbers of states are the same in every run.
    let mut met: HashSet<u128, BuildHasherDefault<Folded>> = HashSet::default();
    let mut stack = vec![State::first()];
    let mut after = Vec::new();
    let mut seen = Seen::default();
    let mut order = rules.seed;
    met.insert(hash(&stack[0]));
    let mut draw = |below: usize| {
        order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (order >> 33) as usize % below.max(1)
    };
    while !stack.is_empty() {
        // One of the states met last, so that a search goes deep in many directions.
        let back = draw(stack.len().min(rules.breadth));
        let state = stack.swap_remove(stack.len() - 1 - back);
        successors(&state, rules, &mut after).map_err(|violation| (met.len(), violation))?;
        let turn = draw(after.len());
        after.rotate_left(turn);
        for state in after.drain(..) {
            if met.insert(hash(&state)) {
                check(&state, rules).map_err(|violation| (met.len(), violation))?;
                count(&state, &mut seen);
                stack.push(state);
            }
        }
        if met.len() > limit {
            break;
        }
    }
    seen.states = met.len();
    Ok(seen)
}

fn count(state: &State, seen: &mut Seen) {
    let [primary, _, standby] = &state.nodes;
    seen.third += usize::from(state.nodes.iter().any(|n| n.claim == 3 && n.acknowledged > 0));
    let follows = standby.phase == Phase::Following;
    seen.followed += usize::from(follows && standby.next.generation > 1 && standby.next.place > 1);
    seen.returned += usize::from(primary.claim > 1 && primary.acknowledged > 0);
    seen.promoted += usize::from(standby.acknowledged > 0);
}

/// Checks what must hold in every state.
fn check(state: &State, rules: &Rules) -> Result<(), Violation> {
    for node in state.nodes.iter().filter(|node| node.acknowledged > 0) {
        for generation in 1..node.claim {
            for block in 1..16 {
                if state.acknowledged[generation as usize] >> block & 1 == 1
                    && !node.list.contains(block)
                {
                    return Err(format!(
                        "block {block} was acknowledged in generation {generation}, and the \
                         leader of generation {} lacks it",
                        node.claim
                    ));
                }
            }
        }
    }
    let standby = &state.nodes[STANDBY];
    if standby.phase == Phase::Following && !standby.list.is_empty() {
        for leader in state.nodes.iter().filter(|node| node.acknowledged > 0) {
            let one = standby.list.is_prefix_of(leader.list);
            let other = leader.list.is_prefix_of(standby.list);
            // The generation of the last block that was read, at least.
            let read = standby.next.generation - u8::from(standby.next.place == 1);
            let holds = if leader.claim > read { one } else { one || other };
            if !holds {
                return Err(format!("the standby shows another history than {}", leader.claim));
            }
        }
    }
    // A directory leads again only if no other process has claimed since.
    for claim in 2..=GENERATIONS {
        let came_back = is_of_primary(state.claims[claim]);
        if came_back && !is_of_primary(state.claims[claim - 1]) && !rules.is(Mutant::MergesDiverged)
        {
            return Err(format!("a primary that came back has made claim {claim}"));
        }
    }
    Ok(())
}

fn hash(state: &State) -> u128 {
    let mut first = DefaultHasher::new();
    state.hash(&mut first);
    let mut second = first.clone();
    77_u8.hash(&mut second);
    u128::from(first.finish()) << 64 | u128::from(second.finish())
}

/// The hash of what is a hash already.
#[derive(Debug, Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 128 bits");
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}
