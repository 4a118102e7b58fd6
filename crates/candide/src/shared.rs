//! The memory of a database, to which all its handles refer: tables, sessions, and the garbage that
//! no session collects.

#![forbid(unsafe_code)]

use crate::catalog::Catalog;
use crate::durable::CutSource;
use crate::engine::{Engine, Parts, Protocol, TableCore, Worker, word_in};
use crate::epoch::{Collect, Epoch, Slot};
use crate::error::Error;
use crate::gc::Garbage;
use crate::record::value::Value;
#[cfg(feature = "histograms")]
use crate::stats::{CountedAbort, Latency};
use crate::stats::{NamedStats, Stats};
use crate::sync::{
    AtomicBool, AtomicU64, MODELLED, Mutex, MutexGuard, Ordering, lock, thread, try_lock,
};
use crate::txn::{SessionShared, TxnRunner};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

/// The memory of a database, to which all its handles refer.
#[derive(Debug)]
pub(crate) struct Inner<P: Protocol> {
    pub(crate) engine: Engine<P>,
    pub(crate) catalog: Catalog,
    /// The existing sessions, by session number.
    pub(crate) sessions: Mutex<BTreeMap<u64, Arc<SessionShared<P::Backlog>>>>,
    sessions_made: AtomicU64,
    /// Whether a session exists. Used only under a protocol that allows one session at a time.
    session_taken: AtomicBool,
    /// Counts of closed sessions.
    past: Mutex<Stats>,
    collector: Mutex<Collector<P::SessionVersions>>,
    /// Garbage of closed sessions, and garbage that the advancer has taken from the shared queue
    /// and must keep for now. The advancer collects both.
    common_garbage: Mutex<Garbage<P::Backlog>>,
    /// Garbage of sessions closed since the advancer last took over such garbage. This garbage is
    /// kept apart so that closing a session need not wait for a collection.
    left_garbage: Mutex<Vec<Garbage<P::Backlog>>>,
    /// Held while a secondary index is added or dropped.
    pub(crate) index_changes: Mutex<()>,
    /// Whether the values of all rows have been taken ([`Inner::take_values`]). Changed under the
    /// lock of the collector.
    values_taken: AtomicBool,
}

/// The slot and the worker with which the advancer collects.
#[derive(Debug)]
pub(crate) struct Collector<V> {
    slot: Arc<Slot>,
    worker: Worker<V>,
}

/// A database whose rows name values.
pub(crate) trait HasValues: Send + Sync {
    /// Takes all values that the database holds, once, and all garbage. The caller drops them, and
    /// holds nothing. No handle of the program is left, so no transaction runs, and none will.
    fn take_values(&self) -> Box<dyn Any + Send>;
}

/// A guard. While it exists, the advancer collects no garbage of the database.
pub(crate) type CollectorGuard<'a, P> = MutexGuard<'a, Collector<<P as Parts>::SessionVersions>>;

/// The number of passes that [`Inner::collect_of`] makes at most. Each protocol needs fewer: one
/// until no transaction sees that a row was there, one until no reader can be at its record, and
/// some for versions.
const PASSES_MAX: usize = 8;

/// How often a call that frees dropped tables looks whether the advancer has ended a collection.
const LOOKS_MAX: usize = if MODELLED { 1 } else { 64 };

/// The number of the advancer's collector, from the same sequence as the sessions' numbers.
const COLLECTOR: u64 = 1;

impl<P: Protocol> Inner<P> {
    /// Returns whether there is a copy of the log elsewhere.
    pub(crate) fn is_replicated(&self) -> bool {
        self.engine.log.get().is_some_and(|log| log.progress.copy().is_some())
    }

    /// Makes a database, and registers it with the advancer of its epochs. From then on the
    /// advancer also collects the database's garbage.
    pub(crate) fn new(engine: Engine<P>, catalog: Catalog) -> Arc<Inner<P>> {
        let slot = engine.epochs.register();
        let collector = Collector { worker: Worker::new(engine.id, COLLECTOR, slot.clone()), slot };
        let epochs = engine.epochs.clone();
        let inner = Arc::new(Inner {
            engine,
            catalog,
            sessions: Mutex::new(BTreeMap::new()),
            sessions_made: AtomicU64::new(COLLECTOR),
            session_taken: AtomicBool::new(false),
            past: Mutex::new(Stats::default()),
            collector: Mutex::new(collector),
            common_garbage: Mutex::default(),
            left_garbage: Mutex::default(),
            index_changes: Mutex::new(()),
            values_taken: AtomicBool::new(false),
        });
        let weak: Weak<Inner<P>> = Arc::downgrade(&inner);
        epochs.add_collector(weak);
        inner
    }

