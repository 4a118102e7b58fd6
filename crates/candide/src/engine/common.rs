//! The parts of a database that all its transactions share.

#![forbid(unsafe_code)]

use super::parts::Parts;
use super::properties::Properties;
use super::shared_queue::Hot;
use super::table_core::TableCore;
use crate::epoch::Epochs;
use crate::error::Error;
use crate::factor::Factors;
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering, Parking, Turns};
use crate::timestamps::Timestamps;
use crossbeam_utils::CachePadded;
use std::sync::{Arc, PoisonError, RwLock};

/// The options with which a database was built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Each column group has a cell of its own.
    pub(crate) splitting: bool,
    /// Whether updates are blind; otherwise each update observes the row.
    pub(crate) commit_time_updates: bool,
    /// Opaque, where the protocol leaves that open.
    pub(crate) opaque: bool,
    pub(crate) factors: Factors,
    pub(crate) memory_limit_bytes: usize,
    /// If it matters to the protocol.
    pub(crate) timestamps: Option<Timestamps>,
}

/// The part of a database that all its transactions share.
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

/// The shared part that is the same under every protocol.
#[derive(Debug)]
pub(crate) struct Common {
    /// Distinguishes databases of this process.
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) properties: Properties,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) memory: Arc<Memory>,
    /// Padded: taking the lock writes, and the fields around it are read by every transaction.
    pub(crate) tables: CachePadded<RwLock<Vec<Arc<TableCore>>>>,
    pub(crate) token: Token,
    /// The parking lot of sessions that wait for cells or for the token.
    pub(crate) parking: Parking,
    pub(crate) turns: Box<Turns>,
    pub(crate) hot: Hot,
}

impl Common {
    #[inline]
    pub(crate) fn table(&self, number: u16) -> Arc<TableCore> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables[usize::from(number)].clone()
    }

    /// Gives the token back if session `id` has it, and wakes the sessions that give way to it.
    /// Returns whether it had it.
    #[inline]
    pub(crate) fn give_token_back(&self, id: u64) -> bool {
        let had_it = self.token.release(id);
        if had_it && self.parking.has_sleepers() {
            self.parking.wake(self.token.address());
        }
        had_it
    }

    #[inline]
    pub(crate) fn memory_limit_error(&self) -> Error {
        Error::MemoryLimit { limit_bytes: self.options.memory_limit_bytes }
    }
}

/// The right to be yielded to: at most one session has it, after having failed too often.
#[derive(Debug)]
pub(crate) struct Token(CachePadded<AtomicU64>);

impl Token {
    #[inline]
    pub(crate) fn new() -> Token {
        Token(CachePadded::new(AtomicU64::new(0)))
    }

    /// Takes the token for session `id` (not zero) if no session has it, that one included; returns
    /// whether it did.
    #[inline]
    pub(crate) fn try_take(&self, id: u64) -> bool {
        // Relaxed: the token carries no data; seeing it late costs its holder one more attempt.
        self.0.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Gives the token back if session `id` has it; says whether it had.
    #[inline]
    pub(crate) fn release(&self, id: u64) -> bool {
        self.0.compare_exchange(id, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns where sessions wait that give way to its holder.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Whether a session other than `id` has it.
    #[inline]
    pub(crate) fn is_others(&self, id: u64) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        holder != 0 && holder != id
    }
}
