//! What the programs have in common that consist of stages and are repeated when they have ended:
//! labyrinth, genome, bayes and intruder.
//!
//! The threads meet at the end of each stage. At the end of the program one of them compares the
//! objects with the account, and empties and fills them for the next time. The same comparison
//! follows a run, which may end within a stage: a thread that leaves has ended what it has begun.

use std::sync::{Arc, Mutex};

use candide::report::Stats;
use candide::{Abort, Database, Protocol, Session, Tx};

use super::meeting::{Meeting, Member};
use crate::load::run_unmeasured;
use crate::replay::Stopped;
use crate::workload::lock;
use crate::{Consistency, Failure, Loaded, Loading, Step, Worker};

/// The number of failures that are described. Further ones are only counted.
const FAILURES_MAX: usize = 20;

/// What committed transactions have done since the program began. Each program has numbers for what
/// it counts.
pub(super) type Counts = [u64; 4];

/// The account of the current stage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    /// The number of the stage, from 0.
    pub(super) stage: usize,
    /// What threads have done that are at the end of the stage or have left.
    pub(super) counts: Counts,
    /// The number of times that the program has ended.
    pub(super) ended: u64,
    /// Whether a thread has left since the program began, and none has joined since. Threads that
    /// have nothing left to do wait for the end of the stage, and do not take over what that thread
    /// could have gone on with.
    has_left: bool,
}

/// The part of a program that is the same under all protocols: its inputs, and what its threads
/// share beside the objects.
pub trait Program: Send + Sync + 'static {
    /// The contents of the objects.
    type Found;

    /// The number of stages.
    fn stages(&self) -> usize;

    /// Returns how many transactions per second the sequential program would have committed.
    fn sequential_tps(&self) -> f64;

    /// Compares what was found with the account. If `has_ended`, all work should be done.
    fn settle(
        &self,
        found: &Self::Found,
        stage: usize,
        counts: &[u64; 4],
        has_ended: bool,
    ) -> Consistency;

    /// Prepares the stage that follows one that has ended, or the first one if the program has
    /// ended.
    fn begin(&self, stage: usize);
}

/// What a step of a thread may use.
pub struct Turn<'a, P: Protocol, G> {
    /// The thread's session.
    pub session: &'a mut Session<P>,
    /// The program.
    pub program: &'a G,
    /// The number of the stage.
    pub stage: usize,
    /// What the thread has done, to which the step adds.
    pub counts: &'a mut [u64; 4],
}

/// The transactional objects of a program, and its transactions.
pub trait Objects<P: Protocol>: Clone + Send + Sync + 'static {
    /// The program.
    type Program: Program;
    /// What a thread has in hand between two transactions.
    type Hand: Default + Send;

    /// Makes the objects, empty.
    ///
    /// # Errors
    /// If the database refuses one.
    fn create(db: &Database<P>, program: &Self::Program) -> Result<Self, Failure>;

    /// Fills the objects with the program's inputs.
    ///
    /// # Errors
    /// Those of transactions.
    fn fill(&self, session: &mut Session<P>, program: &Self::Program) -> Result<(), Abort>;

    /// Removes what was `found`.
    ///
    /// # Errors
    /// Those of transactions.
    fn clear(
        &self,
        session: &mut Session<P>,
        program: &Self::Program,
        found: &<Self::Program as Program>::Found,
    ) -> Result<(), Abort>;

    /// Reads all objects.
    ///
    /// # Errors
    /// Those of transactions.
    fn read(
        &self,
        session: &mut Session<P>,
        program: &Self::Program,
    ) -> Result<<Self::Program as Program>::Found, Abort>;

    /// Runs the thread's next transaction. Returns its type and the number of attempts before the
    /// last one; `None` if nothing is left to do in this stage, and the hand is empty. A program
    /// must have at least one transaction, since a step of a worker ends with one.
    ///
    /// # Errors
    /// If the program cannot go on.
    fn step(
        &self,
        turn: Turn<'_, P, Self::Program>,
        hand: &mut Self::Hand,
    ) -> Result<Option<(usize, u64)>, Abort>;

    /// Returns whether a thread must go on before it may leave.
    fn is_busy(hand: &Self::Hand) -> bool;

    /// Ends a stage that another one follows, while no thread runs.
    ///
    /// # Errors
    /// Those of transactions.
    fn end_stage(
        &self,
        _session: &mut Session<P>,
        _program: &Self::Program,
        _stage: usize,
    ) -> Result<(), Abort> {
        Ok(())
    }
}

/// What the threads of a program share.
struct Running<G> {
    program: G,
    meeting: Arc<Meeting<Account>>,
    findings: Mutex<Consistency>,
}

impl<G> Running<G> {
    /// Adds what was found at the end of the program.
    fn add(&self, mut consistency: Consistency) {
        let mut all = lock(&self.findings);
        if all.failed.len() >= FAILURES_MAX {
            consistency.failed.clear();
        }
        all.merge(consistency);
    }
}

/// A program whose objects are filled.
pub struct Repeated<P: Protocol, O: Objects<P>> {
    /// The objects.
    pub objects: O,
    running: Arc<Running<O::Program>>,
}

