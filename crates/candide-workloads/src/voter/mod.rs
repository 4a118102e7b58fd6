//! Voter: telephone votes for the contestants of a talent show. VoltDB defined the benchmark;
//! H-Store, BenchBase and STO adopted it.
//!
//! The transaction of a vote looks up the contestant, the caller's count, and, by the area code,
//! the caller's state. It then adds the vote to the table of votes and to two counts: that of the
//! caller, and that of the contestant in the caller's state. In VoltDB these counts are views, of
//! which the transaction reads the first. Here the counts are tables. One call in a hundred is for
//! a contestant that does not exist. Half of the other calls are for the area's favourite, and the
//! other half are for any contestant.
//!
//! [`Voter::strict`] allows two votes per telephone, as VoltDB does. [`Voter::published`] allows a
//! thousand, as the other three do.

mod area_codes;
mod audit;
mod call;
mod contents;
mod tables;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use candide::{Database, Protocol, Session};
use serde::Serialize;

use crate::replay::Stopped;
use crate::workload::require;
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
use call::Calls;
pub use tables::{AreaCode, Caller, Contest, Contestant, InState, NAMES, StateCount, Vote};
use worker::Done;
pub use worker::VoterWorker;

/// The only transaction type.
const KINDS: [&str; 1] = ["vote"];

/// The number of telephones in an area of the published benchmark: all numbers of seven digits.
pub(crate) const TELEPHONES: u32 = 10_000_000;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Voter {
    /// The number of contestants. They are numbered from 1.
    pub contestants: u32,
    /// The largest number of votes from one telephone.
    pub votes_max: u32,
    /// The number of telephones in each area. There are ten million numbers of seven digits.
    pub telephones: u32,
    /// The percentage of calls for a contestant that does not exist.
    pub invalid_pct: u32,
}

impl Voter {
    /// Returns VoltDB's rules.
    pub fn strict() -> Self {
        Voter { contestants: 6, votes_max: 2, telephones: TELEPHONES, invalid_pct: 1 }
    }

    /// Returns the rules of the later benchmarks.
    pub fn published() -> Self {
        Voter { votes_max: 1000, ..Self::strict() }
    }
}

/// The bytes of a contestant with its counts for all states, before there are votes.
const CONTESTANT_BYTES: u64 = 1_000;
/// The bytes of the rows that one thread inserts in a second on a fast machine.
const GROWTH: u64 = 150_000_000;

impl Workload for Voter {
    type Loaded<P: Protocol> = VoterTables<P>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[
        "contestants",
        "area_code_state",
        "votes",
        "v_votes_by_phone_number",
        "v_votes_by_contestant_number_state",
    ];

    fn name(&self) -> String {
        "voter".to_string()
    }

    fn keys(&self) -> u64 {
        u64::from(self.contestants)
    }

    fn size(&self) -> Size {
        Size::of(u64::from(self.contestants), "contestants", CONTESTANT_BYTES).growing_by(GROWTH)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        let differences = [
            (self.telephones < TELEPHONES, "there are fewer telephones to an area than numbers"),
            (self.invalid_pct == 0, "no call is for a contestant who does not exist"),
        ];
        differences.into_iter().filter(|(differs, _)| *differs).map(|(_, how)| how).collect()
    }

    fn grows(&self) -> bool {
        true
    }

    fn hottest(&self) -> Option<&'static str> {
        Some("v_votes_by_contestant_number_state[1, CA]")
    }

    fn validate(&self) -> Result<(), String> {
        let contestants = NAMES.len();
        require((1..=contestants).contains(&(self.contestants as usize)), || {
            format!("contestants must be from 1 to {contestants}, not {}", self.contestants)
        })?;
        require(self.votes_max > 0, || "a telephone must have at least one vote".to_string())?;
        require((1..=TELEPHONES).contains(&self.telephones), || {
            format!("telephones of an area must be from 1 to {TELEPHONES}, not {}", self.telephones)
        })?;
        require(self.invalid_pct <= 100, || {
            format!("the percentage of invalid calls must be at most 100, not {}", self.invalid_pct)
        })
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<VoterTables<P>, Failure> {
        let contest = Contest::create(db)?;
        db.session()?.run(|tx| contest.enter_area_codes(tx))?;
        loading.fill(db, u64::from(self.contestants), |tx, number| {
            contest.enter(tx, number as u32 + 1)
        })?;
        let (done, workers) = (Mutex::default(), AtomicU64::new(0));
        Ok(VoterTables { contest, knobs: self.clone(), seed: loading.seed, done, workers })
    }
}

/// The filled tables of the contest.
pub struct VoterTables<P: Protocol> {
    /// The tables.
    pub contest: Contest<P>,
    knobs: Voter,
    seed: u64,
    done: Mutex<Done>,
    /// The number of workers so far. Each worker numbers its votes in its own range.
    workers: AtomicU64,
}

impl<P: Protocol> VoterTables<P> {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().expect("no thread panics while counting")
    }
}

impl<P: Protocol> Loaded<P> for VoterTables<P> {
    type Worker = VoterWorker<P>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        _stopped: Stopped<'_>,
    ) -> VoterWorker<P> {
        let calls = Calls::new(&self.knobs, rng::stream(self.seed, thread as u64));
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        VoterWorker::new(session, self.contest.clone(), number, calls, &self.knobs)
    }

    fn absorb(&self, worker: VoterWorker<P>) {
        self.done().add(&worker.into_done());
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        audit::check(&self.contest, session, &self.knobs, &self.done())
    }
}
