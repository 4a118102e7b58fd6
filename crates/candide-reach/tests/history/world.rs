//! What the threads of a history share: the place, the seed, the clock, and what was told.

use crate::HANGS;
use crate::lists::{Found, Lists};
use candide::{Abort, Database, Mvcc, Position};
use candide_check::black::{ListOp, Outcome, Transaction};
use candide_reach::sim::{Direction, Faults, SimPlace};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The handles that are paused, and what wakes them.
type Pauses = Arc<(Mutex<BTreeSet<usize>>, Condvar)>;

/// What the threads of a history share.
pub struct World {
    place: SimPlace,
    pauses: Pauses,
    draws: Mutex<fastrand::Rng>,
    clock: AtomicU64,
    told: Mutex<Told>,
}

/// What was told.
#[derive(Default)]
struct Told {
    history: Vec<Transaction<ListOp>>,
    /// The last position of an acknowledged transaction.
    acknowledged: Option<Position>,
    events: BTreeMap<&'static str, u64>,
}

impl World {
    pub fn new(seed: u64) -> World {
        let pauses = Pauses::default();
        let waits = Arc::clone(&pauses);
        let place = SimPlace::new(seed).with_hook(move |handle| {
            let mut paused = waits.0.lock().unwrap();
            while paused.contains(&handle) {
                paused = waits.1.wait(paused).unwrap();
            }
        });
        World {
            place,
            pauses,
            draws: Mutex::new(fastrand::Rng::with_seed(seed)),
            clock: AtomicU64::new(1),
            told: Mutex::default(),
        }
    }

    pub fn place(&self, handle: usize) -> SimPlace {
        self.place.handle(handle)
    }

    /// Returns a number below `below`, which is not 0.
    pub fn draw(&self, below: u64) -> u64 {
        self.draws.lock().unwrap().u64(0..below)
    }

    /// Returns the next time.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns faults that a place may have.
    pub fn draw_faults(&self) -> Faults {
        let some = |most: u64| if self.draw(2) == 0 { self.draw(most) as u8 } else { 0 };
        Faults {
            lost: some(15),
            unanswered: some(20),
            late: some(20),
            twice: some(20),
            old_list: some(50),
            missed: some(15),
            ..Faults::NONE
        }
    }

    pub fn set_faults(&self) {
        self.place.set_faults(self.draw_faults());
    }

    /// Pauses a process at its next call of the place, or lets it go on.
    pub fn pause(&self, handle: usize, is_paused: bool) {
        let mut paused = self.pauses.0.lock().unwrap();
        if is_paused {
            paused.insert(handle);
        } else {
            paused.remove(&handle);
        }
        self.pauses.1.notify_all();
    }

    /// Ends all faults, pauses and cuts.
    pub fn heal(&self) {
        self.pauses.0.lock().unwrap().clear();
        self.pauses.1.notify_all();
        self.place.set_faults(Faults::default());
        for handle in 0..30 {
            for direction in [Direction::Requests, Direction::Answers] {
                self.place.handle(handle).cut(direction, false);
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    pub fn count(&self, event: &'static str) {
        *self.told().events.entry(event).or_default() += 1;
    }

    /// Notes a transaction that has completed now.
    pub fn note(&self, session: u64, invoked: u64, outcome: Outcome, operations: Vec<ListOp>) {
        let completed = self.now();
        let transaction = Transaction { session, invoked, completed, outcome, operations };
        self.told().history.push(transaction);
    }

    /// Notes the position of an acknowledged transaction.
    pub fn acknowledge(&self, position: Position) {
        let mut told = self.told();
        let at = |position: &Position| (position.generation, position.stamp);
        told.acknowledged = told.acknowledged.into_iter().chain([position]).max_by_key(at);
    }

    /// Returns the last position of an acknowledged transaction.
    pub fn acknowledged(&self) -> Option<Position> {
        self.told().acknowledged
    }

    pub fn history(&self) -> Vec<Transaction<ListOp>> {
        self.told().history.clone()
    }

    pub fn events(&self) -> BTreeMap<&'static str, u64> {
        self.told().events.clone()
    }

    /// Waits until something is so.
    pub fn until(&self, what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
        let end = Instant::now() + HANGS;
        while !is_so() {
            if Instant::now() >= end {
                return Err(format!("waited for {what} for {} s", HANGS.as_secs()));
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Reads all lists, as a transaction of the history.
    pub fn read_all(&self, db: &Database<Mvcc>, lists: &Lists) -> Result<Found, String> {
        let invoked = self.now();
        let found = self.peek(db, lists).map_err(|error| error.to_string())?;
        self.note(u64::MAX, invoked, Outcome::Committed, found.reads());
        Ok(found)
    }

    /// Reads all lists in one view.
    pub fn peek(&self, db: &Database<Mvcc>, lists: &Lists) -> Result<Found, Abort> {
        db.read_view(|tx| lists.read_all(tx))
    }
}
