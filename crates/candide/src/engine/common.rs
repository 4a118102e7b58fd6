//! The parts of a database that all of its transactions share.

#![forbid(unsafe_code)]

use super::following::Following;
use super::parts::Parts;
use super::properties::Properties;
use super::shared_queue::SharedQueue;
use super::table_core::TableCore;
use super::watchers::Watchers;
use crate::epoch::{Epochs, PastView};
use crate::error::Error;
use crate::factor::Factors;
use crate::log::Log;
use crate::memory::{LongMemory, Memory};
use crate::stats::Names;
use crate::sync::{AtomicU64, Ordering, Parking, Turns, process};
use crate::timestamps::Timestamps;
use crossbeam_utils::CachePadded;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The options with which a database was built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Whether each column group has a separate cell.
    pub(crate) splitting: bool,
    /// Whether updates read the words of their rows only at the commit. If not, each update
    /// observes the row that it changes.
    pub(crate) commit_time_updates: bool,
    /// Whether the database is opaque. Only used if the protocol leaves that choice to the
    /// database.
    pub(crate) opaque: bool,
    pub(crate) factors: Factors,
    pub(crate) memory_limit_bytes: usize,
    /// The chosen source of timestamps; `None` if the default is used or the protocol draws no
    /// timestamps.
    pub(crate) timestamps: Option<Timestamps>,
    /// Whether commits are counted that OCC would have aborted.
    pub(crate) counts_stale: bool,
    /// The number of milliseconds by which read-only transactions may see the past; zero if they
    /// see the present.
    pub(crate) past_ms: u64,
}

impl Options {
    /// Returns whether commits are counted that OCC would have aborted, which only builds for
    /// experiments can do.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn counts_stale(&self) -> bool {
        cfg!(any(test, feature = "experiments")) && self.counts_stale
    }
}

/// The parts of a database that all of its transactions share, including the protocol's clock.
#[derive(Debug)]
pub(crate) struct Engine<P: Parts> {
    pub(crate) common: Common,
    pub(crate) clock: P::Clock,
}

impl<P: Parts> std::ops::Deref for Engine<P> {
    type Target = Common;

    #[inline]
    fn deref(&self) -> &Common {
        &self.common
    }
}

/// The parts that all transactions of a database share, independent of the protocol.
#[derive(Debug)]
pub(crate) struct Common {
    /// The number of the database. No other database of this process has the same number.
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) properties: Properties,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) memory: Arc<Memory>,
    /// The memory for bytes outside of records. Made with the first table whose rows name such.
    pub(crate) long: OnceLock<Box<LongMemory>>,
    /// Padded, because taking the lock writes to this field, and every transaction reads the fields
    /// around it.
    pub(crate) tables: CachePadded<RwLock<Vec<Arc<TableCore>>>>,
    pub(crate) token: Token,
    /// The place where sessions sleep while they wait for cells or for the token.
    pub(crate) parking: Parking,
    /// The sessions that sleep until something changes that they have observed.
    pub(crate) watchers: Watchers,
    pub(crate) turns: Box<Turns>,
    pub(crate) shared_garbage: SharedQueue,
    /// The names of transactions.
    pub(crate) names: Names,
    /// How many tables have got the number of a dropped one.
    pub(crate) reuses: process::AtomicU64,
    /// The log, once recovery has ended; empty if the database is not durable.
    pub(crate) log: OnceLock<Arc<Log>>,
    /// The view of a database that follows another one; empty if it never has.
    pub(crate) following: OnceLock<Box<Following>>,
    /// The view that read-only transactions share; `None` if they see the present.
    pub(crate) past: Option<Box<PastView>>,
}

impl Common {
    /// Returns the view of a database that follows another one.
    pub(crate) fn following(&self) -> Option<&Following> {
        self.following.get().map(|following| &**following).filter(|following| following.is_on())
    }

    #[inline]
    pub(crate) fn table(&self, number: u16) -> Arc<TableCore> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables[usize::from(number)].clone()
    }

    /// Releases the token if session `id` holds it, and then wakes the sessions that wait for its
    /// release. Returns whether the session held it.
    #[inline]
    pub(crate) fn give_token_back(&self, id: u64) -> bool {
        let had_it = self.token.release(id);
        if had_it && self.parking.has_sleepers() {
            self.parking.wake(self.token.address());
        }
        had_it
    }

    /// Returns the memory for bytes outside of records; `None` if no table's rows name such.
    #[inline]
    pub(crate) fn long_memory(&self) -> Option<&LongMemory> {
        self.long.get().map(|long| &**long)
    }

    #[inline]
    pub(crate) fn memory_limit_error(&self) -> Error {
        Error::MemoryLimit { limit_bytes: self.options.memory_limit_bytes }
    }
}

/// A right that at most one session holds at a time. Other sessions delay their commits for the
/// holder. A session takes the token after too many failed attempts.
#[derive(Debug)]
pub(crate) struct Token(CachePadded<AtomicU64>);

impl Token {
    #[inline]
    pub(crate) fn new() -> Token {
        Token(CachePadded::new(AtomicU64::new(0)))
    }

    /// Takes the token for session `id` (not zero) if no session holds it, not even session `id`.
    /// Returns whether the token was taken.
    #[inline]
    pub(crate) fn try_take(&self, id: u64) -> bool {
        // Relaxed: the token carries no data. If another session sees the change late, the token's
        // holder may need one more attempt.
        self.0.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Releases the token if session `id` holds the token; returns whether it did.
    #[inline]
    pub(crate) fn release(&self, id: u64) -> bool {
        self.0.compare_exchange(id, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns the address at which sessions wait for the release of the token.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Returns whether session `id` holds the token.
    #[inline]
    pub(crate) fn is_held_by(&self, id: u64) -> bool {
        self.0.load(Ordering::Relaxed) == id
    }

    /// Returns whether a session other than `id` holds the token.
    #[inline]
    pub(crate) fn is_others(&self, id: u64) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        holder != 0 && holder != id
    }
}