impl<P: Protocol, O: Objects<P>> Repeated<P, O> {
    /// Makes the program's objects and fills them.
    pub(super) fn load(
        db: &Database<P>,
        loading: &Loading<'_>,
        program: O::Program,
    ) -> Result<Self, Failure> {
        let objects = O::create(db, &program)?;
        loading.go_on()?;
        objects.fill(&mut db.session()?, &program)?;
        (loading.progress)(1);
        program.begin(0);
        let meeting = Arc::new(Meeting::new(Account::default()));
        let running = Arc::new(Running { program, meeting, findings: Mutex::default() });
        Ok(Repeated { objects, running })
    }

    /// Returns the program.
    pub fn program(&self) -> &O::Program {
        &self.running.program
    }

    /// Returns the number of times that the program has ended.
    pub fn ended(&self) -> u64 {
        self.running.meeting.account().0.ended
    }
}

impl<P: Protocol, O: Objects<P>> Loaded<P> for Repeated<P, O> {
    type Worker = Thread<P, O>;

    fn worker_unless(&self, session: Session<P>, _: usize, _: Stopped<'_>) -> Thread<P, O> {
        let (member, Account { stage, .. }) = self.running.meeting.join();
        member.enter(|account| account.has_left = false);
        let (objects, running, hand) =
            (self.objects.clone(), self.running.clone(), O::Hand::default());
        Thread { session, objects, running, hand, stage, counts: Counts::default(), member }
    }

    fn absorb(&self, worker: Thread<P, O>) {
        worker.leave();
    }

    fn sequential_tps(&self, _: u64, _: Stopped<'_>) -> Option<f64> {
        Some(self.running.program.sequential_tps())
    }

    fn check(&self, mut session: Session<P>) -> Result<Consistency, Failure> {
        let Running { program, meeting, findings } = &*self.running;
        let found = self.objects.read(&mut session, program)?;
        let (Account { stage, counts, ended, .. }, _) = meeting.account();
        let mut consistency = program.settle(&found, stage, &counts, false);
        consistency.merge(lock(findings).clone());
        consistency.notes.push(format!("{ended} runs of the program have ended"));
        Ok(consistency)
    }
}

/// A thread of a program.
pub struct Thread<P: Protocol, O: Objects<P>> {
    session: Session<P>,
    objects: O,
    running: Arc<Running<O::Program>>,
    hand: O::Hand,
    stage: usize,
    counts: Counts,
    member: Member<Account>,
}

impl<P: Protocol, O: Objects<P>> Thread<P, O> {
    /// Runs the next transaction of the stage, if any is left.
    fn next(&mut self) -> Result<Option<(usize, u64)>, Abort> {
        let Thread { session, objects, running, hand, stage, counts, .. } = self;
        let turn = Turn { session, program: &running.program, stage: *stage, counts };
        objects.step(turn, hand)
    }

    /// Enters what the thread has done into the account.
    fn enter(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        self.member.enter(|account| {
            account.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        });
    }

    /// Waits for the other threads at the end of the stage. One of them begins the next one.
    fn meet(&mut self) -> Result<(), Abort> {
        self.enter();
        let Thread { session, objects, running, member, .. } = self;
        let (_, account) = member.arrive(|&account, _| {
            let Account { stage, counts, ended, has_left } = account;
            let program = &running.program;
            if stage + 1 < program.stages() {
                objects.end_stage(session, program, stage)?;
                program.begin(stage + 1);
                return Ok(Account { stage: stage + 1, ..account });
            }
            let found = objects.read(session, program)?;
            running.add(program.settle(&found, stage, &counts, !has_left));
            objects.clear(session, program, &found)?;
            objects.fill(session, program)?;
            program.begin(0);
            Ok(Account { ended: ended + 1, ..Account::default() })
        })?;
        self.stage = account.stage;
        Ok(())
    }

    /// Ends what the thread has begun, and leaves.
    fn leave(mut self) {
        while O::is_busy(&self.hand) {
            if let Err(abort) = self.next() {
                let mut failure = Consistency::default();
                failure.expect(false, || format!("a thread could not end its work: {abort}"));
                self.running.add(failure);
                break;
            }
        }
        self.enter();
        self.member.enter(|account| account.has_left = true);
    }
}

impl<P: Protocol, O: Objects<P>> Worker for Thread<P, O> {
    fn step(&mut self) -> Result<Step, Abort> {
        loop {
            if let Some((kind, retries)) = self.next()? {
                return Ok(Step { kind, committed: true, retries });
            }
            self.meet()?;
        }
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }
}

/// The number of changes of a transaction that fills or empties objects.
const BATCH: usize = 64;

/// The work of a transaction on one item.
type Work<'a, P, T> = dyn FnMut(&Tx<'_, P>, &T) -> Result<(), Abort> + 'a;

/// Does `work` for each of `items`, some of them in each transaction. Since `work` is a trait
/// object, this code is compiled once for each protocol and type.
pub(super) fn in_batches<P: Protocol, T>(
    session: &mut Session<P>,
    items: &[T],
    work: &mut Work<'_, P, T>,
) -> Result<(), Abort> {
    items.chunks(BATCH).try_for_each(|items| {
        run_unmeasured(session, &mut |tx| items.iter().try_for_each(|item| work(tx, item)))
    })
}
