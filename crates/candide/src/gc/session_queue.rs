//! What transactions leave behind: absent records to bury, old versions to collect, and unlinked
//! memory to free.

#![forbid(unsafe_code)]

use crate::engine::{
    Context, Due, Engine, Fate, GcOutcome, Local, Protocol, Retired, TableCore, UndoEntry,
};
use crate::epoch::{Epoch, Slot};
use crate::record::CellAt;
use crate::sync::{Mutant, Point, mutant, pass};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Records looked at in one collection, beside twice as many as have been added since the last: few
/// enough not to be felt, more than come in.
const BUDGET_MIN: usize = 256;

/// So much is looked at in one collection of what was put aside, or more if more came in, and of
/// what a snapshot has kept that has closed. The rest has its turn after the next transaction.
const UNDO_BATCH_MAX: usize = 4_096;

/// Records that are looked at one after another, once all of them have been asked for: as many as a
/// core waits for at a time.
const PREFETCH_BATCH: usize = 16;

/// A session's garbage, which its session collects while it is active and the advancer when it is
/// not, or in a long report.
///
/// Queues are in the order of their epochs, so a collection ends at the first entry that is too
/// young.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Absent records by their first unit, and units with old versions; each is in one queue of the
    /// database.
    reap_queue: VecDeque<Due>,
    /// The same, of which nothing is left to do while a snapshot is open, by its timestamp. They
    /// cost nothing until then.
    parked: BTreeMap<u64, Parked>,
    /// Those whose snapshot has closed.
    released: VecDeque<Parked>,
    /// Unlinked memory with its stamp.
    retired: VecDeque<(Epoch, Retired)>,
    aside: UndoQueue,
    added: usize,
}

/// What commits have put aside of what they changed.
#[derive(Debug, Default)]
struct UndoQueue {
    /// In the order of their epochs.
    entries: VecDeque<UndoEntry>,
    /// What has come in each of these.
    came: VecDeque<EpochBatch>,
    /// What open snapshots see, by the newest of these.
    kept: BTreeMap<u64, Vec<UndoEntry>>,
    /// What they have seen that have closed. Epochs do not matter any more.
    released: VecDeque<Vec<UndoEntry>>,
}

/// Entries of one epoch.
#[derive(Debug)]
struct EpochBatch {
    epoch: Epoch,
    count: usize,
    /// The latest timestamp of the commits that put them aside.
    until: u64,
}

impl UndoQueue {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.has_kept()
    }

    /// Whether there is something that waits, or has waited, for a snapshot to close.
    fn has_kept(&self) -> bool {
        !self.kept.is_empty() || !self.released.is_empty()
    }

    fn len(&self) -> usize {
        self.entries.len()
            + self.kept.values().map(Vec::len).sum::<usize>()
            + self.released.iter().map(Vec::len).sum::<usize>()
    }

    /// Adds what had come when the epoch was read.
    fn extend(&mut self, epoch: Epoch, more: &mut Vec<UndoEntry>) {
        let Some(until) = more.iter().map(|put| put.until).max() else { return };
        let count = more.len();
        match self.came.back_mut() {
            Some(came) if came.epoch == epoch => {
                (came.count, came.until) = (came.count + count, came.until.max(until));
            }
            _ => self.came.push_back(EpochBatch { epoch, count, until }),
        }
        self.entries.extend(more.drain(..));
    }

    /// Takes over what another one holds.
    fn take_over(&mut self, other: UndoQueue) {
        let UndoQueue { entries, came, kept, released } = other;
        self.entries.extend(entries);
        self.came.extend(came);
        for (snapshot, mut kept) in kept {
            self.kept.entry(snapshot).or_default().append(&mut kept);
        }
        self.released.extend(released);
    }

    /// How many have come before an epoch, and the latest timestamp of the commits that put them
    /// aside.
    fn due(&self, before: Epoch) -> (usize, u64) {
        let due = self.came.iter().take_while(|came| came.epoch < before);
        due.fold((0, 0), |(count, until), came| (count + came.count, until.max(came.until)))
    }

    /// Whether any has come before an epoch.
    fn is_due(&self, before: Epoch) -> bool {
        self.came.front().is_some_and(|came| came.epoch < before)
    }

    /// Takes the first one out.
    #[inline]
    fn pop(&mut self) -> Option<UndoEntry> {
        let came = self.came.front_mut()?;
        came.count -= 1;
        if came.count == 0 {
            self.came.pop_front();
        }
        self.entries.pop_front()
    }

    /// The same of what a snapshot has seen that has closed.
    #[cold]
    fn pop_released(&mut self) -> Option<UndoEntry> {
        let first = self.released.front_mut()?;
        let put = first.pop();
        if first.is_empty() {
            self.released.pop_front();
        }
        put
    }

    /// Has what snapshots have seen looked at again that are not among these, which are in falling
    /// order.
    fn release(&mut self, open: &[u64]) {
        let released = &mut self.released;
        self.kept.retain(|snapshot, kept| {
            let is_open = is_among(*snapshot, open);
            if !is_open {
                released.push_back(std::mem::take(kept));
            }
            is_open
        });
    }
}

