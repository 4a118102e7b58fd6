//! Trails: the writes that each worker's transactions have announced. An aborted attempt looks up
//! in the trails the types of the attempts that it met.
//!
//! The engine reports in which row and group an attempt had a conflict (for an absent key: in which
//! table), but not with which transaction. So every attempt announces its writes before it makes
//! them, and records the time at its end. The time is a counter. The aborted attempt *met* an
//! attempt if both overlapped in time and the other attempt announced a write of that row and group
//! (for an absent key: an insert into that table). The attempt that changed or locked the row is
//! among the attempts that were met. That attempt announced the write before changing the row, and
//! had not ended when the aborted attempt began to read. So if all met attempts are of one type,
//! that type caused the conflict.
//!
//! The set of met attempts is empty in two cases. Either the engine itself removed a record or an
//! empty leaf, or the aborted attempt took so long that not all attempts that ended meanwhile are
//! remembered.
//!
//! The trails are kept only if [`Tpcc::causes`](super::knobs::Tpcc::causes) is set.

use candide::schema::RowMeta;
use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use candide::report::Conflict;
use candide::{Key, Record};

use super::knobs::KINDS;
use crate::causes::{Cause, Causes};

/// The number of attempts of each worker that are remembered. These attempts cover two or three of
/// the scheduler's time slices. So an attempt that loses the processor midway can still look up the
/// attempts that two other workers made meanwhile.
const REMEMBERED: usize = 2048;

/// The largest number of words of a key that a conflict reports.
const KEY_WORDS: usize = 4;

/// The part of a row that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// One column group.
    Group(&'static str),
    /// The whole row, inserted.
    Insert,
    /// The whole row, deleted.
    Delete,
}

/// A write that was announced.
#[derive(Debug, Clone, Copy)]
struct Write {
    /// The type of the table's rows. Each table has a different type.
    row: TypeId,
    key: [u64; KEY_WORDS],
    what: What,
}

/// The place of a conflict.
struct Place<'a> {
    row: TypeId,
    /// The key and the group; `None` if the conflict was about an absent key.
    at: Option<([u64; KEY_WORDS], &'a str)>,
}

impl Place<'_> {
    fn is_written_by(&self, write: &Write) -> bool {
        let Some((key, group)) = self.at else {
            return self.row == write.row && write.what == What::Insert;
        };
        let same_group = match write.what {
            What::Group(written) => group == "*" || group == written,
            What::Insert | What::Delete => true,
        };
        key == write.key && self.row == write.row && same_group
    }
}

/// Returns the words of a key, followed by zeros. The key has at most [`KEY_WORDS`] words.
fn words_of(key: &[u64]) -> [u64; KEY_WORDS] {
    std::array::from_fn(|index| key.get(index).copied().unwrap_or(0))
}

/// The writes that one attempt is about to make.
#[derive(Debug, Default)]
pub(super) struct Writes(Vec<Write>);

impl Writes {
    /// Adds an update of columns of one group.
    pub(super) fn update<R: Record>(&mut self, key: &R::Key, group: &'static str) {
        debug_assert!(
            R::GROUPS.iter().any(|known| known.name == group),
            "{} has no group {group}",
            R::NAME
        );
        self.add::<R>(key, What::Group(group));
    }

    /// Adds an insert.
    pub(super) fn insert<R: Record>(&mut self, key: &R::Key) {
        self.add::<R>(key, What::Insert);
    }

    /// Adds a delete.
    pub(super) fn delete<R: Record>(&mut self, key: &R::Key) {
        self.add::<R>(key, What::Delete);
    }

    fn add<R: Record>(&mut self, key: &R::Key, what: What) {
        const { assert!(<R::Key as Key>::WORDS <= KEY_WORDS, "a conflict would not name the whole key") };
        self.0.push(Write { row: TypeId::of::<R>(), key: words_of(key.words().as_ref()), what });
    }
}

