//! Garbage collection: absent records to unlink, old versions to collect, and unlinked memory to
//! free.

#![forbid(unsafe_code)]

use super::left_values::LeftValues;
use crate::engine::{
    Backlog, Context, Due, Engine, GcOutcome, Local, Parts, Protocol, Retired, TableCore, Versions,
    Worker, settle,
};
use crate::epoch::{Epoch, Epochs, Slot};
use crate::record::CellAt;
use crate::record::value::Value;
use crate::sync::{Point, pass};
use std::collections::VecDeque;
use std::sync::Arc;

/// The budget of one collection is this number of entries plus twice the number added since the
/// last collection. So a collection examines more entries than were added, but not so many that it
/// delays a transaction noticeably.
const BUDGET_MIN: usize = 256;

/// The number of entries prefetched before they are examined: the number of cache misses that a
/// core can overlap.
const PREFETCH_BATCH: usize = 16;

/// The garbage of a session. While the session is active, it collects this garbage itself. While
/// the session is idle or in a long read-only transaction, the advancer collects its entries.
///
/// Each queue is ordered by epoch, so a collection ends at the first entry that is too young.
#[derive(Debug, Default)]
pub(crate) struct Garbage<B> {
    /// Absent records (by their first unit), and units with old versions. Each record or unit is in
    /// only one queue of the database.
    reap_queue: VecDeque<Due>,
    /// Unlinked memory, each part with the epoch stamp from when it was unlinked.
    retired: VecDeque<(Epoch, Retired)>,
    /// Values that no reader that begins now can reach.
    values: VecDeque<Value>,
    /// The stamps of `values`, each with the number of values.
    value_stamps: VecDeque<(Epoch, usize)>,
    /// Old versions that wait to be collected, and entries that wait for snapshots to close.
    backlog: B,
    added: usize,
}

/// Returns whether there is an entry whose stamp says that no reader can reach it any more.
fn is_free<P: Parts, T>(engine: &Engine<P>, entry: Option<&(Epoch, T)>) -> bool {
    entry.is_some_and(|&(stamp, _)| engine.epochs.is_free(stamp))
}

/// The queue whose entries are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queue {
    Own,
    /// The entries that waited for snapshots which have closed.
    Released,
    Shared,
}

/// The bounds of an examination.
struct Bounds<'a> {
    tables: &'a [Arc<TableCore>],
    queue: Queue,
    /// The epoch before which an entry must have been queued to be examined.
    before: Epoch,
    /// The bound on begin timestamps, as in [`Due`].
    time: u64,
}

/// The entries that an examination leaves to later examinations.
#[derive(Default)]
struct Left {
    /// The entries of units that are written all the time.
    hot: Vec<Due>,
    /// The entries of the shared queue whose chains have more old versions.
    unfinished: Vec<Due>,
    /// The entries of locked units.
    busy: Vec<Due>,
}

impl<B: Backlog> Garbage<B> {
    pub(crate) fn is_empty(&self) -> bool {
        self.reap_queue.is_empty()
            && self.retired.is_empty()
            && self.values.is_empty()
            && self.backlog.is_empty()
    }

    /// Returns whether an entry may name the table with this number.
    pub(crate) fn may_name(&self, table: u16) -> bool {
        !self.backlog.is_empty()
            || self.reap_queue.iter().any(|due| due.at.table() == table)
            || self.retired.iter().any(|(_, retired)| retired.names(table))
    }

    pub(crate) fn len(&self) -> usize {
        self.reap_queue.len() + self.retired.len() + self.values.len() + self.backlog.len()
    }

    /// Takes over the values that the session of this garbage has left.
    #[inline]
    pub(crate) fn take_values(&mut self, epochs: &Epochs, left: &LeftValues) {
        if !left.is_empty() {
            self.take_some_values(epochs, left);
        }
    }

    #[inline(never)]
    fn take_some_values(&mut self, epochs: &Epochs, left: &LeftValues) {
        let before = self.values.len();
        left.take(&mut self.values);
        let count = self.values.len() - before;
        self.value_stamps.push_back((epochs.stamp(), count)); // EP2, E32
        self.added += count;
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
        self.added +=
            P::Versions::leave_behind(versions, &engine.epochs, &mut self.backlog, &mut queued);
        self.stamp_retired(engine, &mut local.retired);
    }