/// Units that wait for the same snapshot to close.
#[derive(Debug, Default)]
struct Parked {
    /// As of the last one that has come: see [`Due`].
    queued: Epoch,
    time: u64,
    units: Vec<CellAt>,
}

impl Parked {
    /// Takes over units that wait for the same snapshot.
    fn take_over(&mut self, mut other: Parked) {
        self.queued = self.queued.max(other.queued);
        self.time = self.time.max(other.time);
        self.units.append(&mut other.units);
    }
}

/// Which entries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Burials,
    Released,
    Hot,
}

/// Whether a snapshot is among these, which are in falling order.
fn is_among(snapshot: u64, open: &[u64]) -> bool {
    open.binary_search_by(|open| snapshot.cmp(open)).is_ok()
}

/// As if it had closed: no open snapshot is of this timestamp.
const CLOSED: u64 = u64::MAX;

impl Garbage {
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_entries() && self.retired.is_empty() && self.aside.is_empty()
    }

    fn has_no_entries(&self) -> bool {
        self.reap_queue.is_empty() && self.parked.is_empty() && self.released.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        let parked: usize =
            self.parked.values().chain(&self.released).map(|parked| parked.units.len()).sum();
        self.reap_queue.len() + parked + self.retired.len() + self.aside.len()
    }

    /// Takes over what a session has put aside. The caller is still pinned, or has unlinked
    /// nothing.
    pub(crate) fn take_from<P: Protocol>(&mut self, engine: &Engine<P>, local: &mut Local) {
        self.added += local.reap_queue.len() + local.parked.len() + local.undo_entries.len();
        if !local.undo_entries.is_empty() {
            self.aside.extend(engine.epochs.stamp(), &mut local.undo_entries);
        }
        if !local.reap_queue.is_empty() || !local.parked.is_empty() {
            let (time, queued) = (P::time(&engine.clock), engine.epochs.now());
            let due = |at| Due { at, queued, time, note: 0, is_parked: false };
            self.reap_queue.extend(local.reap_queue.drain(..).map(due));
            if !local.parked.is_empty() {
                local
                    .parked
                    .drain(..)
                    .for_each(|(snapshot, at)| self.park(snapshot, at, (queued, time)));
            }
        }
        self.stamp_retired(engine, &mut local.retired);
    }

    /// Takes over what a session has left behind: as much work as that is, whatever there is
    /// already.
    ///
    /// Entries of the session come behind younger ones here, which then hold them up until they are
    /// due themselves: within an epoch or two, since none is younger than this.
    pub(crate) fn take_over(&mut self, left: Garbage) {
        let Garbage { reap_queue, parked, released, retired, aside, added } = left;
        self.added += added + reap_queue.len() + retired.len() + aside.entries.len();
        self.reap_queue.extend(reap_queue);
        for (snapshot, parked) in parked {
            self.parked.entry(snapshot).or_default().take_over(parked);
        }
        self.released.extend(released);
        self.retired.extend(retired);
        self.aside.take_over(aside);
    }

    fn stamp_retired<P: Protocol>(&mut self, engine: &Engine<P>, retired: &mut Vec<Retired>) {
        if !retired.is_empty() {
            self.added += retired.len();
            let stamp = engine.epochs.stamp();
            self.retired.extend(retired.drain(..).map(|retired| (stamp, retired)));
        }
    }

    /// Buries and frees what can be, but not much more than came in since the last time; of what is
    /// for all, what was queued before `hot_before`. The caller is pinned, and nothing that it has
    /// read is looked at any more.
    pub(crate) fn collect<P: Protocol>(
        &mut self,
        engine: &Engine<P>,
        local: &mut Local,
        slot: &Slot,
        hot_before: Epoch,
    ) {
        let budget = BUDGET_MIN + 2 * std::mem::take(&mut self.added);
        // Before the open snapshots are listed: of what was queued before it, no attempt's
        // time is later than that (`look_at`).
        let horizon = engine.epochs.horizon();
        let tables = engine.tables.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let tables: &[Arc<TableCore>] = &tables;
        for _ in 0..budget {
            if !self.has_free(engine) {
                break;
            }
            let (_, retired) = self.retired.pop_front().expect("it has just been seen");
            retired.free(tables, &mut local.caches);
        }
        let (due, until) =
            self.aside.due(if mutant(Mutant::CollectedEarly) { Epoch::MAX } else { horizon });
        if due == 0 && !self.aside.has_kept() && self.has_no_entries() && engine.hot.is_empty() {
            return;
        }
        // That of all that are due, though not all have their turn now: who looks through a chain
        // takes out all that goes, once.
        P::begin_collecting(&mut Context::new(engine, local), until);
        self.release(&local.snapshots);
        self.look_at_aside(
            engine,
            local,
            tables,
            (due.min(UNDO_BATCH_MAX.max(budget)), UNDO_BATCH_MAX),
        );
        // Each has a budget of its own, so that none waits behind the others.
        self.look_at(engine, local, (slot, tables), (Of::Burials, horizon), budget);
        if !self.released.is_empty() {
            self.look_at(engine, local, (slot, tables), (Of::Released, horizon), budget);
        }
        if !engine.hot.is_empty() {
            self.look_at(engine, local, (slot, tables), (Of::Hot, hot_before.min(horizon)), budget);
        }
        self.stamp_retired(engine, &mut local.retired);
    }

    /// Whether something waits for nothing any more: more than a collection has been willing to
    /// look at.
    pub(crate) fn has_more<P: Protocol>(&self, engine: &Engine<P>) -> bool {
        self.has_free(engine)
            || !self.aside.released.is_empty()
            || self.aside.is_due(engine.epochs.horizon())
    }

    /// Returns whether there is memory that no reader can reach any more.
    fn has_free<P: Protocol>(&self, engine: &Engine<P>) -> bool {
        self.retired.front().is_some_and(|&(stamp, _)| engine.epochs.is_free(stamp))
    }

    /// Looks at the first `due` entries of what was put aside, and at so many of those that a
    /// snapshot has seen that has closed.
    fn look_at_aside<P: Protocol>(
        &mut self,
        engine: &Engine<P>,
        local: &mut Local,
        tables: &[Arc<TableCore>],
        (due, released): (usize, usize),
    ) {
        self.aside.release(&local.snapshots);
        let mut again = Vec::new();
        for number in 0..due + released {
            let next = if number < due { self.aside.pop() } else { self.aside.pop_released() };
            let Some(put) = next else { break };
            pass(Point::Collecting);
            let block =
                Retired::Version { table: put.at.table(), size: put.size, block: put.block };
            let table = &tables[usize::from(put.at.table())];
            match P::look_at(&mut Context::new(engine, local), &put, table) {
                Fate::Free => block.free(tables, &mut local.caches),
                Fate::Retire => local.retired.push(block),
                Fate::Kept(snapshot) => self.aside.kept.entry(snapshot).or_default().push(put),
                Fate::NotYet => again.push(put),
            }
        }
        again.append(&mut local.undo_entries);
        if !again.is_empty() {
            self.aside.extend(engine.epochs.stamp(), &mut again);
        }
        P::end_looking(&mut Context::new(engine, local));
    }

    /// Has what was parked looked at again if its snapshot is not among those that are open, which
    /// are in falling order.
    fn release(&mut self, open: &[u64]) {
        let released = &mut self.released;
        self.parked.retain(|snapshot, parked| {
            let is_open = is_among(*snapshot, open);
            if !is_open {
                released.push_back(std::mem::take(parked));
            }
            is_open
        });
    }

    /// Looks at so many entries that were queued before an epoch: no later one than the horizon was
    /// before the open snapshots were listed. Otherwise a snapshot that is younger than the list
    /// could see what an entry of another session's, of a still later time, takes away.
    fn look_at<P: Protocol>(
        &mut self,
        engine: &Engine<P>,
        local: &mut Local,
        (slot, tables): (&Slot, &[Arc<TableCore>]),
        (of, before): (Of, Epoch),
        budget: usize,
    ) {
        let time = P::time(&engine.clock);
        let mut units = Vec::new();
        let (mut left, mut next) = (budget, Vec::with_capacity(PREFETCH_BATCH));
        let (mut hot, mut unfinished, mut busy) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let most = left.min(PREFETCH_BATCH);
            match of {
                Of::Burials => {
                    next.extend(std::iter::from_fn(|| self.next_burial(before)).take(most))
                }
                Of::Released => {
                    next.extend(std::iter::from_fn(|| self.next_released(before)).take(most))
                }
                Of::Hot if mutant(Mutant::HotByOldList) => {
                    engine.hot.take(engine.epochs.horizon(), most, &mut next)
                }
                Of::Hot => engine.hot.take(before, most, &mut next),
            }
            if next.is_empty() {
                break;
            }
            left -= next.len();
            // Chains may be long, and what others have to collect would wait for as long as all of
            // them take together. Not only for memory: no other session shall collect
            // meanwhile what is queued from here on.
            engine.epochs.pin(slot);
            P::begin_burying(&mut Context::new(engine, local));
            P::approach(&engine.clock, next.iter().map(|due: &Due| due.at));
            for mut due in next.drain(..) {
                let table = &tables[usize::from(due.at.table())];
                units.clear();
                units.extend(
                    table.layout.units().map(|unit| table.layout.at(due.at.record(), unit)),
                );
                pass(Point::Collecting);
                let noted = due.note;
                let burial = match P::reap(
                    &mut Context::new(engine, local),
                    &mut due,
                    table,
                    &units,
                    before,
                ) {
                    GcOutcome::MoveToDeletedIndex(snapshot) if P::KEEPS_DELETED_INDEX => {
                        let is_settled = Context::new(engine, local).detach_for_snapshots(
                            due.at.record(),
                            table,
                            |context| P::detach_for_snapshots(context, &due, table, &units),
                            |node| {
                                units
                                    .iter()
                                    .for_each(|&unit| P::merge_into_node(&engine.clock, node, unit))
                            },
                        );
                        if is_settled { GcOutcome::Kept(snapshot) } else { GcOutcome::NotYet }
                    }
                    burial => burial,
                };
                match burial {
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
                        // Written again since its last look; other entries wait for something else.
                        let is_hot = noted != 0 && due.note != noted;
                        let due = Due { queued: engine.epochs.now(), time, ..due };
                        if is_hot && !mutant(Mutant::HotKept) {
                            hot.push(due)
                        } else {
                            self.reap_queue.push_back(due)
                        }
                    }
                    GcOutcome::Kept(snapshot) | GcOutcome::MoveToDeletedIndex(snapshot) => {
                        self.park(snapshot, due.at, (engine.epochs.now(), time));
                    }
                    GcOutcome::Forgotten => {
                        Context::new(engine, local).clear_out(due.at.record(), table)
                    }
                    GcOutcome::Dead => {
                        Context::new(engine, local).unlink(due.at.record(), table, |node| {
                            units
                                .iter()
                                .for_each(|&unit| P::merge_into_node(&engine.clock, node, unit));
                        })
                    }
                }
            }
            P::end_looking(&mut Context::new(engine, local));
            engine.hot.put_first(&mut unfinished);
            engine.hot.put(&mut hot);
        }
        // The lock of its unit is released soon: it is the first that is looked at next time.
        match of {
            Of::Hot => engine.hot.put_first(&mut busy),
            _ => busy.into_iter().rev().for_each(|due| self.reap_queue.push_front(due)),
        }
    }

    #[inline]
    fn next_burial(&mut self, before: Epoch) -> Option<Due> {
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

    /// Puts a unit by until a snapshot has closed. `queued` and `time` are as in [`Due`].
    fn park(&mut self, snapshot: u64, at: CellAt, (queued, time): (Epoch, u64)) {
        let parked = self.parked.entry(snapshot).or_default();
        (parked.queued, parked.time) = (queued, time);
        parked.units.push(at);
    }
}
