//! The sequences of a database by name: the numbers that each has given away, and the limits that
//! keep recovery from giving them away again.
//!
//! In a database in memory, a sequence is a counter and nothing else. In a database with a log, a
//! sequence also has a row in the table [`SEQUENCES`], with a *limit*. A later opening of the
//! database begins above the limit that it finds there. The *durable limit* is a copy in memory,
//! and may be smaller than the limit in the row. A transaction that draws a number up to the
//! durable limit writes nothing because of that.
//!
//! # Invariants
//! * **SQ1** A number is drawn by one `fetch_add` on one counter. So no two calls return the same
//!   number, and a call returns a larger number than each call that has returned before it began.
//! * **SQ2** A transaction that draws a number above the durable limit raises the limit in the row
//!   above that number, by an update in its own write set. The update stays there when a part of
//!   the transaction is undone (`txn/limits.rs`). The commit record with the transaction's writes
//!   therefore has the limit, too.
//! * **SQ3** The durable limit is a limit with which the database was opened, or a limit that a
//!   commit has written and the log has made durable since. So every later recovery finds it, or a
//!   larger one: an update of the row is a `max`, and by C1 the row has the largest limit of all
//!   commits that are recovered, whatever their order is.
//!
//! # Why recovery begins above every number of a recovered transaction
//! Let a transaction T, which drew n, be recovered. If n was above the durable limit at the draw,
//! T's own commit record has raised the limit above n (SQ2). Otherwise that limit was durable when
//! T drew n, so before T committed, and is recovered wherever T is (SQ3). The argument compares
//! neither stamps nor versions of two commits. So it holds under each protocol, also where the
//! serial order differs from real time, and at each level: [`Level`] determines for what a
//! transaction waits, and not what is logged.
//!
//! Recovery also begins above each number that a program has received at [`Level::Durable`], even
//! if the transaction wrote nothing else. Above the durable limit, the transaction has written the
//! row, and is told when that is durable; up to the durable limit, there is nothing to wait for. A
//! limit that is only committed would not be enough for this: under `Occ`, a transaction without
//! writes draws a number below it, depends on no commit since it has read nothing, and returns at
//! once; then a crash loses the limit. (It would be enough for recovered transactions: the commit
//! that has raised the limit has ended before T draws, so T takes its stamp later, and stamps do
//! not fall. Under `TicToc`, T's version may be below that of the other commit, but prefixes go by
//! stamps, which are epochs there.)

#![forbid(unsafe_code)]

use crate::engine::TableCore;
use crate::error::{Abort, Error};
use crate::log::{Level, Log};
use crate::sync::{AtomicU64, Mutex, Ordering, lock, try_lock};
use crossbeam_utils::CachePadded;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the table of limits, which programs cannot name.
pub(crate) const SEQUENCES: &str = "candide.sequences";

/// The beginning of all names that programs cannot give to tables.
const RESERVED: &str = "candide.";

/// The largest number of a sequence. The number fits into a signed column of 64 bits; and a counter
/// that continues from here, one for each failed call, does not wrap around.
pub(crate) const NUMBER_MAX: u64 = i64::MAX as u64;

/// The distance from a number to the limit that the number's transaction stages.
pub(crate) const BLOCK: u64 = 1024;

/// The distance to the durable limit from which on transactions raise the limit. A new limit
/// becomes durable before numbers reach the old limit, unless more than half a block of numbers is
/// drawn in one round of the logger.
const AHEAD: u64 = BLOCK / 2;

/// The number of drawn numbers of which one raises the limit ahead, so that few transactions write
/// the row.
const ONE_IN: u64 = 16;

