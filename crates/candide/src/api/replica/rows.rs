//! Applying commits of the other database, and the rows of its snapshots.

#![forbid(unsafe_code)]

use super::error::ReplicaError;
use super::notes::{Note, Notes, State};
use super::tables::{Followed, Tables};
use crate::api::changes::{self, Failure};
use crate::api::index_turn::move_view;
use crate::api::row_values::take_values;
use crate::api::session::Session;
use crate::engine::{Following, Protocol, TableCore};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::log::Level;
use crate::schema::{Unit, Words, image_words};
use crate::txn::{self, Tx};
use candide_log::format::commit::{Change, ChangeKind, CommitRecord};
use candide_log::format::long_row::LongRow;
use candide_log::schema::TableSchema;
use candide_log::sum::{long_row_hash, row_hash};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The number of words of changes from which on a transaction ends.
const BATCH_WORDS: usize = 4096;
/// The number of rows that are put at the end of a snapshot, or looked at to delete them, in one
/// transaction.
const ROWS_AT_ONCE: usize = 256;

/// A snapshot that is being taken in.
pub(super) struct Loading {
    /// The keys that the snapshot has, by table; `None` if no table had rows before.
    seen: Option<BTreeMap<u32, HashSet<Box<[u64]>>>>,
    /// Rows that come at the end, of tables with unique indexes: until then, rows that are here may
    /// have their keys in these.
    later: Vec<Row>,
}

/// A row of a snapshot: the number of its table, its key, its other words, and those of its values.
type Row = (u32, Box<[u64]>, Box<[u64]>, Box<[u64]>);

/// The words of a row that has been read, and those of its values.
#[derive(Default)]
struct Image {
    words: Vec<u64>,
    values: Vec<u64>,
}

/// A change of the table with this number in the other database.
type Numbered<'a> = (u32, Change<'a>);

/// What applies commits and snapshots to a database that follows another one.
pub(super) struct Applier<P: Protocol> {
    inner: Handle<P>,
    session: Session<P>,
    notes: Notes<P>,
    tables: Tables,
    state: State,
    /// The snapshot that is being taken in.
    loading: Option<Loading>,
}