    /// Admits a session, if the protocol allows another one.
    pub(crate) fn admit(&self) -> Result<(), Error> {
        // Acquire: this session sees everything that the previous session did (E12).
        if self.engine.properties.one_session && self.session_taken.swap(true, Ordering::Acquire) {
            return Err(Error::SecondSession { protocol: self.engine.properties.name });
        }
        Ok(())
    }

    /// Ends the admission of a session, so that another session can be admitted.
    pub(crate) fn dismiss(&self) {
        self.session_taken.store(false, Ordering::Release); // E12
    }

    /// Registers a new session, and returns the parts with which it runs transactions.
    pub(crate) fn join(&self) -> TxnRunner<P> {
        let id = self.sessions_made.fetch_add(1, Ordering::Relaxed) + 1;
        let public = Arc::new(SessionShared::new(id, self.engine.epochs.register()));
        lock(&self.sessions).insert(id, public.clone());
        TxnRunner::new(&self.engine, id, public)
    }

    /// Removes a session. Adds the session's counts to the database's, and leaves the session's
    /// garbage to the advancer. The time this takes does not depend on the garbage that other
    /// sessions have left.
    pub(crate) fn leave(&self, core: &mut TxnRunner<P>) {
        let state = core.state.get_mut();
        if let Some(log) = &state.log {
            log.close();
        }
        let mut garbage = std::mem::take(&mut *core.public.garbage(&self.engine.epochs));
        garbage.take_from(&self.engine, &mut state.worker);
        let mut unwanted = std::mem::take(&mut state.worker.local.values.unwanted);
        self.engine.shared_garbage.put_unwanted(&mut unwanted);
        if !garbage.is_empty() {
            lock(&self.left_garbage).push(garbage);
            // Since this session is not pinned, the advancer may have found all sessions idle, and
            // may be about to sleep.
            self.engine.epochs.unpark();
        }
        state
            .worker
            .local
            .leave_tallies(&self.engine.tables.read().unwrap_or_else(PoisonError::into_inner));
        self.engine.give_token_back(state.worker.local.id);
        core.public.known_tables.clear();
        self.engine.epochs.unregister(&core.public.slot);
        let mut sessions = lock(&self.sessions);
        // The counts move under the lock of the sessions. So a reader finds the counts exactly
        // once: here or in the session.
        lock(&self.past).add(&core.public.counters.read());
        core.leave_names(&self.engine.names);
        sessions.remove(&core.public.session);
        drop(sessions);
        if self.values_taken.load(Ordering::Relaxed) {
            // Nothing collects any more. The lock of the left garbage orders this load behind the
            // store, or `take_values` has found what this session has left.
            let left = std::mem::take(&mut *lock(&self.left_garbage));
            drop((left, self.take_unwanted()));
        }
    }

    /// Returns a stamp that is no smaller than those of all commits that have ended and are seen.
    pub(crate) fn last_stamp(&self) -> u64 {
        let last = || P::last_stamp(&self.engine.clock, &self.engine.epochs);
        self.engine.following.get().map_or_else(last, |following| following.cut(last))
    }

    /// Returns the values that sessions are to drop, which the caller drops. It holds nothing.
    pub(crate) fn take_unwanted(&self) -> Vec<Value> {
        let mut unwanted = Vec::new();
        self.engine.shared_garbage.take_unwanted(&mut unwanted, usize::MAX);
        unwanted
    }

    /// Returns whether the database has been closed, so far as it had values to drop then.
    pub(crate) fn has_given_values(&self) -> bool {
        self.values_taken.load(Ordering::Relaxed)
    }

    /// Calls `each` with the shared part of every session.
    pub(crate) fn for_each_session(&self, mut each: impl FnMut(&SessionShared<P::Backlog>)) {
        lock(&self.sessions).values().for_each(|public| each(public));
    }

