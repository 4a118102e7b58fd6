//! Garbage collection: absent records to unlink, old versions to collect, and unlinked memory to
//! free.

#![forbid(unsafe_code)]

use crate::engine::{
    Backlog, Context, Due, Engine, GcOutcome, Parts, Protocol, Retired, TableCore, Versions,
    Worker, is_open,
};
use crate::epoch::{Epoch, Slot};
use crate::record::CellAt;
use crate::sync::{Point, pass};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The budget of one collection is this number of entries plus twice the number added since the
/// last collection. So a collection examines more entries than were added, but not so many that it
/// delays a transaction noticeably.
const BUDGET_MIN: usize = 256;

/// The number of entries prefetched before they are examined: the number of cache misses that a
/// core can overlap.
const PREFETCH_BATCH: usize = 16;

/// The garbage of a session. While the session is active, it collects this garbage itself. While
/// the session is idle or in a long read-only transaction, the advancer does.
///
/// Each queue is ordered by epoch, so a collection ends at the first entry that is too young.
#[derive(Debug, Default)]
pub(crate) struct Garbage<B> {
    /// Absent records (by their first unit), and units with old versions. Each record or unit is in
    /// only one queue of the database.
    reap_queue: VecDeque<Due>,
    /// Records and units that cannot be collected while a snapshot is open. The key is the
    /// timestamp of that snapshot. They cost nothing until the snapshot closes.
    parked: BTreeMap<u64, Parked>,
    /// Parked records and units whose snapshot has closed.
    released: VecDeque<Parked>,
    /// Unlinked memory, each part with the epoch stamp from when it was unlinked.
    retired: VecDeque<(Epoch, Retired)>,
    /// Old versions that wait to be collected.
    backlog: B,
    added: usize,
}

/// Records and units that wait for the same snapshot to close.
#[derive(Debug, Default)]
struct Parked {
    /// `queued` and `time` of the unit added last, as in [`Due`].
    queued: Epoch,
    time: u64,
    units: Vec<CellAt>,
}

impl Parked {
    /// Takes over the units of `other`, which wait for the same snapshot.
    fn take_over(&mut self, mut other: Parked) {
        self.queued = self.queued.max(other.queued);
        self.time = self.time.max(other.time);
        self.units.append(&mut other.units);
    }
}

/// The queue whose entries are examined: the session's own, the released units, or the shared
/// queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Own,
    Released,
    Hot,
}

/// The timestamp of a snapshot that is never open.
const CLOSED: u64 = u64::MAX;

