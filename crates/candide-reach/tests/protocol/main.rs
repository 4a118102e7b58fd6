//! Leaders and followers over a simulated place, in orders that a seed decides: processes are
//! killed, stopped and started again, requests arrive late, twice or never, lists are old, and the
//! place loses its power. What was acknowledged must be in the log at the end, once, in one order
//! that real time agrees with, and every state that a process has shown must be a prefix of it.
//!
//! `CANDIDE_HISTORIES` is the number of histories, and `CANDIDE_SEED` the first seed.

mod history;
mod process;
mod rules;
mod tools;
mod turns;

use candide_log_testing::play_seeds;
use candide_reach::sim::{Direction, Faults};
use candide_reach::tools::verify;
use candide_reach::{Claim, Leader, random_number};
use history::Writes;
use process::{DATABASE, Directory, PATIENCE, Shared, follow, give_turn, open};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The process that disturbs the others.
const CHAOS: usize = 9;
const PROCESSES: u64 = 3;

/// Returns faults that a place may have, drawn anew for each part of a history.
fn faults(shared: &Shared) -> Faults {
    let some = |most: u64| if shared.draw(2) == 0 { shared.draw(most) as u8 } else { 0 };
    Faults {
        lost: some(20),
        unanswered: some(25),
        late: some(25),
        twice: some(25),
        old_list: some(60),
        missed: some(20),
        flipped: some(5),
        ..Faults::NONE
    }
}

/// Kills, stops and restarts processes, and changes what the place does to requests.
fn disturb(shared: &Arc<Shared>, directories: &[Arc<Mutex<Directory>>]) {
    let mut next = PROCESSES as usize + 10;
    shared.place.set_faults(faults(shared));
    let mut of_primary = 0;
    for _ in 0..12 {
        for _ in 0..shared.draw(100) {
            give_turn();
        }
        let process = shared.draw(PROCESSES) as usize;
        match shared.draw(8) {
            0 => shared.place.set_faults(faults(shared)),
            1 | 2 => {
                // The primary's directory is opened again, as another process.
                shared.turns.kill(of_primary);
                of_primary = next;
                next += 1;
                let directory = Arc::clone(&directories[0]);
                shared.spawn(of_primary, move |shared| open(shared, of_primary, &directory));
            }
            3 => {
                // A standby is replaced by a new one.
                shared.turns.kill(process);
                let (standby, directory) = (next, Arc::new(Mutex::default()));
                next += 1;
                shared.spawn(standby, move |shared| follow(shared, standby, &directory));
            }
            4 => shared.turns.stop(process, !shared.turns.is_stopped(process)),
            5 => shared.place.lose_power(),
            cut => {
                let direction = if cut == 6 { Direction::Requests } else { Direction::Answers };
                shared.place.handle(process).cut(direction, shared.draw(2) == 0);
            }
        }
    }
    (0..next).for_each(|process| {
        shared.turns.stop(process, false);
        shared.turns.kill(process);
    });
}

/// Plays a history and judges it. Returns what has happened.
fn play(seed: u64) -> Result<BTreeMap<&'static str, u64>, String> {
    let shared = Shared::new(seed, 12);
    let directories: Vec<Arc<Mutex<Directory>>> = (0..PROCESSES).map(|_| Arc::default()).collect();
    for (process, directory) in directories.iter().cloned().enumerate() {
        shared.spawn(process, move |shared| match process {
            0 => open(shared, process, &directory),
            _ => follow(shared, process, &directory),
        });
    }
    let disturbed = directories.clone();
    shared.spawn(CHAOS, move |shared| disturb(shared, &disturbed));
    shared.turns.begin();
    loop {
        let Some(thread) = shared.threads.lock().unwrap().pop() else { break };
        thread.join().map_err(|_| "a thread has panicked".to_string())?;
    }
    shared.place.settle();
    shared.place.set_faults(Faults::default());
    (0..100).for_each(|handle| {
        for direction in [Direction::Requests, Direction::Answers] {
            shared.place.handle(handle).cut(direction, false);
        }
    });
    let mut log = Writes::default();
    let claim = Claim {
        database: DATABASE,
        number: random_number(),
        earlier: &[],
        against_others: true,
        position: None,
        patience: PATIENCE,
    };
    let leader = Leader::claim(Arc::new(shared.place.clone()), &claim, &mut log)
        .map_err(|error| format!("the log cannot be read at the end: {error}"))?;
    let verified = verify(Arc::new(shared.place.clone()), PATIENCE).unwrap();
    if !verified.faults.is_empty() {
        return Err(format!("the place has faults: {:?}", verified.faults));
    }
    let mut record = shared.record();
    if leader.generation() > 3 {
        record.count("three generations");
    }
    record.judge(&log)?;
    Ok(record.events.clone())
}

#[test]
fn no_acknowledged_write_is_lost_and_there_is_one_history() {
    let (count, events) = play_seeds([2000, 100_000], play);
    println!("{count} histories: {events:?}");
    if count >= 100 {
        for event in [
            "acknowledged",
            "cleaned",
            "fallen back",
            "fenced",
            "floors",
            "followed",
            "led",
            "opened",
            "promoted",
            "sent again",
            "three generations",
        ] {
            let seen: &u64 = events.get(event).unwrap_or(&0);
            assert!(*seen > 0, "{event} has not happened: {events:?}");
        }
    }
}
