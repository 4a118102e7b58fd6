//! The logger: the thread that collects the records of all sessions, and writes them.
//!
//! A *round* takes a cut, empties the buffers of all sessions (LG3), writes one block with all
//! records and the cut, and syncs it. Some of the records may have stamps above the cut; recovery
//! ignores these until a later block closes a cut above them. So if no further records come, a
//! round writes a block without records (LG4). A round begins at once when a thread or a task waits
//! for a commit; otherwise after [`LogOptions::flush_every`](super::LogOptions::flush_every). While
//! a block is being written and synced, buffers fill; so under load one sync serves many commits.

#![forbid(unsafe_code)]

use super::blocks::{BlockError, Blocks};
use super::buffer::Buffer;
use super::level::Level;
use super::notifier::Notifier;
use super::progress::{Call, Progress};
use super::turn::LogTurn;
use crate::error::Abort;
use crate::memory::OutOfMemory;
use crate::sync::{
    AtomicBool, AtomicU64, Duration, MODELLED, Mutex, Ordering, lock, process, sleep,
};
use candide_log::format::commit::RecordBuffer;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// The database, as the logger sees it: a source of cuts.
pub(crate) trait Cuts: Send + Sync + Debug {
    /// Returns a cut, as `Protocol::cut` does; `None` if the database has been dropped.
    fn cut(&self) -> Option<u64>;

    /// Notes that a block has been written.
    fn has_written(&self) {}

    /// Notes that the log has failed.
    fn has_failed(&self) {}
}

/// The part of a session's log that the logger and the session share.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    buffer: Mutex<Buffer>,
    /// The number of words that the session has put into the buffer, ever. Only the session
    /// changes it.
    appended: AtomicU64,
    /// The number of these words that the logger has made durable, ever. Only the logger changes
    /// it.
    logged: AtomicU64,
    /// Whether the session has ended. The logger forgets the outbox once the buffer is empty.
    is_closed: AtomicBool,
}

impl Outbox {
    /// Returns the turn to log of a commit of the session.
    #[inline]
    pub(crate) fn turn(&self) -> LogTurn<'_> {
        LogTurn::of(&self.buffer)
    }

    /// Makes room in the buffer for a record that the session's next commit adds.
    pub(crate) fn reserve(&self, words: usize) -> Result<(), OutOfMemory> {
        lock(&self.buffer).reserve(words)
    }

    /// Returns the number of words that the session has put into the buffer and that are not
    /// durable yet.
    #[inline]
    pub(crate) fn backlog(&self) -> u64 {
        // Relaxed: an older number makes the session wait longer, or later.
        self.appended.load(Ordering::Relaxed) - self.logged.load(Ordering::Relaxed)
    }

    /// Notes that the session has ended. The records in the buffer are still written.
    pub(crate) fn close(&self) {
        // Relaxed: see `empty_outboxes`.
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// The log of a database.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) progress: Arc<Progress>,
    outboxes: Mutex<Vec<Arc<Outbox>>>,
    /// The number of words that the sessions put into their buffers that are forgotten by now. The
    /// number is changed under the mutex of the outboxes.
    forgotten_words: AtomicU64,
    notifier: Notifier,
    /// Locked during a round.
    writing: Mutex<Writing>,
    /// Whether the logger sleeps without end, so that the next commit must call it.
    is_idle: AtomicBool,
    flush_every: Duration,
    /// The level for which transactions wait by default.
    pub(crate) acknowledge: Level,
}

/// The part of the log that only rounds use.
#[derive(Debug)]
struct Writing {
    /// `None` once the log is closed.
    writer: Option<Box<dyn Blocks>>,
    /// The records that a round has taken from the outboxes and not written yet.
    taken: Vec<(Arc<Outbox>, RecordBuffer)>,
    /// Whether a block has been written since the last confirmation.
    is_unconfirmed: bool,
}

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// No session had a record.
    Empty,
    /// A block is written and synced.
    Written,
    /// The disk has no room for the block, which stays for the next round.
    Full,
    /// The log has failed or is closed.
    Ended,
}

/// The number of empty rounds in a row after which the logger sleeps until a commit calls it. In
/// models, where no time passes, the logger makes no round without a call.
const EMPTY_ROUNDS_MAX: u32 = if MODELLED { 0 } else { 16 };

/// The pause before the logger repeats a round for which the disk had no room.
const FULL_PAUSE: Duration = Duration::from_millis(50);

impl Log {
    /// Returns the log that writes to `writer`. A round begins after `flush_every` at the latest.
    pub(crate) fn new(writer: Box<dyn Blocks>, flush_every: Duration, acknowledge: Level) -> Log {
        let writing = Writing { writer: Some(writer), taken: Vec::new(), is_unconfirmed: false };
        Log {
            progress: Arc::default(),
            outboxes: Mutex::default(),
            forgotten_words: AtomicU64::new(0),
            notifier: Notifier::default(),
            writing: Mutex::new(writing),
            is_idle: AtomicBool::new(false),
            flush_every,
            acknowledge,
        }
    }

