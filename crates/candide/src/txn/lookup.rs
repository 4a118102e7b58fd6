//! The records of keys: lookup, the absence of a key, the linking of new records, and the search
//! for deleted records.

#![forbid(unsafe_code)]

use super::State;
use crate::engine::{Context, Engine, Missing, Protocol, ReadView, TableCore, Versions};
use crate::error::Abort;
use crate::index::{Found, Linked, Place, Start, Supplies};
use crate::memory::Cache;
use crate::record::RecordAt;
use crate::schema::KeyPacking;
use crate::sync::{MODELLED, Ordering, Point, Spin, pass};

/// The number of rounds for which a put or an insert waits until the collector, which has marked
/// the key's record as dead, has unlinked the record.
const UNLINK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// The target record of an insert or put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertTarget {
    pub(crate) record: RecordAt,
    /// Whether this transaction has just linked the record and not written it yet. A record just
    /// linked holds no row, but has room for one. For any other record, the writer first makes
    /// room.
    pub(crate) is_new: bool,
}

impl<P: Protocol> State<P> {
    /// Looks up a key, without observing anything.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Found, Abort> {
        self.admit(engine, table)?;
        table.check_key(key);
        if P::Versions::KEEPS_DELETED_INDEX && self.worker.local.read_view != ReadView::Current {
            return Ok(self.find_back(table, key));
        }
        Ok(table.index.find(key))
    }

    /// Packs a key and calls [`State::find`].
    #[inline(never)]
    pub(crate) fn find_packed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        packing: KeyPacking,
        words: &[u64],
    ) -> Result<Found, Abort> {
        self.find(engine, table, packing.pack(words).as_slice())
    }

    /// Looks up again a key that had no record just before. If the key still has no record,
    /// observes its absence.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_again(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Option<RecordAt>, Abort> {
        match self.find(engine, table, key)? {
            Found::Record(record) => Ok(Some(record)),
            Found::Nothing { node, version } => {
                self.absent(
                    engine,
                    Missing { table: table.number, key: Some(key), node, version },
                )?;
                Ok(None)
            }
        }
    }

    /// Looks up a key for an older read view. Out of line, so that looking up the current row is
    /// short.
    #[cold]
    #[inline(never)]
    fn find_back(&self, table: &TableCore, key: &[u64]) -> Found {
        self.read_view(table, key, table.index.find(key))
    }

    /// Returns the record of a key for the attempt's read view; `found` is the result in the
    /// table's main index. If a record in the index of deleted records held the row in that view,
    /// returns that record.
    pub(crate) fn read_view(&self, table: &TableCore, key: &[u64], found: Found) -> Found {
        if !self.needs_deleted_index() {
            return found;
        }
        table.check_key(key);
        let deleted_index = table.deleted_index().filter(|deleted_index| !deleted_index.is_empty());
        match deleted_index.and_then(|deleted_index| deleted_index.find(key)) {
            Some(record) if self.is_older(table, record) => Found::Record(record),
            _ => found,
        }
    }

    /// Returns whether the attempt's read view is older than the deletion of the row of `record`,
    /// which is in the index of deleted records. If so, no other record of the same key holds the
    /// row of that view.
    pub(crate) fn is_older(&self, table: &TableCore, record: RecordAt) -> bool {
        P::Versions::is_older(&self.attempt, table.layout.first_of(record))
    }

    /// Returns whether the attempt must search the index of deleted records. (A read-only attempt
    /// that is not registered as a snapshot need not search there: its pin keeps records in the
    /// main index.) Called after admission, which may register the attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn needs_deleted_index(&self) -> bool {
        P::Versions::KEEPS_DELETED_INDEX
            && match self.worker.local.read_view {
                ReadView::Current => false,
                ReadView::AtBegin | ReadView::Past(_) => self.registered.is_some(),
                ReadView::Snapshot(_) => true,
            }
    }

    /// Returns whether a scan may continue after a node that it has read was replaced. A scan of an
    /// older read view may, since it does not depend on the node.
    pub(crate) fn is_looking_back(&self, engine: &Engine<P>) -> bool {
        P::Versions::WORDS > 0
            && engine.properties.version_words > 0
            && self.worker.local.read_view != ReadView::Current
    }

    /// Observes that a key has no record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn absent(&mut self, engine: &Engine<P>, missing: Missing<'_>) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::absent(context, &mut self.attempt, as_searched(missing))
            .map_err(|abort| self.doom(abort))
    }

    /// Returns the record of a key. If the key has none, links an absent record.
    pub(crate) fn record_for(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<InsertTarget, Abort> {
        self.admit(engine, table)?;
        self.admit_write()?;
        table.check_key(key);
        let mut place = Place::default();
        match table.index.find_place(key, &mut place) {
            Found::Record(record) => self.existing(engine, table, record),
            Found::Nothing { .. } => self.link(engine, table, key, &mut place),
        }
    }

    /// Returns a record that this operation has found in the index, as the target of an insert or
    /// put. The record stays in the index until the attempt has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn existing(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        if P::may_be_reaped(&engine.clock, table.layout.first_of(record)) {
            return self.keep(engine, table, record);
        }
        Ok(InsertTarget { record, is_new: false })
    }

    #[cold]
    #[inline(never)]
    fn keep(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        match P::keep(context, table.layout.first_of(record)) {
            Ok(true) => Ok(InsertTarget { record, is_new: false }),
            Ok(false) => self.instead_of_dead(engine, table, record),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Returns the target of an insert or put of a key whose record is dead: another record, as
    /// soon as the collector has unlinked the dead one.
    #[cold]
    #[inline(never)]
    fn instead_of_dead(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        dead: RecordAt,
    ) -> Result<InsertTarget, Abort> {
        let key = dead.key_words(table.layout.key_words());
        let mut spin = Spin::default();
        loop {
            match table.index.find(key.as_slice()) {
                Found::Nothing { .. } => {
                    return self.link(engine, table, key.as_slice(), &mut Place::default());
                }
                Found::Record(record) if record != dead => {
                    return self.existing(engine, table, record);
                }
                Found::Record(_) if spin.wait_at_most(UNLINK_ROUNDS_MAX) => {}
                Found::Record(_) => {
                    let first = table.layout.first_of(dead);
                    let context = &mut Context::new(engine, &mut self.worker);
                    let abort = context.conflict(Abort::RecordRemoved, first);
                    return Err(self.doom(abort));
                }
            }
        }
    }

    /// Reserves room for writing a whole row of a table. At this point a refusal leaves no trace.
    pub(crate) fn make_room(&mut self, engine: &Engine<P>, table: &TableCore) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        P::Versions::make_room(context, &self.attempt, table)
    }

    /// Links an absent record for a key that has none, if possible near `place`. If another
    /// transaction has linked a record for the key meanwhile, returns that record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        key: &[u64],
        place: &mut Place,
    ) -> Result<InsertTarget, Abort> {
        table.check_key(key);
        self.admit_write()?;
        // A link raises the version of a node, so it causes conflicts like a commit.
        if let Err(yielded) = Context::new(engine, &mut self.worker).yield_to_token() {
            self.wait_to_link(engine, table, yielded)?;
        }
        let local = &mut self.worker.local;
        let Ok(record) = RecordAt::allocate(&table.layout, key, &table.records, &mut local.caches)
        else {
            // A caller that links without a lookup does not know whether the key has a record.
            return match table.index.find(key) {
                Found::Record(record) => self.existing(engine, table, record),
                Found::Nothing { .. } => Err(Abort::MemoryLimit),
            };
        };
        let cells = table.layout.cells(record);
        // Relaxed: a new record may have the flags of the old policy or of the new one.
        let flags = table.at_links.new_record_flags.load(Ordering::Relaxed);
        cells.clone().for_each(|at| P::init_absent_cell(&engine.clock, at, flags));
        let mut is_watched = false;
        match place.link_near(record, key, &mut |node| {
            cells.clone().for_each(|at| P::inherit_from_node(&engine.clock, node, at));
            is_watched |= table.is_watched(); // WT3
        }) {
            Ok(linked) => {
                if is_watched {
                    engine.watchers.wake_for_link(table.number); // WT3
                }
                self.note_link(engine, table, record, linked)
            }
            Err(start) => self.link_afar(engine, table, (record, key), place, start),
        }
    }

    /// Waits for the token that another session holds, if the attempt need not end.
    ///
    /// # Errors
    /// `yielded`, which then dooms the attempt.
    #[cold]
    #[inline(never)]
    fn wait_to_link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        yielded: Abort,
    ) -> Result<(), Abort> {
        let context = &mut Context::new(engine, &mut self.worker);
        match P::waits_to_link(context, &self.attempt, table.number) {
            true => Ok(()),
            false => Err(self.doom(yielded)),
        }
    }

    /// Packs a key and calls [`State::link`].
    #[inline(never)]
    pub(crate) fn link_packed(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        packing: KeyPacking,
        words: &[u64],
        place: &mut Place,
    ) -> Result<InsertTarget, Abort> {
        self.link(engine, table, packing.pack(words).as_slice(), place)
    }

    /// Completes [`State::link`] for a key that does not belong at `place`.
    #[inline(never)]
    fn link_afar(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        (record, key): (RecordAt, &[u64]),
        place: &mut Place,
        start: Start,
    ) -> Result<InsertTarget, Abort> {
        let local = &mut self.worker.local;
        let mut is_watched = false;
        let inherit_from_node = |node| {
            table.layout.cells(record).for_each(|at| P::inherit_from_node(&engine.clock, node, at));
            is_watched |= table.is_watched(); // WT3
        };
        let mut supplies = Supplies {
            caches: &mut local.caches,
            retired: &mut local.retired_parts,
            changes: &mut local.divided,
        };
        let linked =
            table.index.link::<true>(record, key, (place, start), &mut supplies, inherit_from_node);
        if is_watched {
            engine.watchers.wake_for_link(table.number); // WT3
        }
        local.retire_parts(table.number);
        local.divided.iter().for_each(|change| P::divided(&mut self.attempt, change));
        local.divided.clear();
        let Ok(linked) = linked else {
            Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
            return Err(Abort::MemoryLimit);
        };
        self.note_link(engine, table, record, linked)
    }

    /// Notes the result of linking a record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_link(
        &mut self,
        engine: &Engine<P>,
        table: &TableCore,
        record: RecordAt,
        linked: Linked,
    ) -> Result<InsertTarget, Abort> {
        let local = &mut self.worker.local;
        match linked {
            Linked::New { node, before, after } => {
                let first = table.layout.first_of(record);
                P::linked(&mut self.attempt, node, before, after, first);
                local.linked.push(first);
                local.count_linked(table, true);
                Ok(InsertTarget { record, is_new: true })
            }
            Linked::Existing(existing) => {
                Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
                self.existing(engine, table, existing)
            }
        }
    }
}

/// Returns how an unsuccessful search is observed: by its node, in the version that was searched.
#[cfg_attr(not(debug_assertions), inline(always))]
fn as_searched(missing: Missing<'_>) -> Missing<'_> {
    pass(Point::Searched);
    missing
}