/// An attempt that has ended.
#[derive(Debug)]
struct Past {
    kind: usize,
    ended: u64,
    writes: Writes,
}

/// The writes that one worker has announced.
#[derive(Debug, Default)]
struct Trail {
    /// The type of the running attempt, and the writes that it has announced.
    kind: usize,
    writes: Writes,
    /// The remembered attempts that have ended after announcing a write. The latest attempt is
    /// last.
    past: VecDeque<Past>,
    /// The time of the latest end among the attempts that are no longer remembered; 0 if all are.
    forgotten: u64,
}

impl Trail {
    /// Marks in `kinds` the types of all attempts that were writing at `place` and had not ended at
    /// the time `since`. Returns `false` if not all of these attempts are remembered.
    fn look(&self, place: &Place<'_>, since: u64, kinds: &mut [bool; KINDS.len()]) -> bool {
        let at_work = self.past.iter().rev().take_while(|past| past.ended > since);
        let attempts =
            at_work.map(|past| (past.kind, &past.writes)).chain([(self.kind, &self.writes)]);
        for (kind, writes) in attempts {
            kinds[kind] |= writes.0.iter().any(|write| place.is_written_by(write));
        }
        self.forgotten <= since
    }

    /// Records that the running attempt ended at the time `ended`.
    fn end(&mut self, ended: u64) {
        if self.writes.0.is_empty() {
            return;
        }
        let mut room = Writes::default();
        if self.past.len() == REMEMBERED {
            let oldest = self.past.pop_front().expect("as many as are remembered");
            self.forgotten = oldest.ended;
            room = oldest.writes;
            room.0.clear();
        }
        let writes = std::mem::replace(&mut self.writes, room);
        self.past.push_back(Past { kind: self.kind, ended, writes });
    }
}

/// The trails of all workers.
#[derive(Debug)]
pub(super) struct Trails {
    /// The number of attempts that have ended. The number serves as the time.
    time: AtomicU64,
    /// The trails by worker. If a worker has finished, the next worker with the same number
    /// continues its trail.
    all: RwLock<Vec<Arc<Mutex<Trail>>>>,
    /// The tables' names.
    tables: Vec<(String, TypeId)>,
}

impl Trails {
    /// Creates the trails of workers on tables with these names.
    pub(super) fn new(tables: Vec<(String, TypeId)>) -> Self {
        Trails { time: AtomicU64::new(0), all: RwLock::default(), tables }
    }

    /// Returns the tracer of worker number `worker`.
    pub(super) fn tracer(self: &Arc<Self>, worker: usize) -> Tracer {
        let mut all = self.all.write().expect("no thread panics here");
        let missing = (worker + 1).saturating_sub(all.len());
        all.extend((0..missing).map(|_| Arc::default()));
        Tracer {
            trails: self.clone(),
            own: all[worker].clone(),
            since: Cell::new(0),
            causes: RefCell::default(),
        }
    }

    /// Returns the types of all attempts that were writing at the place of a conflict and had not
    /// ended at the time `since`, except those of `own`. Returns no types if the table is not known
    /// or not all of these attempts are remembered.
    fn met(&self, conflict: &Conflict, since: u64, own: &Arc<Mutex<Trail>>) -> Vec<usize> {
        let table = self.tables.iter().find(|(name, _)| conflict.table.as_ref() == Some(name));
        let Some(&(_, row)) = table else { return Vec::new() };
        let place =
            Place { row, at: conflict.key.as_ref().map(|key| words_of(key)).zip(conflict.group) };
        self.met_at(&place, since, own)
    }

    fn met_at(&self, place: &Place<'_>, since: u64, own: &Arc<Mutex<Trail>>) -> Vec<usize> {
        let (mut kinds, mut is_all) = ([false; KINDS.len()], true);
        for trail in self
            .all
            .read()
            .expect("no thread panics here")
            .iter()
            .filter(|trail| !Arc::ptr_eq(trail, own))
        {
            is_all &= lock(trail).look(place, since, &mut kinds);
        }
        (0..KINDS.len()).filter(|&kind| is_all && kinds[kind]).collect()
    }
}

