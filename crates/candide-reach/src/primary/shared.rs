//! What the threads of the primary and the engine's calls share.

#![forbid(unsafe_code)]

use super::note::Known;
use crate::leader::Leader;
use candide_log::format::Uuid;
use candide_log::schema::TableSchema;
use candide_log::store::Replies;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The tables by their numbers.
pub(super) type Tables = BTreeMap<u32, TableSchema>;

/// The state that the threads and the engine's calls share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) generation: AtomicU64,
    /// The number of appends that have begun.
    pub(super) appends: AtomicU64,
    /// Whether a standby that has been promoted writes to the place.
    pub(super) has_led: AtomicBool,
    state: Mutex<State>,
    /// Wakes the thread that makes the next object.
    pub(super) called: Condvar,
    /// Wakes the calls that wait for the threads.
    pub(super) worked: Condvar,
    /// Wakes what pauses, at the end.
    ended: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The database whose log the place has; `None` without a lead.
    pub(super) database: Option<Uuid>,
    pub(super) replies: Option<Arc<dyn Replies>>,
    pub(super) leader: Option<Arc<Leader>>,
    /// The cut up to which commits are durable here, and the bytes of records.
    pub(super) durable: (u64, u64),
    /// The cut that the place has, the bytes of records, and the last append that has succeeded.
    pub(super) there: (u64, u64, u64),
    /// The same, once the place has the objects that are under way, too.
    pub(super) taken: (u64, u64, u64),
    /// The objects under way, in the order of the log. The first one stays until what it brings is
    /// published.
    pub(super) under_way: VecDeque<UnderWay>,
    /// Up to where the place has the log.
    pub(super) known: Known,
    /// The threads that write.
    pub(super) threads: Vec<ThreadId>,
    /// The largest cut and append for which a thread waits.
    pub(super) wanted: (u64, u64),
    /// The last segment that is wanted back, and the last one that is released.
    pub(super) release: (u64, u64),
    /// Whether the place lacks a part of the log that is not here any more, or is about to be given
    /// back; so it gets the next checkpoint.
    pub(super) lacks_log: bool,
    /// The bytes of records that were durable when the place began to lack the log.
    pub(super) durable_then: u64,
    /// The first segment that the place lacks, of a database that is open without it.
    pub(super) kept: Option<u64>,
    /// Whether a thread is about to read the log.
    pub(super) is_reading: bool,
    /// By the number of a segment, the last object without a block of a later segment that had been
    /// written when the segment was released.
    pub(super) ends: BTreeMap<u64, SegmentEnd>,
    /// Why the last checkpoint was not sent.
    pub(super) checkpoint_failure: Option<String>,
    /// When the close ends, if it has begun.
    pub(super) closing: Option<Instant>,
    /// Whether the threads write nothing more.
    pub(super) is_over: bool,
}

/// An object under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// Its place in the log of the generation.
    pub(super) place: u64,
    /// What it brings, if the place has it.
    pub(super) reached: Option<Reached>,
}

/// What is published when the place has an object and all before it.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) known: Known,
    pub(super) there: (u64, u64, u64),
    /// The number of the segment of the last block up to the object.
    pub(super) segment: u64,
    /// What a reader knows behind the object.
    pub(super) end: SegmentEnd,
}

/// What a reader knows behind an object with which a segment ends.
#[derive(Debug, Clone)]
pub(super) struct SegmentEnd {
    /// The place of the object in the log of the generation.
    pub(super) place: u64,
    /// Its stamp generation and cut.
    pub(super) state: (u64, u64),
    /// The generation of the local log that is being written.
    pub(super) own: u64,
    pub(super) tables: Arc<Tables>,
}

impl State {
    /// Returns the bytes of records that the place lacks. What is durable is noted here only after
    /// it can be read.
    pub(super) fn unsent(&self) -> u64 {
        self.durable.1.saturating_sub(self.there.1)
    }

    /// Returns the bytes of records that the place lacks and no object under way has.
    pub(super) fn untaken(&self) -> u64 {
        self.durable.1.saturating_sub(self.taken.1)
    }

    /// Returns whether a thread waits for something that could be sent and is not under way.
    pub(super) fn is_wanted(&self) -> bool {
        let State { durable, taken, wanted, .. } = self;
        wanted.1 > taken.2 || (wanted.0 > taken.0 && durable.0 > taken.0)
    }

    /// Returns whether nothing more is to be sent.
    pub(super) fn has_ended(&self) -> bool {
        self.is_over || self.closing.is_some_and(|until| Instant::now() >= until)
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `pause`, or until the close begins or nothing more is written.
    pub(super) fn pause(&self, state: MutexGuard<'_, State>, pause: Duration) {
        let slept = self.ended.wait_timeout(state, pause);
        drop(slept.unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes all that wait, at the end.
    pub(super) fn wake_all(&self) {
        for waits in [&self.called, &self.worked, &self.ended] {
            waits.notify_all();
        }
    }
}