    /// Returns the outbox of a new session.
    pub(crate) fn join(&self) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::default());
        lock(&self.outboxes).push(outbox.clone());
        outbox
    }

    /// Notes that a session has put `words` words into its buffer, and wakes the logger if it has
    /// had nothing to do.
    #[inline]
    pub(crate) fn note_appended(&self, outbox: &Outbox, words: u64) {
        // Relaxed: only the session changes the number.
        let appended = outbox.appended.load(Ordering::Relaxed) + words;
        outbox.appended.store(appended, Ordering::Relaxed);
        // The logger stores `is_idle`, and then looks into the buffer, under its lock. So either
        // the logger finds the record, or this load finds the logger idle (E28).
        if self.is_idle.load(Ordering::Relaxed) {
            self.progress.call();
        }
    }

    /// Returns the number of words of all commit records so far.
    pub(crate) fn appended_words(&self) -> u64 {
        let outboxes = lock(&self.outboxes);
        // Relaxed: the number of a session in another thread may be a moment old.
        let counts = outboxes.iter().map(|outbox| outbox.appended.load(Ordering::Relaxed));
        counts.sum::<u64>() + self.forgotten_words.load(Ordering::Relaxed)
    }

    /// Calls `then`, on a thread of the log, once a commit with this stamp is durable, or with
    /// [`Abort::LogFailed`].
    pub(crate) fn call_when_durable(
        &self,
        stamp: u64,
        then: impl FnOnce(Result<(), Abort>) + Send + 'static,
    ) {
        self.notifier.call(&self.progress, stamp, Box::new(then));
    }

    /// Starts the logger's thread, which ends after [`Progress::stop`] or when the database has
    /// been dropped. The thread can be joined, but it cannot join itself, and no thread for which a
    /// waker may wait can join it.
    pub(crate) fn start(self: &Arc<Log>, cuts: Box<dyn Cuts>) -> process::JoinHandle<()> {
        let log = self.clone();
        process::Builder::new()
            .name("candide-log".to_owned())
            .spawn(move || log.run(&*cuts))
            .expect("the operating system starts a thread")
    }

    /// Does the work of the logger's thread, and returns when the thread is to end.
    pub(crate) fn run(&self, cuts: &dyn Cuts) {
        let mut empty_rounds = 0;
        let mut is_full = false;
        loop {
            let call = if is_full {
                // Refused transactions do not call the logger.
                self.progress.await_call(Some(Duration::ZERO))
            } else if self.progress.is_full() {
                self.progress.await_call(Some(FULL_PAUSE.min(self.flush_every)))
            } else if empty_rounds < EMPTY_ROUNDS_MAX {
                self.progress.await_call(Some(self.flush_every))
            } else {
                self.await_commit()
            };
            if call == Call::Stop {
                return;
            }
            let round = self.round(cuts);
            is_full = round == Round::Full;
            match round {
                Round::Empty => empty_rounds += 1,
                Round::Written => {
                    empty_rounds = 0;
                    cuts.has_written();
                }
                Round::Full => sleep(FULL_PAUSE),
                Round::Ended => return,
            }
        }
    }

    /// Waits, while the logger has had nothing to do for some time, until a commit or another call
    /// wakes it.
    fn await_commit(&self) -> Call {
        self.is_idle.store(true, Ordering::Relaxed);
        let call = if self.is_empty() { self.progress.await_call(None) } else { Call::Round };
        self.is_idle.store(false, Ordering::Relaxed);
        call
    }

    /// Returns whether all buffers are empty.
    fn is_empty(&self) -> bool {
        lock(&self.outboxes).iter().all(|outbox| lock(&outbox.buffer).records.is_empty())
    }

    /// Runs one round.
    pub(crate) fn round(&self, cuts: &dyn Cuts) -> Round {
        let Some(cut) = cuts.cut() else { return Round::Ended };
        let round = self.round_up_to(&mut lock(&self.writing), cut);
        self.progress.wake_due();
        if round == Round::Ended {
            cuts.has_failed();
        }
        if round == Round::Written
            && let Some(writer) = &mut lock(&self.writing).writer
        {
            // If the confirmation has failed, the next block fails, too.
            let _ = self.prepare(&mut **writer);
        }
        round
    }

    fn round_up_to(&self, writing: &mut Writing, cut: u64) -> Round {
        let Writing { writer, taken, is_unconfirmed } = writing;
        let Some(writer) = writer else { return Round::Ended };
        // The records left by an earlier round come first. The cut is older than this visit (LG3).
        self.empty_outboxes(taken);
        if taken.is_empty() && !writer.has_pending() {
            // LG4: everything up to the cut is in earlier blocks, which are durable, and the cut of
            // the last block contains it.
            self.progress.reach(Level::Durable, cut);
            let confirmed = if *is_unconfirmed { writer.confirm() } else { Ok(()) };
            *is_unconfirmed = false;
            return match confirmed.and_then(|()| self.prepare_if_full(&mut **writer)) {
                Ok(()) | Err(BlockError::Full) => Round::Empty,
                Err(BlockError::Failed(failure)) => self.fail(failure),
            };
        }
        let parts: Vec<&[u64]> = taken.iter().map(|(_, records)| records.words()).collect();
        match self.write(&mut **writer, &parts, cut) {
            Ok(()) => {}
            Err(BlockError::Full) => {
                self.progress.set_full(true);
                return Round::Full;
            }
            Err(BlockError::Failed(failure)) => return self.fail(failure),
        }
        *is_unconfirmed = true;
        for (outbox, records) in &*taken {
            let logged = outbox.logged.load(Ordering::Relaxed) + records.words().len() as u64;
            outbox.logged.store(logged, Ordering::Relaxed);
        }
        self.progress.reach(Level::Durable, cut);
        self.progress.set_full(false);
        for (outbox, records) in taken.drain(..) {
            // The next commit of the session may have its turn. This thread does not wait for it.
            lock(&outbox.buffer).give_back(records);
        }
        Round::Written
    }

    /// Makes room for later blocks. Without room, transactions cannot write, so that everything
    /// committed before finds room.
    fn prepare(&self, writer: &mut dyn Blocks) -> Result<(), BlockError> {
        let prepared = writer.prepare();
        self.progress.set_full(matches!(prepared, Err(BlockError::Full)));
        prepared
    }

    /// Tries again to make room, if there was none.
    fn prepare_if_full(&self, writer: &mut dyn Blocks) -> Result<(), BlockError> {
        if self.progress.is_full() { self.prepare(writer) } else { Ok(()) }
    }

    #[cold]
    fn fail(&self, failure: io::Error) -> Round {
        self.progress.fail(failure);
        Round::Ended
    }

    /// Takes the records of all sessions, and forgets the sessions that have ended.
    fn empty_outboxes(&self, taken: &mut Vec<(Arc<Outbox>, RecordBuffer)>) {
        lock(&self.outboxes).retain(|outbox| {
            // Relaxed: if the session has ended, it has left its last record before, and the lock
            // of the buffer shows the record (E27).
            let is_closed = outbox.is_closed.load(Ordering::Relaxed);
            let mut buffer = lock(&outbox.buffer);
            if !buffer.records.is_empty() {
                taken.push((outbox.clone(), buffer.take()));
            }
            if is_closed {
                let words = outbox.appended.load(Ordering::Relaxed);
                self.forgotten_words.fetch_add(words, Ordering::Relaxed);
            }
            !is_closed
        });
    }

    /// Writes a block and syncs it.
    fn write(&self, writer: &mut dyn Blocks, parts: &[&[u64]], cut: u64) -> Result<(), BlockError> {
        writer.write(parts, cut)?;
        self.progress.reach(Level::Written, cut);
        writer.sync()
    }

    /// Makes room for blocks to come, as after a block.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn prepare_for_tests(&self) {
        let mut writing = lock(&self.writing);
        let writer = writing.writer.as_mut().expect("the log is not closed");
        let _ = self.prepare(&mut **writer);
    }

    /// Returns whether no commit has its turn to log.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn is_free(&self) -> bool {
        lock(&self.outboxes).iter().all(|outbox| crate::sync::try_lock(&outbox.buffer).is_some())
    }

    /// Writes everything that has been committed, confirms it, and ends the log. No transaction is
    /// running any more. `cut` is a cut that was taken after the last commit. A round of the logger
    /// that has begun ends before the log does, and a later round finds no writer.
    ///
    /// # Errors
    /// The reason for which something that has been committed is not durable.
    pub(crate) fn close(&self, cut: u64) -> Result<(), Arc<io::Error>> {
        let mut writing = lock(&self.writing);
        if self.round_up_to(&mut writing, cut) == Round::Full {
            let problem = "the disk has no room for the last commits";
            self.progress.fail(io::Error::new(io::ErrorKind::StorageFull, problem));
        }
        if let Some(writer) = writing.writer.take()
            && let Err(BlockError::Failed(failure)) = writer.close()
        {
            self.progress.fail(failure);
        }
        drop(writing);
        let failure = self.progress.failure();
        // Waits for durable commits end at once. For any other commit there is no log any more.
        self.progress.close();
        self.progress.wake_due();
        self.notifier.end();
        failure.map_or(Ok(()), Err)
    }
}