/// Checks that a program may give this name to a table.
///
/// # Errors
/// [`Error::ReservedName`].
#[inline(never)]
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if is_reserved(name) {
        return Err(Error::ReservedName { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// The number of names that this thread has compared with those of the engine's own tables.
    pub(crate) static NAMES_READ: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns whether the tables of this name are the engine's own.
pub(super) fn is_reserved(name: &str) -> bool {
    #[cfg(test)]
    NAMES_READ.set(NAMES_READ.get() + 1);
    name.starts_with(RESERVED)
}

/// The sequences of a database by name.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Mutex<BTreeMap<Box<str>, Arc<SequenceCore>>>);

impl Sequences {
    /// Returns the sequence of this name, if the program has asked for it before.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<SequenceCore>> {
        lock(&self.0).get(name).cloned()
    }

    /// Returns the sequences that the program has asked for.
    pub(crate) fn all(&self) -> Vec<Arc<SequenceCore>> {
        lock(&self.0).values().cloned().collect()
    }

    /// Adds a sequence, unless another thread has added one of the same name. Returns the sequence
    /// that has the name.
    pub(crate) fn add(&self, core: SequenceCore) -> Arc<SequenceCore> {
        lock(&self.0).entry(core.name.clone()).or_insert_with(|| Arc::new(core)).clone()
    }
}

/// A sequence, without the protocol of its database.
#[derive(Debug)]
pub(crate) struct SequenceCore {
    name: Box<str>,
    /// The largest number that has been drawn. Padded, since every draw writes to it.
    last: CachePadded<AtomicU64>,
    /// `None` in a database without a log.
    limits: Option<Limits>,
}

/// The limits of a sequence, in a database with a log.
#[derive(Debug)]
struct Limits {
    /// The durable limit (SQ3).
    durable: AtomicU64,
    /// A larger limit that has been committed, if one is known.
    committed: Mutex<Option<Committed>>,
    log: Arc<Log>,
    table: Arc<TableCore>,
}

/// A limit that has been committed.
#[derive(Debug, Clone, Copy)]
struct Committed {
    limit: u64,
    /// A stamp that is at least the stamp of the commit.
    stamp: u64,
}

impl SequenceCore {
    /// Returns a sequence whose numbers need not outlive the process.
    pub(crate) fn in_memory(name: &str) -> SequenceCore {
        SequenceCore { name: name.into(), last: CachePadded::new(AtomicU64::new(0)), limits: None }
    }

    /// Returns a sequence whose row in `table` has had this limit since the database was opened, or
    /// has just been made with limit zero.
    pub(crate) fn logged(
        name: &str,
        limit: u64,
        log: Arc<Log>,
        table: Arc<TableCore>,
    ) -> SequenceCore {
        let (durable, committed) = (AtomicU64::new(limit), Mutex::new(None));
        SequenceCore {
            last: CachePadded::new(AtomicU64::new(limit)),
            limits: Some(Limits { durable, committed, log, table }),
            ..SequenceCore::in_memory(name)
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Draws the next number (SQ1).
    ///
    /// # Errors
    /// [`Abort::Overflow`] behind the largest number.
    #[inline]
    pub(crate) fn draw(&self) -> Result<u64, Abort> {
        // Relaxed: the counter carries no data. A call that begins after another one has returned
        // comes later in the order of the counter's values.
        let last = self.last.fetch_add(1, Ordering::Relaxed);
        if last >= NUMBER_MAX { Err(Abort::Overflow) } else { Ok(last + 1) }
    }

    /// Returns the limit that the transaction which has drawn `number` has to stage (SQ2), and the
    /// table of limits; `None` if the transaction has nothing to stage.
    #[inline]
    pub(crate) fn limit_to_stage(&self, number: u64) -> Option<(u64, &TableCore)> {
        let limits = self.limits.as_ref()?;
        // Relaxed: a limit that is loaded here is on the disk already, and nothing else is.
        if number + AHEAD <= limits.durable.load(Ordering::Relaxed) {
            return None;
        }
        limits.is_due(number).then_some((number + BLOCK, &*limits.table))
    }

    /// Has the next number be above `limit`, which is the durable limit in the row, in a database
    /// that has followed another one until now.
    pub(crate) fn raise_to(&self, limit: u64) {
        self.last.fetch_max(limit, Ordering::Relaxed);
        if let Some(limits) = &self.limits {
            limits.durable.fetch_max(limit, Ordering::Relaxed);
        }
    }

    /// Notes that a transaction which has raised the limit has committed. `stamp` is at least the
    /// stamp of the commit.
    pub(crate) fn note_committed(&self, limit: u64, stamp: u64) {
        if let Some(limits) = &self.limits {
            limits.note_committed(Committed { limit, stamp });
        }
    }

    /// Sets the largest number that has been drawn.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn go_to(&self, last: u64) {
        self.last.store(last, Ordering::Relaxed);
    }
}

impl Limits {
    /// Returns whether the transaction that has drawn `number`, which is not far below the durable
    /// limit, has to raise the limit.
    #[cold]
    #[inline(never)]
    fn is_due(&self, number: u64) -> bool {
        // If another thread is looking, the limit that is known is good enough.
        if let Some(mut committed) = try_lock(&self.committed) {
            self.follow_log(&mut committed);
        }
        let durable = self.durable.load(Ordering::Relaxed);
        number > durable || number + AHEAD > durable && number.is_multiple_of(ONE_IN)
    }

    /// Raises the durable limit if the log has made the committed one durable (SQ3).
    fn follow_log(&self, committed: &mut Option<Committed>) {
        if let Some(Committed { limit, stamp }) = *committed
            && self.log.progress.has_reached(stamp, Level::Durable)
        {
            self.durable.fetch_max(limit, Ordering::Relaxed);
            *committed = None;
        }
    }

    fn note_committed(&self, new: Committed) {
        let mut committed = lock(&self.committed);
        self.follow_log(&mut committed);
        // A limit that the log is about to make durable stays: if each new limit replaced it, none
        // would become durable under load.
        committed.get_or_insert(new);
    }
}