    /// Takes over the garbage of a closed session. The time is proportional to the size of `left`
    /// only.
    ///
    /// Entries of the closed session may come behind younger entries, and then wait until the
    /// younger ones are due. The delay is only an epoch or two, since no entry is younger than the
    /// current epoch.
    pub(crate) fn take_over(&mut self, left: Garbage<B>) {
        let Garbage { reap_queue, retired, values, value_stamps, backlog, added } = left;
        self.added += added + reap_queue.len() + retired.len() + values.len();
        self.values.extend(values);
        self.value_stamps.extend(value_stamps);
        self.added += self.backlog.take_over(backlog);
        self.reap_queue.extend(reap_queue);
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
    /// before `hot_before`. The caller is pinned and no longer uses the words that it has read.
    pub(crate) fn collect<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
        slot: &Slot,
        hot_before: Epoch,
    ) {
        let budget = BUDGET_MIN + 2 * std::mem::take(&mut self.added);
        // Read before the open snapshots are listed. So no entry queued before the horizon has a
        // timestamp later than that list (`examine_all`).
        let horizon = engine.epochs.horizon();
        let tables = engine.tables.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let tables: &[Arc<TableCore>] = &tables;
        for _ in 0..budget {
            if !is_free(engine, self.retired.front()) {
                break;
            }
            let (_, retired) =
                self.retired.pop_front().expect("the entry was seen under the same lock");
            worker.local.free(retired, engine, tables);
        }
        self.free_values(engine, budget, &mut worker.local);
        if !P::Versions::has_to_collect(&self.backlog, horizon)
            && self.reap_queue.is_empty()
            && engine.shared_garbage.is_empty()
        {
            return;
        }
        let context = &mut Context::new(engine, worker);
        P::Versions::collect(context, &mut self.backlog, tables, horizon, budget);
        // Each queue has a separate budget, so that no queue waits for another.
        let mut examine = |queue, before| {
            self.examine_all(engine, worker, (slot, tables), (queue, before), budget);
        };
        examine(Queue::Own, horizon);
        examine(Queue::Released, horizon);
        if !engine.shared_garbage.is_empty() {
            examine(Queue::Shared, hot_before.min(horizon));
        }
        self.stamp_retired(engine, &mut worker.local.retired);
    }

    /// Returns whether the last collection left garbage that could be collected right now, because
    /// the budget did not suffice.
    pub(crate) fn has_more<P: Parts>(&self, engine: &Engine<P>) -> bool {
        self.has_free(engine) || self.backlog.is_due(engine.epochs.horizon())
    }

    /// Returns whether there is memory, or a value, that no reader can reach any more.
    fn has_free<P: Parts>(&self, engine: &Engine<P>) -> bool {
        is_free(engine, self.retired.front()) || is_free(engine, self.value_stamps.front())
    }

    /// Frees values that no reader can reach any more, or leaves them to the session, which drops
    /// them later: `budget` of them, or somewhat more.
    fn free_values<P: Parts>(&mut self, engine: &Engine<P>, mut budget: usize, local: &mut Local) {
        while budget > 0 && is_free(engine, self.value_stamps.front()) {
            let (_, count) = self.value_stamps.pop_front().expect("it was seen just before");
            self.values.drain(..count).for_each(|value| local.discard(value, engine));
            budget = budget.saturating_sub(count);
        }
    }

