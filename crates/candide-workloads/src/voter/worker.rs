//! The transaction, and the worker that runs it.

use candide::{Abort, Bytes, Protocol, Session, Stats, Tx};

use super::area_codes::NOWHERE;
use super::call::{Call, Calls};
use super::tables::{AreaCode, Caller, Contest, Contestant, InState, StateCount, Vote};
use super::{TELEPHONES, Voter};
use crate::hottest::probe;
use crate::workload::run_counted;
use crate::{Probe, Step, Worker};

/// The numbers of what committed transactions did.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The number of votes that were counted.
    pub(super) votes: u64,
}

impl Done {
    pub(super) fn add(&mut self, other: &Done) {
        self.votes += other.votes;
    }
}

/// The reason why a vote was not counted.
enum Refusal {
    /// The contestant does not exist.
    NoContestant,
    /// The telephone has no vote left.
    TooMany,
    /// The engine's reason.
    Engine(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Self {
        Refusal::Engine(abort)
    }
}

/// The worker of one thread.
pub struct VoterWorker<P: Protocol> {
    session: Session<P>,
    contest: Contest<P>,
    calls: Calls,
    votes_max: u32,
    /// The number of the worker's next vote. Its upper bits identify the worker.
    next: u64,
    done: Done,
}

impl<P: Protocol> VoterWorker<P> {
    pub(super) fn new(
        session: Session<P>,
        contest: Contest<P>,
        number: u64,
        calls: Calls,
        knobs: &Voter,
    ) -> Self {
        VoterWorker {
            session,
            contest,
            calls,
            votes_max: knobs.votes_max,
            next: number << 40,
            done: Done::default(),
        }
    }

    pub(super) fn into_done(self) -> Done {
        self.done
    }
}

impl<P: Protocol> Worker for VoterWorker<P> {
    fn step(&mut self) -> Result<Step, Abort> {
        let VoterWorker { session, contest, calls, votes_max, next, done } = self;
        let (call, id) = (calls.draw(), *next);
        *next += 1;
        let (end, retries) = run_counted(session, |tx| contest.vote(tx, call, id, *votes_max));
        let committed = match end {
            Ok(()) => true,
            Err(Refusal::NoContestant | Refusal::TooMany) => false,
            Err(Refusal::Engine(abort)) => return Err(abort),
        };
        done.votes += u64::from(committed);
        Ok(Step { kind: 0, committed, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        // Three areas in ten favour the first contestant, and no other state has more areas than
        // California.
        let key = InState { contestant: 1, state: Bytes::new(*b"CA") };
        probe(&mut self.session, &self.contest.state_counts, key)
    }
}

impl<P: Protocol> Contest<P> {
    fn vote(&self, tx: &Tx<'_, P>, call: Call, id: u64, votes_max: u32) -> Result<(), Refusal> {
        let Call { telephone, contestant } = call;
        let name = self.contestants.get(tx, &contestant, Contestant::NAME)?;
        std::hint::black_box(name.ok_or(Refusal::NoContestant)?);
        let caller = self.callers.find(tx, &telephone)?;
        let votes = caller.get(Caller::VOTES)?;
        if votes.is_some_and(|votes| votes >= votes_max) {
            return Err(Refusal::TooMany);
        }
        let area = (telephone / u64::from(TELEPHONES)) as u16;
        let state = self.area_codes.get(tx, &area, AreaCode::STATE)?.unwrap_or(Bytes::new(NOWHERE));
        self.votes.insert(tx, Vote { telephone, id, contestant, state, time: id })?;
        match votes {
            Some(votes) => caller.update(Caller::VOTES.set(votes + 1))?,
            None => self.callers.insert(tx, Caller { telephone, votes: 1 })?,
        }
        // All votes write this column, and no vote reads it. An addition cannot fail, so it may be
        // deferred.
        self.state_counts.update(
            tx,
            &InState { contestant, state },
            StateCount::VOTES.wrapping_add(1),
        )?;
        Ok(())
    }
}