fn lock(trail: &Mutex<Trail>) -> MutexGuard<'_, Trail> {
    trail.lock().expect("no thread panics here")
}

/// A worker's own trail, its access to the other trails, and the causes that the worker has found.
#[derive(Debug)]
pub(super) struct Tracer {
    trails: Arc<Trails>,
    own: Arc<Mutex<Trail>>,
    /// The time at which the running attempt began.
    since: Cell<u64>,
    causes: RefCell<Causes>,
}

impl Tracer {
    /// Takes the causes found since the last call.
    pub(super) fn take_causes(&self) -> Causes {
        self.causes.take()
    }

    /// Records that an attempt of type `kind` begins.
    fn begin(&self, kind: usize) {
        lock(&self.own).kind = kind;
        // Acquire: the actions of an attempt that has ended by this time happen before this
        // attempt's reads.
        self.since.set(self.trails.time.load(Ordering::Acquire));
    }

    /// Records that the running attempt has ended.
    fn end(&self) {
        // Release: see `begin`.
        let ended = self.trails.time.fetch_add(1, Ordering::AcqRel) + 1;
        lock(&self.own).end(ended);
    }

    /// Records that the running attempt was aborted by a conflict.
    fn aborted(&self, conflict: &Conflict) {
        let met = self.trails.met(conflict, self.since.get(), &self.own);
        self.causes.borrow_mut().count(Cause::new(conflict, lock(&self.own).kind, met));
        self.end();
    }
}

/// The place where a transaction announces its writes; `None` if causes were not requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Announcer<'a>(Option<&'a Tracer>);

impl<'a> Announcer<'a> {
    pub(super) fn new(tracer: Option<&'a Tracer>) -> Self {
        Announcer(tracer)
    }

    /// Returns whether causes were requested.
    pub(super) fn is_heard(self) -> bool {
        self.0.is_some()
    }

    /// Announces the writes that the running attempt is about to make.
    #[inline]
    pub(super) fn writes(self, list: impl FnOnce(&mut Writes)) {
        if let Some(tracer) = self.0 {
            list(&mut lock(&tracer.own).writes);
        }
    }

    /// Records that an attempt of type `kind` begins, if causes were requested.
    #[inline]
    pub(super) fn begin(self, kind: usize) {
        if let Some(tracer) = self.0 {
            tracer.begin(kind);
        }
    }

    /// Records that the transaction's last attempt has ended, if causes were requested.
    #[inline]
    pub(super) fn end(self) {
        if let Some(tracer) = self.0 {
            tracer.end();
        }
    }

