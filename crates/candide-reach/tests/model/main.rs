//! An exhaustive model of the protocol of `docs/decisions/2026-11-28-reach.md`: every order in
//! which requests arrive, late, twice or never, and in which processes go on, crash and come back,
//! with up to three leaders one after the other. Each rule that is broken is found.
//!
//! Short runs end after some ten thousand states. With `CANDIDE_FULL=1` they end when there are no
//! more.

mod leading;
mod rules;
mod search;
mod state;
mod steps;

use rules::{MUTANTS, Mutant, Rules};
use search::{Seen, search};

/// One block for each leader, one creation at a time, and both processes may be promoted.
const SMALL: Rules = Rules {
    blocks: [1, 1, 1],
    window: 1,
    restarts: 0,
    promotes: [true, true],
    twice: false,
    losses: true,
    floors: 3,
    breadth: 1,
    seed: 1,
    mutant: None,
};

/// The same with two blocks at a time of the first leader.
const USUAL: Rules = Rules { blocks: [2, 1, 1], window: 2, ..SMALL };

/// The primary comes back; only the newcomer is promoted, and the standby follows.
const RETURN: Rules = Rules { restarts: 1, promotes: [true, false], ..SMALL };

/// Checks that the protocol holds, in all states or in as many as a short run searches.
fn holds(name: &str, rules: &Rules) -> Seen {
    let is_full = std::env::var_os("CANDIDE_FULL").is_some();
    let limit = if is_full { usize::MAX } else { 15_000 };
    match search(rules, limit) {
        Ok(seen) => {
            println!("{name}: {seen:?}");
            seen
        }
        Err((states, violation)) => panic!("{name}, after {states} states: {violation}"),
    }
}

#[test]
fn two_promotions_lose_nothing_and_show_one_history() {
    let seen = holds("two promotions", &USUAL);
    assert!(seen.third > 0 && seen.promoted > 0, "{seen:?}");
}

#[test]
fn requests_that_arrive_twice_change_nothing() {
    let seen = holds("requests twice", &Rules { twice: true, losses: false, ..SMALL });
    assert!(seen.third > 0 && seen.promoted > 0, "{seen:?}");
}

#[test]
fn a_follower_shows_the_history_of_the_leaders() {
    let seen = holds("a follower", &Rules { promotes: [true, false], ..USUAL });
    assert!(seen.followed > 0, "{seen:?}");
}

#[test]
fn a_primary_that_comes_back_sends_its_tail_once_or_does_not_lead() {
    let seen = holds("a primary that comes back", &RETURN);
    assert!(seen.returned > 0 && seen.followed > 0 && seen.third > 0, "{seen:?}");
}

#[test]
fn a_claim_whose_answer_is_lost_is_the_directorys_own() {
    let seen = holds("lost claims", &Rules { restarts: 2, blocks: [1, 1, 0], ..RETURN });
    assert!(seen.returned > 0, "{seen:?}");
}

/// Returns the model in which a mutant is found in few states.
fn finding(mutant: Mutant) -> Rules {
    let calm = Rules { losses: false, floors: 1, ..SMALL };
    match mutant {
        Mutant::AcknowledgesOverGap => Rules { breadth: 5000, promotes: [true, false], ..USUAL },
        Mutant::FollowsAnyEnd => Rules { promotes: [true, false], ..USUAL },
        Mutant::ForgetsOlderFloor | Mutant::PromotesFromAnywhere => calm,
        Mutant::ClaimsAgainstAnother => Rules { breadth: 50, ..RETURN },
        Mutant::MergesDiverged => {
            Rules { blocks: [1, 1, 0], losses: false, floors: 1, breadth: 5000, seed: 0, ..RETURN }
        }
        Mutant::SendsTailUnread => Rules { breadth: 5000, ..RETURN },
        Mutant::ClosesOneGeneration | Mutant::SilenceIsSuccess => SMALL,
        _ => USUAL,
    }
}

#[test]
fn every_broken_rule_is_found() {
    const LIMIT: usize = 40_000;
    for mutant in MUTANTS {
        let found = search(&Rules { mutant: Some(mutant), ..finding(mutant) }, LIMIT);
        let (states, violation) = found.expect_err(&format!("{mutant:?} is not found"));
        println!("{mutant:?}: after {states} states: {violation}");
    }
}