    /// Returns the number of garbage entries that belong to no session.
    pub(crate) fn common_garbage(&self) -> usize {
        let common = lock(&self.common_garbage);
        let left: usize = lock(&self.left_garbage).iter().map(Garbage::len).sum();
        common.len() + left + self.engine.shared_garbage.len()
    }

    /// Collects the garbage of an idle session, as far as no transaction and no snapshot needs it.
    /// Moves the epochs for that.
    pub(crate) fn collect_of(&self, core: &mut TxnRunner<P>) {
        let (engine, slot) = (&self.engine, &core.public.slot);
        let worker = &mut core.state.get_mut().worker;
        let mut garbage = core.public.garbage(&engine.epochs);
        garbage.take_from(engine, worker);
        for _ in 0..PASSES_MAX {
            if garbage.is_empty() {
                break;
            }
            engine.epochs.pass();
            engine.epochs.pin(slot);
            garbage.collect(engine, worker, slot, Epoch::MAX);
            engine.epochs.unpin(slot);
        }
        // Other tables may have values, which sessions drop at the end of transactions.
        engine.shared_garbage.put_unwanted(&mut worker.local.values.unwanted);
    }

    /// Frees the numbers and the memory of dropped tables that neither garbage nor a session that
    /// sleeps names any more, for later tables.
    pub(crate) fn free_former_tables(&self) {
        // The advancer moves garbage from one queue to another. Its lock may be held by an
        // iteration further up the stack, so the wait has an end.
        let collector = (0..LOOKS_MAX).find_map(|look| {
            if look > 0 {
                thread::yield_now();
            }
            try_lock(&self.collector)
        });
        let Some(_collector) = collector else { return };
        let sessions = lock(&self.sessions);
        // All at once, since a session moves garbage to the shared queue and back.
        let epochs = &self.engine.epochs;
        let held: Vec<_> = sessions.values().map(|public| public.garbage(epochs)).collect();
        let (common, left) = (lock(&self.common_garbage), lock(&self.left_garbage));
        let queues: Vec<&Garbage<P::Backlog>> =
            held.iter().map(|garbage| &**garbage).chain([&*common]).chain(left.iter()).collect();
        self.catalog.free_former(|core| {
            // Relaxed: a session that sleeps because of the table was woken when it was dropped.
            core.linked.sum() == 0
                && core.at_links.watchers.load(Ordering::Relaxed) == 0
                && !self.engine.shared_garbage.may_name(core.number)
                && !queues.iter().any(|garbage| garbage.may_name(core.number))
        });
    }

    /// Returns a guard that keeps the advancer from collecting; `None` if the advancer is
    /// collecting, or if such a guard exists already.
    pub(crate) fn try_stop_collector(&self) -> Option<CollectorGuard<'_, P>> {
        try_lock(&self.collector)
    }

    /// Returns the sum of the counts of all sessions, existing or closed.
    pub(crate) fn stats(&self) -> Stats {
        let sessions = lock(&self.sessions);
        let mut sum = *lock(&self.past);
        sessions.values().for_each(|public| sum.add(&public.counters.read()));
        sum
    }

    /// Returns the counts of transactions by name, of all sessions, existing or closed.
    pub(crate) fn named_stats(&self) -> Vec<NamedStats> {
        let sessions = lock(&self.sessions);
        self.engine.names.read(sessions.values().map(|public| &public.names))
    }

    /// Returns the latencies of transactions by name, of all sessions, existing or closed.
    #[cfg(feature = "histograms")]
    pub(crate) fn latencies(&self) -> Vec<Latency> {
        let sessions = lock(&self.sessions);
        self.engine.names.latencies(sessions.values().map(|public| &public.names))
    }

    /// Returns the aborts of transactions by name, of all sessions, existing or closed.
    #[cfg(feature = "histograms")]
    pub(crate) fn named_aborts(&self) -> Vec<CountedAbort> {
        let sessions = lock(&self.sessions);
        self.engine.names.aborts(sessions.values().map(|public| &public.names))
    }

    /// Returns whether no session is in a transaction.
    pub(crate) fn is_quiescent(&self) -> bool {
        !lock(&self.sessions).values().any(|public| public.slot.is_pinned())
    }
}