impl<B: Backlog> Garbage<B> {
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_entries() && self.retired.is_empty() && self.backlog.is_empty()
    }

    fn has_no_entries(&self) -> bool {
        self.reap_queue.is_empty() && self.parked.is_empty() && self.released.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        let parked: usize =
            self.parked.values().chain(&self.released).map(|parked| parked.units.len()).sum();
        self.reap_queue.len() + parked + self.retired.len() + self.backlog.len()
    }

    /// Takes over the garbage that a session's transactions have left. The caller is still pinned,
    /// or has unlinked nothing.
    pub(crate) fn take_from<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
    ) {
        let Worker { local, versions } = worker;
        self.added += local.reap_queue.len();
        let mut read = None;
        let mut queued = || {
            *read.get_or_insert_with(|| {
                // The time is read before the epoch; see [`Due`]. A fence lies between the two.
                let time = P::begin_ts_bound(&engine.clock);
                (engine.epochs.now(), time)
            })
        };
        if !local.reap_queue.is_empty() {
            let (queued, time) = queued();
            let due = |at| Due { at, queued, time, note: 0, is_parked: false };
            self.reap_queue.extend(local.reap_queue.drain(..).map(due));
        }
        let parked = &mut self.parked;
        let mut park = |snapshot, at| park(parked, snapshot, at, queued());
        self.added +=
            P::Versions::leave_behind(versions, &engine.epochs, &mut self.backlog, &mut park);
        self.stamp_retired(engine, &mut local.retired);
    }

    /// Takes over the garbage of a closed session. The time is proportional to the size of `left`
    /// only.
    ///
    /// Entries of the closed session may come behind younger entries, and then wait until the
    /// younger ones are due. The delay is only an epoch or two, since no entry is younger than the
    /// current epoch.
    pub(crate) fn take_over(&mut self, left: Garbage<B>) {
        let Garbage { reap_queue, parked, released, retired, backlog, added } = left;
        self.added += added + reap_queue.len() + retired.len();
        self.added += self.backlog.take_over(backlog);
        self.reap_queue.extend(reap_queue);
        for (snapshot, parked) in parked {
            self.parked.entry(snapshot).or_default().take_over(parked);
        }
        self.released.extend(released);
        self.retired.extend(retired);
    }

    fn stamp_retired<P: Parts>(&mut self, engine: &Engine<P>, retired: &mut Vec<Retired>) {
        if !retired.is_empty() {
            self.added += retired.len();
            let stamp = engine.epochs.stamp();
            self.retired.extend(retired.drain(..).map(|retired| (stamp, retired)));
        }
    }

    /// Unlinks and frees the garbage that no transaction can see any more, but not much more than
    /// was added since the last collection. In the shared queue, examines only entries queued
    /// before `hot_before`. The caller is pinned and no longer uses what it has read.
    pub(crate) fn collect<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
        slot: &Slot,
        hot_before: Epoch,
    ) {
        let budget = BUDGET_MIN + 2 * std::mem::take(&mut self.added);
        // Read before the open snapshots are listed. So no entry queued before the horizon has a
        // timestamp later than that list (`look_at`).
        let horizon = engine.epochs.horizon();
        let tables = engine.tables.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let tables: &[Arc<TableCore>] = &tables;
        for _ in 0..budget {
            if !self.has_free(engine) {
                break;
            }
            let (_, retired) = self.retired.pop_front().expect("it has just been seen");
            retired.free(tables, &mut worker.local.caches);
        }
        if !P::Versions::has_to_collect(&self.backlog, horizon)
            && self.has_no_entries()
            && engine.hot.is_empty()
        {
            return;
        }
        let context = &mut Context::new(engine, worker);
        P::Versions::collect(context, &mut self.backlog, tables, horizon, budget);
        self.release(P::Versions::open_snapshots(&worker.versions));
        // Each queue has a budget of its own, so that no queue waits for another.
        self.look_at(engine, worker, (slot, tables), (Of::Own, horizon), budget);
        if !self.released.is_empty() {
            self.look_at(engine, worker, (slot, tables), (Of::Released, horizon), budget);
        }
        if !engine.hot.is_empty() {
            let before = hot_before.min(horizon);
            self.look_at(engine, worker, (slot, tables), (Of::Hot, before), budget);
        }
        self.stamp_retired(engine, &mut worker.local.retired);
    }

    /// Returns whether the last collection left garbage that could be collected right now, because
    /// the budget did not suffice.
    pub(crate) fn has_more<P: Parts>(&self, engine: &Engine<P>) -> bool {
        self.has_free(engine) || self.backlog.is_due(engine.epochs.horizon())
    }

    /// Returns whether there is memory that no reader can reach any more.
    fn has_free<P: Parts>(&self, engine: &Engine<P>) -> bool {
        self.retired.front().is_some_and(|&(stamp, _)| engine.epochs.is_free(stamp))
    }

    /// Releases the parked units whose snapshot is not in `open`, which is in descending order.
    fn release(&mut self, open: &[u64]) {
        let released = &mut self.released;
        self.parked.retain(|snapshot, parked| {
            let is_open = is_open(*snapshot, open);
            if !is_open {
                released.push_back(std::mem::take(parked));
            }
            is_open
        });
    }

    /// Examines up to `budget` entries that were queued before the epoch `before`. `before` must
    /// not be later than the horizon read before the open snapshots were listed. Otherwise another
    /// session could have queued an entry after that list was made. The collection could then
    /// remove versions that a snapshot younger than the list sees.
    fn look_at<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
        (slot, tables): (&Slot, &[Arc<TableCore>]),
        (of, before): (Of, Epoch),
        budget: usize,
    ) {
        let time = P::begin_ts_bound(&engine.clock);
        let mut units = Vec::new();
        let (mut left, mut next) = (budget, Vec::with_capacity(PREFETCH_BATCH));
        let (mut hot, mut unfinished, mut busy) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let most = left.min(PREFETCH_BATCH);
            match of {
                Of::Own => next.extend(std::iter::from_fn(|| self.next_due(before)).take(most)),
                Of::Released => {
                    next.extend(std::iter::from_fn(|| self.next_released(before)).take(most))
                }
                Of::Hot => engine.hot.take(before, most, &mut next),
            }
            if next.is_empty() {
                break;
            }
            left -= next.len();
            // The session is pinned anew for each batch. Chains may be long, and an old pin would
            // keep other sessions from collecting until all chains are done. The pin is a full one,
            // not one for memory only. So no other session collects entries that are queued while
            // this batch lasts.
            engine.epochs.pin(slot);
            P::Versions::begin_walk(&mut Context::new(engine, worker));
            P::Versions::approach(&engine.clock, next.iter().map(|due: &Due| due.at));
            for mut due in next.drain(..) {
                let table = &tables[usize::from(due.at.table())];
                units.clear();
                units.extend(
                    table.layout.units().map(|unit| table.layout.at(due.at.record(), unit)),
                );
                pass(Point::Collecting);
                let noted = due.note;
                let outcome = match P::reap(
                    &mut Context::new(engine, worker),
                    &mut due,
                    table,
                    &units,
                    before,
                ) {
                    GcOutcome::MoveToDeletedIndex(snapshot) if P::Versions::KEEPS_DELETED_INDEX => {
                        let is_settled = Context::new(engine, worker).detach_for_snapshots(
                            due.at.record(),
                            table,
                            |context| {
                                P::Versions::detach_for_snapshots(context, &due, table, &units)
                            },
                            |node| {
                                units
                                    .iter()
                                    .for_each(|&unit| P::merge_into_node(&engine.clock, node, unit))
                            },
                        );
                        if is_settled { GcOutcome::Kept(snapshot) } else { GcOutcome::NotYet }
                    }
                    outcome => outcome,
                };
                match outcome {
                    GcOutcome::Alive => {}
                    GcOutcome::NotYet | GcOutcome::Busy | GcOutcome::Unfinished
                        if of == Of::Released =>
                    {
                        self.park(CLOSED, due.at, (engine.epochs.now(), time));
                    }
                    GcOutcome::Unfinished if of == Of::Hot => unfinished.push(due),
                    GcOutcome::Unfinished => self.reap_queue.push_front(due),
                    GcOutcome::Busy => busy.push(due),
                    GcOutcome::NotYet => {
                        // If the note has changed, the unit was written again since it was last
                        // examined, so it is hot. Other entries wait for another reason.
                        let is_hot = noted != 0 && due.note != noted;
                        let due = Due { queued: engine.epochs.now(), time, ..due };
                        if is_hot { hot.push(due) } else { self.reap_queue.push_back(due) }
                    }
                    GcOutcome::Kept(snapshot) | GcOutcome::MoveToDeletedIndex(snapshot) => {
                        self.park(snapshot, due.at, (engine.epochs.now(), time));
                    }
                    GcOutcome::Expired => {
                        Context::new(engine, worker).clear_out(due.at.record(), table)
                    }
                    GcOutcome::Dead => {
                        Context::new(engine, worker).unlink(due.at.record(), table, |node| {
                            units
                                .iter()
                                .for_each(|&unit| P::merge_into_node(&engine.clock, node, unit));
                        })
                    }
                }
            }
            P::Versions::end_walk(&mut Context::new(engine, worker));
            engine.hot.put_first(&mut unfinished);
            engine.hot.put(&mut hot);
        }
        // The lock of a busy unit is released soon, so the next collection examines the unit first.
        match of {
            Of::Hot => engine.hot.put_first(&mut busy),
            _ => busy.into_iter().rev().for_each(|due| self.reap_queue.push_front(due)),
        }
    }

    #[inline]
    fn next_due(&mut self, before: Epoch) -> Option<Due> {
        self.reap_queue.front().filter(|due| due.queued < before)?;
        self.reap_queue.pop_front()
    }

    #[cold]
    fn next_released(&mut self, before: Epoch) -> Option<Due> {
        let Parked { queued, time, units } =
            self.released.front_mut().filter(|parked| parked.queued < before)?;
        let due = units.pop().map(|at| Due {
            at,
            queued: *queued,
            time: *time,
            note: 0,
            is_parked: true,
        });
        if units.is_empty() {
            self.released.pop_front();
        }
        due
    }

    /// Parks a unit until `snapshot` has closed. `queued` and `time` are as in [`Due`].
    fn park(&mut self, snapshot: u64, at: CellAt, (queued, time): (Epoch, u64)) {
        park(&mut self.parked, snapshot, at, (queued, time));
    }
}

/// Adds the unit `at` to the units in `all` that wait for `snapshot`.
fn park(all: &mut BTreeMap<u64, Parked>, snapshot: u64, at: CellAt, (queued, time): (Epoch, u64)) {
    let parked = all.entry(snapshot).or_default();
    (parked.queued, parked.time) = (queued, time);
    parked.units.push(at);
}