impl<P: Protocol> Applier<P> {
    pub(super) fn new(
        inner: Handle<P>,
        session: Session<P>,
        notes: Notes<P>,
        tables: Tables,
        state: State,
    ) -> Applier<P> {
        Applier { inner, session, notes, tables, state, loading: None }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn session(&mut self) -> &mut Session<P> {
        &mut self.session
    }

    /// Returns whether each table has the number here that it has in the other database.
    pub(super) fn has_same_numbers(&self) -> bool {
        self.tables.have_same_numbers()
    }

    /// Returns whether a snapshot is being taken in.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// Returns the sum over all rows.
    pub(super) fn sum(&self) -> u64 {
        self.tables.sum()
    }

    /// Applies all of an object.
    pub(super) fn apply_all(
        &mut self,
        (tables, are_all): (&[TableSchema], bool),
        records: &[CommitRecord<'_>],
        note: &Note,
    ) -> Result<(), ReplicaError> {
        if let State::Whole(before) | State::Changing(before) = self.state
            && self.tables.may_change(tables, are_all)
        {
            self.commit(&[], Some(State::Changing(before)))?;
            move_view(&self.inner, self.following()); // FW2: no part of the object is in it
            self.sync()?;
        }
        self.tables.set(&self.inner, &mut self.session, tables, are_all)?;
        let mut batch = Vec::new();
        let mut words = 0;
        for record in records {
            // A commit is not divided: only as a whole does it leave unique keys unique.
            batch.extend(record.entries().map(|change| (change.table.into(), change)));
            words += record.words().len();
            if words >= BATCH_WORDS {
                self.commit(&batch, None)?;
                batch.clear();
                words = 0;
            }
        }
        self.commit(&batch, Some(State::Whole(*note)))
    }

    /// Makes changes, notes what they change in the tables, and notes a state, in one transaction.
    fn commit(
        &mut self,
        changes: &[Numbered<'_>],
        state: Option<State>,
    ) -> Result<(), ReplicaError> {
        let Applier { session, notes, tables, .. } = self;
        let mut cores = BTreeMap::new();
        for (number, change) in changes {
            if let Some(followed) = tables.get(*number)? {
                changes::check(Some(&followed.table), change).map_err(ReplicaError::Damaged)?;
                cores.insert(*number, followed);
            }
        }
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        let done = session.try_run(|tx| -> Result<(), Failure> {
            sums.clear();
            {
                let staging = &mut *tx.state.borrow_mut();
                let mut image = Image::default();
                for (number, change) in changes {
                    let Some(followed) = cores.get(number).copied() else { continue };
                    let Followed { table, sum } = followed;
                    let core = &table.core;
                    let sum = sums.entry(*number).or_insert(*sum);
                    let before = hash_at(tx, staging, core, change, &mut image)?;
                    *sum = sum.wrapping_sub(before.unwrap_or(0));
                    changes::apply(tx, staging, table, change)?;
                    if change.kind == ChangeKind::Delete {
                        continue;
                    }
                    let after = if table.long().is_empty() {
                        let words = &mut image.words;
                        if before.is_none() {
                            words.clear();
                            words.resize(image_words(core.groups), 0);
                        }
                        let first = usize::from(change.first);
                        words[first..first + change.words.len()].copy_from_slice(change.words);
                        Some(row_hash(change.key, words))
                    } else {
                        hash_at(tx, staging, core, change, &mut image)?
                    };
                    *sum = sum.wrapping_add(after.unwrap_or(0));
                }
            }
            for number in tables.unnoted.iter().chain(sums.keys()) {
                match tables.note(*number, sums.get(number).copied()) {
                    Some(note) => notes.put_table(tx, *number, note)?,
                    None => notes.delete_table(tx, *number)?,
                }
            }
            if let Some(state) = &state {
                notes.put_state(tx, state)?;
            }
            Ok(())
        });
        done.map_err(|failure| self.refused(failure))?;
        self.tables.commit(&sums);
        if let Some(state) = state {
            self.state = state;
        }
        Ok(())
    }

    fn refused(&self, failure: Failure) -> ReplicaError {
        match failure {
            Failure::Ghost(what) => ReplicaError::Damaged(what),
            Failure::Abort(Abort::MemoryLimit) => self.inner.engine.memory_limit_error().into(),
            Failure::Abort(abort) => Error::Transaction(abort).into(),
        }
    }

    fn following(&self) -> &Following {
        self.inner.engine.following.get().expect("the database follows")
    }

    /// Makes durable what has been committed, before tables are changed in the files.
    fn sync(&self) -> Result<(), Error> {
        let log = self.inner.engine.log.get().expect("the database lies in files");
        let synced = log.progress.wait_while_room(self.inner.last_stamp(), Level::Durable);
        synced.map_err(Error::Transaction)
    }

    /// Notes that a snapshot is being taken in, and makes the tables that it has.
    pub(super) fn begin_loading(&mut self, tables: &[TableSchema]) -> Result<(), ReplicaError> {
        self.commit(&[], Some(State::Torn(self.state.note())))?;
        self.loading = None;
        self.following().tear(); // FW4
        if self.tables.may_change(tables, true) {
            self.sync()?;
        }
        self.tables.set(&self.inner, &mut self.session, tables, true)?;
        self.commit(&[], None)?;
        let has_rows = self.tables.all().any(|(_, followed)| followed.table.core.linked.sum() > 0);
        self.loading = Some(Loading { seen: has_rows.then(BTreeMap::new), later: Vec::new() });
        Ok(())
    }

    /// Takes in rows of the snapshot. Those that are here already stay as they are.
    pub(super) fn load<'a>(
        &mut self,
        rows: &mut dyn Iterator<Item = (u32, LongRow<'a>)>,
    ) -> Result<(), ReplicaError> {
        let mut batch: Vec<Numbered<'a>> = Vec::new();
        let mut words = 0;
        loop {
            let next = rows.next();
            if next.is_none() || words >= BATCH_WORDS {
                self.load_batch(&batch)?;
                batch.clear();
                words = 0;
            }
            let Some((number, row)) = next else { return Ok(()) };
            batch.push((number, put(number, row)));
            words += row.key.len() + row.words.len() + row.value_words().len();
        }
    }

    fn load_batch(&mut self, batch: &[Numbered<'_>]) -> Result<(), ReplicaError> {
        let loading = self.loading.as_mut().expect("a snapshot has begun");
        let Some(seen) = &mut loading.seen else { return self.commit(batch, None) };
        for (number, change) in batch {
            seen.entry(*number).or_default().insert(change.key.into());
        }
        let mut differing = Vec::new();
        for (number, change) in batch {
            if let Some(followed) = self.tables.get(*number)? {
                changes::check(Some(&followed.table), change).map_err(ReplicaError::Damaged)?;
                differing.push((&followed.table.core, (*number, *change)));
            }
        }
        let mut is_here = Vec::new();
        let looked = self.session.try_run(|tx| -> Result<(), Failure> {
            let staging = &mut *tx.state.borrow_mut();
            let mut image = Image::default();
            is_here.clear();
            for (core, (_, change)) in &differing {
                let found = hash_at(tx, staging, core, change, &mut image)?;
                let is_same = found.is_some()
                    && image.words == change.words
                    && image.values == change.value_words;
                is_here.push((found.is_some(), is_same));
            }
            Ok(())
        });
        let (mut changes, mut later) = (Vec::new(), Vec::new());
        for ((core, (number, change)), (is_there, is_same)) in differing.into_iter().zip(is_here) {
            if is_same {
                continue;
            }
            if !core.indexes.kept().any(|index| index.unique) {
                changes.push((number, change));
                continue;
            }
            let Change { key, words, value_words, .. } = change;
            later.push((number, key.into(), words.into(), value_words.into()));
            if is_there {
                changes.push((number, delete(number, change.key)));
            }
        }
        looked.map_err(|failure| self.refused(failure))?;
        self.loading.as_mut().expect("a snapshot has begun").later.append(&mut later);
        self.commit(&changes, None)
    }

    /// Ends the rows of the snapshot: deletes those that it does not have.
    pub(super) fn end_rows(&mut self) -> Result<(), ReplicaError> {
        let loading = self.loading.as_mut().expect("a snapshot has begun");
        let (seen, later) = (loading.seen.take(), std::mem::take(&mut loading.later));
        if let Some(seen) = seen {
            let tables: Vec<_> =
                self.tables.all().map(|(number, of)| (number, of.table.core.clone())).collect();
            for (number, core) in tables {
                self.delete_others(number, &core, seen.get(&number))?;
            }
        }
        for rows in later.chunks(ROWS_AT_ONCE) {
            // The tables are those of rows that were looked at.
            let puts = rows.iter().map(|(number, key, words, values)| {
                let row = LongRow::of(key, words, values).expect("it was a row");
                (*number, put(*number, row))
            });
            self.commit(&puts.collect::<Vec<_>>(), None)?;
        }
        Ok(())
    }

    /// Ends the rows of the snapshot, and notes that it is complete.
    pub(super) fn end_loading(&mut self, note: &Note) -> Result<(), ReplicaError> {
        self.end_rows()?;
        self.loading = None;
        self.commit(&[], Some(State::Whole(*note)))
    }

    /// Deletes the rows of a table whose keys are not among `seen`.
    fn delete_others(
        &mut self,
        number: u32,
        core: &Arc<TableCore>,
        seen: Option<&HashSet<Box<[u64]>>>,
    ) -> Result<(), ReplicaError> {
        let key_words = core.layout.key_words();
        let keys = self.session.linked_keys(core);
        let is_other = |key: &&[u64]| seen.is_none_or(|seen| !seen.contains(*key));
        let others: Vec<_> = keys.chunks(key_words).filter(is_other).collect();
        for keys in others.chunks(ROWS_AT_ONCE) {
            let mut there: Vec<Numbered<'_>> = Vec::new();
            let looked = self.session.try_run(|tx| -> Result<(), Failure> {
                let staging = &mut *tx.state.borrow_mut();
                there.clear();
                for key in keys {
                    let change = delete(number, key);
                    if changes::row(tx, staging, core, key)?.is_some() {
                        there.push((number, change));
                    }
                }
                Ok(())
            });
            looked.map_err(|failure| self.refused(failure))?;
            self.commit(&there, None)?;
        }
        Ok(())
    }
}

/// Returns the sum of the hashes of the rows of a table.
pub(super) fn sum_of<P: Protocol>(
    session: &mut Session<P>,
    core: &Arc<TableCore>,
) -> Result<u64, Error> {
    let keys = session.linked_keys(core);
    let mut sum = 0u64;
    for keys in keys.chunks(ROWS_AT_ONCE * core.layout.key_words()) {
        let mut of_keys = 0u64;
        session
            .run_body(&mut |tx| {
                of_keys = 0;
                let (staging, mut image) = (&mut *tx.state.borrow_mut(), Image::default());
                for key in keys.chunks(core.layout.key_words()) {
                    let hash = hash_at(tx, staging, core, &delete(0, key), &mut image)?;
                    of_keys = of_keys.wrapping_add(hash.unwrap_or(0));
                }
                Ok(())
            })
            .map_err(Error::Transaction)?;
        sum = sum.wrapping_add(of_keys);
    }
    Ok(sum)
}

/// Returns the change that puts a row.
fn put(table: u32, row: LongRow<'_>) -> Change<'_> {
    let (kind, LongRow { key, words, .. }) = (ChangeKind::Put, row);
    Change { table: table as u16, kind, first: 0, key, words, value_words: row.value_words() }
}

/// Returns the change that deletes a row.
fn delete(table: u32, key: &[u64]) -> Change<'_> {
    let kind = ChangeKind::Delete;
    Change { table: table as u16, kind, first: 0, key, words: &[], value_words: &[] }
}

/// Returns the hash of the row of a change as it is in the transaction; `None` if there is none.
/// `image` gets its words.
fn hash_at<P: Protocol>(
    tx: &Tx<'_, P>,
    state: &mut txn::State<P>,
    core: &TableCore,
    change: &Change<'_>,
    Image { words: image, values }: &mut Image,
) -> Result<Option<u64>, Abort> {
    let row = core.layout.in_kept_words(change.key, |key| changes::row(tx, state, core, key))?;
    let Some(record) = row else { return Ok(None) };
    image.clear();
    image.resize(Unit::ROW.image_range(core.groups).1, 0);
    let copy = &mut |unit: Unit, from: Words<'_>| {
        let (start, count) = unit.image_range(core.groups);
        from.copy(0, count, |word, value| image[start + word] = value);
    };
    let is_there = state.read_units(tx.engine, core, (record, core.layout.units()), copy)?;
    values.clear();
    if !is_there {
        return Ok(None);
    }
    take_values(core.layout.named_places(), image, tx, values);
    let row = LongRow::of(change.key, image, values).expect("the values of a row");
    Ok(Some(long_row_hash(row)))
}
