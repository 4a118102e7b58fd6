//! The states that a crash leaves, against the oracle, on random scripts.

use super::oracle::Oracle;
use super::{Files, files, script};
use candide_log_testing::{CrashOptions, CrashState, SimDisk};
use fastrand::Rng;
use std::collections::BTreeSet;

/// The most atoms of which the oracle tries all subsets.
const ATOMS: usize = 9;

/// Calls `check` after each step of many scripts, with the disk and the oracle.
fn after_each_step(mut check: impl FnMut(u64, &SimDisk, &Oracle)) {
    let scripts = if std::env::var_os("CANDIDE_FULL").is_none() { 60 } else { 300 };
    let mut compared = 0;
    for seed in 0..scripts {
        let (disk, mut oracle) = (SimDisk::new(), Oracle::default());
        for step in script::random(&mut Rng::with_seed(seed), 14) {
            script::run(&disk, &step);
            oracle.run(&step);
            if oracle.uncertain() <= ATOMS {
                check(seed, &disk, &oracle);
                compared += 1;
            }
        }
    }
    assert!(compared > scripts * 5, "{compared} positions of {scripts} scripts were compared");
}

/// Returns the states at the last position.
fn last_states(disk: &SimDisk, options: CrashOptions) -> Vec<CrashState> {
    let position = disk.position();
    disk.crash_states(&CrashOptions { first: position, last: position, ..options }).collect()
}

fn contents(states: &[CrashState]) -> BTreeSet<Files> {
    states.iter().map(|state| files(&state.disk())).collect()
}

#[test]
fn exactly_the_states_of_the_definition_are_enumerated() {
    after_each_step(|seed, disk, oracle| {
        let states = last_states(disk, CrashOptions::default());
        assert_eq!(contents(&states), oracle.states(), "{seed}: {:#?}", disk.operations());
    });
}

#[test]
fn sampled_states_are_of_the_definition_and_include_all_and_nothing_kept() {
    let options = CrashOptions { exhaustive: 2, samples: 8, ..CrashOptions::default() };
    after_each_step(|seed, disk, oracle| {
        let (states, allowed) = (contents(&last_states(disk, options.clone())), oracle.states());
        let wrong = states.difference(&allowed).next();
        assert_eq!(wrong, None, "{seed}: {:#?}", disk.operations());
        for subset in [0, u64::MAX] {
            assert!(states.contains(&oracle.state(subset)), "{seed}: {:#?}", disk.operations());
        }
    });
}

#[test]
fn each_piece_is_lost_alone_and_kept_alone_when_states_are_sampled() {
    let options = CrashOptions { exhaustive: 0, samples: 0, ..CrashOptions::default() };
    after_each_step(|seed, disk, oracle| {
        let states = contents(&last_states(disk, options.clone()));
        for atom in 0..oracle.uncertain() {
            for subset in [1 << atom, !(1 << atom)] {
                let expected = oracle.state(subset);
                assert!(states.contains(&expected), "{seed}: {:#?}", disk.operations());
            }
        }
    });
}

#[test]
fn a_state_is_made_again_from_its_identity() {
    let options = CrashOptions { exhaustive: 3, samples: 4, seed: 77, ..CrashOptions::default() };
    after_each_step(|_, disk, _| {
        for state in last_states(disk, options.clone()) {
            let id = state.id().to_string().parse().unwrap();
            let again = disk.state(id).unwrap();
            assert_eq!(files(&again.disk()), files(&state.disk()), "{}", state.describe());
            assert_eq!(again.describe(), state.describe());
        }
    });
}

#[test]
fn the_states_of_all_positions_are_those_of_each_position() {
    let options = CrashOptions { exhaustive: 4, samples: 4, ..CrashOptions::default() };
    for seed in 0..20 {
        let disk = SimDisk::new();
        let mut expected = last_states(&disk, options.clone());
        for step in script::random(&mut Rng::with_seed(seed), 20) {
            script::run(&disk, &step);
            expected.extend(last_states(&disk, options.clone()));
        }
        let all: Vec<CrashState> = disk.crash_states(&options).collect();
        assert_eq!(all.len(), expected.len());
        for (state, expected) in all.iter().zip(&expected) {
            assert_eq!(state.id(), expected.id());
            assert_eq!(files(&state.disk()), files(&expected.disk()));
        }
    }
}

#[test]
fn a_killed_process_leaves_what_it_saw_and_a_crash_may_still_lose_it() {
    for seed in 0..50 {
        let (disk, mut seen) = (SimDisk::new(), Vec::new());
        for step in script::random(&mut Rng::with_seed(seed), 10) {
            seen.push((disk.position(), files(&disk)));
            script::run(&disk, &step);
        }
        for (position, files_then) in seen {
            let killed = disk.at(position);
            assert_eq!(files(&killed), files_then);
            assert_eq!(killed.position(), position);
            let (first, last) = (position, position);
            let options = CrashOptions { first, last, exhaustive: 6, ..Default::default() };
            let of_whole: Vec<CrashState> = disk.crash_states(&options).collect();
            assert_eq!(contents(&last_states(&killed, options)), contents(&of_whole));
        }
    }
}

#[test]
fn everything_in_a_state_is_durable_and_later_changes_are_not() {
    let disk = SimDisk::new();
    for step in script::random(&mut Rng::with_seed(5), 12) {
        script::run(&disk, &step);
    }
    for state in last_states(&disk, CrashOptions { exhaustive: 4, ..Default::default() }) {
        let after = state.disk();
        assert_eq!(contents(&last_states(&after, CrashOptions::default())).len(), 1);
        script::run(&after, &script::Step::Create("new"));
        let expected = BTreeSet::from([files(&state.disk()), files(&after)]);
        assert_eq!(contents(&last_states(&after, CrashOptions::default())), expected);
    }
}