impl<P: Protocol> Collect for Inner<P> {
    fn collect(&self, idle_before: Epoch) -> bool {
        if let Some(view) = &self.engine.past {
            self.engine.epochs.end_past_if_old(view);
        }
        // Raw iteration may hold the lock. The garbage can then be collected later.
        let Some(mut collector) = try_lock(&self.collector) else { return true };
        if self.values_taken.load(Ordering::Relaxed) {
            return false;
        }
        let Collector { slot, worker } = &mut *collector;
        let Some(sessions) = try_lock(&self.sessions) else { return true };
        let mut left = false;
        for public in sessions.values() {
            // If a session is collecting its own garbage, waiting for it could take long, and
            // epochs would not advance meanwhile.
            let Some(mut garbage) = public.try_garbage(&self.engine.epochs) else {
                left = true;
                continue;
            };
            if !garbage.is_empty() && public.slot.leaves_garbage_since(idle_before) {
                self.engine.epochs.pin(slot);
                garbage.collect(&self.engine, worker, slot, 0);
                self.engine.epochs.unpin(slot);
            }
            left |= !garbage.is_empty() || public.has_left_values();
        }
        drop(sessions);
        let mut common = lock(&self.common_garbage);
        std::mem::take(&mut *lock(&self.left_garbage))
            .into_iter()
            .for_each(|left| common.take_over(left));
        if !common.is_empty() || self.engine.shared_garbage.has_due() {
            self.engine.epochs.pin(slot);
            // Young entries of the shared queue are left to sessions in transactions, since
            // advancing the epochs is more urgent.
            common.collect(&self.engine, worker, slot, idle_before);
            self.engine.epochs.unpin(slot);
        }
        left |= !common.is_empty() || self.engine.shared_garbage.has_due();
        // Values are dropped by sessions: user code runs then.
        self.engine.shared_garbage.put_unwanted(&mut worker.local.values.unwanted);
        // Freed blocks return to the slabs, where sessions find them.
        worker.local.caches.clear();
        left
    }
}

impl<P: Protocol> HasValues for Inner<P> {
    fn take_values(&self) -> Box<dyn Any + Send> {
        // The advancer does not collect meanwhile, nor later.
        let collector = lock(&self.collector);
        if self.values_taken.swap(true, Ordering::Relaxed) {
            return Box::new(());
        }
        let mut garbage = std::mem::take(&mut *lock(&self.left_garbage));
        garbage.push(std::mem::take(&mut *lock(&self.common_garbage)));
        let epochs = &self.engine.epochs;
        self.for_each_session(|public| garbage.push(std::mem::take(&mut *public.garbage(epochs))));
        let mut values = self.take_unwanted();
        for table in &*self.engine.tables.read().unwrap_or_else(PoisonError::into_inner) {
            if table.has_values {
                self.take_values_of(table, &mut values);
            }
        }
        drop(collector);
        Box::new((values, garbage))
    }
}

impl<P: Protocol> Inner<P> {
    /// Takes the values that the rows of a table name, older versions included. No transaction
    /// runs, and none will.
    fn take_values_of(&self, table: &TableCore, values: &mut Vec<Value>) {
        let mut take = |payload: &[AtomicU64]| values.push(Value::claim(word_in(payload, 0)));
        table.index.for_each(&mut |record| {
            P::each_row(&self.engine.clock, table.layout.first_of(record), &mut take);
        });
    }
}

impl<P: Protocol> CutSource for Inner<P> {
    fn cut(&self) -> u64 {
        let now = || P::cut(&self.engine.clock, &self.engine.epochs);
        match self.engine.following.get() {
            Some(following) => following.cut(now),
            None => now(),
        }
    }

    fn wake_watchers(&self) {
        self.engine.watchers.wake_all();
    }
}

impl<P: Protocol> Drop for Inner<P> {
    fn drop(&mut self) {
        self.engine.epochs.unregister(&lock(&self.collector).slot);
        if let Some(view) = &self.engine.past {
            self.engine.epochs.leave_past(view);
        }
        // Threads may keep sessions of a dropped database.
        for public in std::mem::take(&mut *lock(&self.sessions)).into_values() {
            self.engine.epochs.unregister(&public.slot);
            let garbage = std::mem::take(&mut *public.garbage(&self.engine.epochs));
            drop(garbage);
            public.known_tables.clear();
        }
    }
}