    /// Records that a conflict aborted the running attempt, if causes were requested.
    pub(super) fn aborted(self, conflict: &Conflict) {
        if let Some(tracer) = self.0 {
            tracer.aborted(conflict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Customer, District, Warehouse};
    use super::*;

    const NEW_ORDER: usize = 0;
    const PAYMENT: usize = 1;
    const DELIVERY: usize = 3;
    const NO_WORKER: [usize; 0] = [];

    /// Returns the tracers of three workers.
    fn tracers() -> [Tracer; 3] {
        let names =
            [("customers", TypeId::of::<Customer>()), ("districts", TypeId::of::<District>())];
        let trails =
            Arc::new(Trails::new(names.map(|(name, row)| (name.to_string(), row)).to_vec()));
        std::array::from_fn(|worker| trails.tracer(worker))
    }

    /// Runs an attempt that updates a group of customer 7, and ends it.
    fn update(tracer: &Tracer, kind: usize, group: &'static str) {
        tracer.begin(kind);
        Announcer(Some(tracer)).writes(|writes| writes.update::<Customer>(&(1, 2, 7), group));
        tracer.end();
    }

    /// Returns the place of a conflict on a column group of a customer.
    fn on_customer(customer: u16, group: &str) -> Place<'_> {
        Place {
            row: TypeId::of::<Customer>(),
            at: Some((words_of(&[1, 2, u64::from(customer)]), group)),
        }
    }

    /// Returns the types that the running attempt of `tracer` met at `place`; none if they are not
    /// known.
    fn met(tracer: &Tracer, place: &Place<'_>) -> Vec<usize> {
        tracer.trails.met_at(place, tracer.since.get(), &tracer.own)
    }

    #[test]
    fn only_overlapping_transactions_are_named_as_causes() {
        let [mine, other, third] = tracers();
        let place = on_customer(7, "account");
        update(&other, PAYMENT, "account");
        mine.begin(NEW_ORDER);
        assert_eq!(met(&mine, &place), NO_WORKER, "it had ended before");
        third.begin(DELIVERY);
        Announcer(Some(&third)).writes(|writes| writes.update::<Customer>(&(1, 2, 7), "account"));
        assert_eq!(met(&mine, &place), [DELIVERY], "it has not ended");
        third.end();
        assert_eq!(met(&mine, &place), [DELIVERY], "it ended later");
        update(&other, PAYMENT, "account");
        assert_eq!(met(&mine, &place), [PAYMENT, DELIVERY], "one of them");
        mine.begin(NEW_ORDER);
        assert_eq!(met(&mine, &place), NO_WORKER);
        update(&mine, NEW_ORDER, "account");
        assert_eq!(met(&mine, &place), NO_WORKER, "no worker meets itself");
    }

    #[test]
    fn only_writers_of_the_conflicting_row_are_named_as_causes() {
        let [mine, other, third] = tracers();
        mine.begin(NEW_ORDER);
        update(&other, PAYMENT, "account");
        assert_eq!(met(&mine, &on_customer(7, "account")), [PAYMENT]);
        assert_eq!(met(&mine, &on_customer(7, "*")), [PAYMENT], "without splitting a row is one");
        assert_eq!(met(&mine, &on_customer(7, "row")), NO_WORKER);
        assert_eq!(met(&mine, &on_customer(8, "account")), NO_WORKER);
        let (customers, districts) = (TypeId::of::<Customer>(), TypeId::of::<District>());
        assert_eq!(met(&mine, &Place { row: customers, at: None }), NO_WORKER, "the key was there");
        third.begin(DELIVERY);
        Announcer(Some(&third)).writes(|writes| {
            writes.insert::<District>(&(1, 2));
            writes.delete::<Warehouse>(&1);
        });
        assert_eq!(met(&mine, &Place { row: districts, at: None }), [DELIVERY]);
        for group in ["takings", "row", "*"] {
            let place = |row, key: &[u64]| Place { row, at: Some((words_of(key), group)) };
            assert_eq!(
                met(&mine, &place(districts, &[1, 2])),
                [DELIVERY],
                "an insert writes all groups"
            );
            assert_eq!(
                met(&mine, &place(TypeId::of::<Warehouse>(), &[1])),
                [DELIVERY],
                "a delete, too"
            );
        }
        assert_eq!(
            met(&mine, &Place { row: TypeId::of::<Warehouse>(), at: None }),
            NO_WORKER,
            "a delete fills no gap"
        );
    }

    #[test]
    fn causes_are_unknown_after_the_trail_has_dropped_entries() {
        let [mine, other, third] = tracers();
        let place = on_customer(7, "account");
        update(&other, PAYMENT, "account");
        mine.begin(NEW_ORDER);
        for _ in 0..REMEMBERED {
            update(&third, DELIVERY, "account");
        }
        assert_eq!(met(&mine, &place), [DELIVERY], "all of them");
        update(&third, DELIVERY, "row");
        assert_eq!(met(&mine, &place), NO_WORKER, "the first is forgotten");
        mine.begin(NEW_ORDER);
        update(&other, PAYMENT, "account");
        assert_eq!(met(&mine, &place), [PAYMENT], "what is forgotten came before");
    }
}