    /// Examines up to `budget` entries that were queued before the epoch `before`. `before` must
    /// not be later than the horizon read before the open snapshots were listed. Otherwise another
    /// session could have queued an entry after that list was made. The collection could then
    /// remove versions that a snapshot younger than the list sees.
    fn examine_all<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
        (slot, tables): (&Slot, &[Arc<TableCore>]),
        (queue, before): (Queue, Epoch),
        budget: usize,
    ) {
        if queue == Queue::Released && !self.backlog.has_released() {
            return;
        }
        let bounds = Bounds { tables, queue, before, time: P::begin_ts_bound(&engine.clock) };
        let (mut budget, mut batch) = (budget, Vec::with_capacity(PREFETCH_BATCH));
        let (mut units, mut left) = (Vec::new(), Left::default());
        loop {
            self.take(engine, (queue, before), budget.min(PREFETCH_BATCH), &mut batch);
            if batch.is_empty() {
                break;
            }
            budget -= batch.len();
            // The session is pinned anew for each batch. Chains may be long, and an old pin would
            // keep other sessions from collecting until all chains are done. The pin is a full one,
            // not one for memory only. So no other session collects entries that are queued while
            // this batch lasts.
            engine.epochs.pin_again(slot);
            P::Versions::begin_walk(&mut Context::new(engine, worker));
            P::Versions::approach(&engine.clock, batch.iter().map(|due: &Due| due.at));
            for due in batch.drain(..) {
                self.examine(engine, worker, &bounds, due, &mut units, &mut left);
            }
            P::Versions::end_walk(&mut Context::new(engine, worker));
            engine.shared_garbage.put_first(&mut left.unfinished);
            engine.shared_garbage.put(&mut left.hot);
        }
        // The lock of a busy unit is released soon, so the next collection examines the unit first.
        match queue {
            Queue::Shared => engine.shared_garbage.put_first(&mut left.busy),
            _ => left.busy.into_iter().rev().for_each(|due| self.reap_queue.push_front(due)),
        }
    }

    /// Moves up to `most` entries of a queue, all queued before the epoch `before`, to `batch`.
    fn take<P: Parts>(
        &mut self,
        engine: &Engine<P>,
        (queue, before): (Queue, Epoch),
        most: usize,
        batch: &mut Vec<Due>,
    ) {
        match queue {
            Queue::Own => batch.extend(std::iter::from_fn(|| self.next_due(before)).take(most)),
            Queue::Released => self.backlog.take_released(before, most, batch),
            Queue::Shared => engine.shared_garbage.take(before, most, batch),
        }
    }

    /// Examines an entry, and acts on the outcome.
    fn examine<P: Protocol<Backlog = B>>(
        &mut self,
        engine: &Engine<P>,
        worker: &mut Worker<P::SessionVersions>,
        &Bounds { tables, queue, before, time }: &Bounds<'_>,
        mut due: Due,
        units: &mut Vec<CellAt>,
        left: &mut Left,
    ) {
        let table = &*tables[usize::from(due.at.table())];
        units.clear();
        units.extend(table.layout.units().map(|unit| table.layout.at(due.at.record(), unit)));
        pass(Point::Collecting);
        let noted = due.note;
        let context = &mut Context::new(engine, worker);
        let mut outcome = P::reap(context, &mut due, table, units, before);
        if let GcOutcome::OfSnapshots(asked) = outcome {
            let due = Due { time, ..due };
            if settle::<P, P::Versions>(context, &mut self.backlog, &due, (table, units), asked) {
                return;
            }
            outcome = GcOutcome::NotYet;
        }
        match outcome {
            GcOutcome::Alive | GcOutcome::OfSnapshots(_) => {}
            GcOutcome::Dead => context.unlink(due.at.record(), table, |node| {
                units.iter().for_each(|&unit| P::merge_into_node(&engine.clock, node, unit));
            }),
            _ if queue == Queue::Released => {
                self.backlog.park(None, due.at, (engine.epochs.now(), time));
            }
            GcOutcome::Unfinished if queue == Queue::Shared => left.unfinished.push(due),
            GcOutcome::Unfinished => self.reap_queue.push_front(due),
            GcOutcome::Busy => left.busy.push(due),
            GcOutcome::NotYet => {
                // If the note has changed, the unit was written again since it was last examined,
                // so it is hot. Other entries wait for other reasons.
                let is_hot = noted != 0 && due.note != noted;
                let due = Due { queued: engine.epochs.now(), time, ..due };
                if is_hot { left.hot.push(due) } else { self.reap_queue.push_back(due) }
            }
        }
    }

    #[inline]
    fn next_due(&mut self, before: Epoch) -> Option<Due> {
        self.reap_queue.front().filter(|due| due.queued < before)?;
        self.reap_queue.pop_front()
    }
}
