//! Tests with many memory limits, from zero to just enough. A refused transaction must have no
//! effect, and no memory may be lost.
//!
//! `CANDIDE_STRESS=n` tries n times as many limits. Unless `CANDIDE_FULL` is set, one in eighty of
//! them is tried.

use super::Watchdog;
use crate::engine::{Protocol, Versions};
use crate::sync::Random;
use crate::sync::size::{Sample, stress};
use crate::tests::entries::{assert_entries_match_rows, linked_records};
use crate::tests::indexed_rows::Parcel;
use crate::tests::rows::Item;
use crate::{Abort, Database, Error, IndexOptions, Record, Session, Table, Tx};
use std::collections::BTreeMap;

/// The number of transactions of the script.
const TRANSACTIONS: u64 = 1_000;
/// The number of limits under which each protocol is tested.
const LIMITS: usize = 1_000;
/// The number of bytes that may be taken beyond the limit to complete work that has begun (a
/// half-moved bucket): a span of 64 KiB for each hash index.
const BEYOND: usize = 2 * (64 << 10);

type Key = (u8, u16);
type Model = BTreeMap<Key, Parcel>;

struct LimitedStore<P: Protocol> {
    db: Database<P>,
    parcels: Table<Parcel, P>,
    session: Session<P>,
    rows: Model,
    refused: usize,
}

/// One transaction of the script.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: u64,
    first: Key,
    second: Key,
    place: (u8, i8),
}

/// Returns the script. The script is the same for every limit.
fn script() -> Vec<Step> {
    let mut random = Random::seeded(7);
    let mut key = |number: u64| -> Key {
        let number = if random.below(3) == 0 { random.below(number + 1) } else { number };
        ((number % 3) as u8, (number / 3) as u16)
    };
    let keys: Vec<[Key; 2]> =
        (0..TRANSACTIONS).map(|number| [key(3 * number), key(3 * number + 1)]).collect();
    let step = |[first, second]: [Key; 2]| {
        let place = (random.below(9) as u8, random.below(9) as i8);
        Step { kind: random.below(8), first, second, place }
    };
    keys.into_iter().map(step).collect()
}

impl<P: Protocol> LimitedStore<P> {
    /// Makes a table with indexes.
    ///
    /// # Errors
    /// If the limit leaves no room for the table and its indexes.
    fn new(limit: usize) -> Result<LimitedStore<P>, Error> {
        let db = Database::<P>::builder().manual_epochs(1).memory_limit(limit).seed(1).build()?;
        let parcels = db.table::<Parcel>("parcels")?;
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique())?;
        parcels.create_index(
            "by_place",
            (Parcel::SHELF, Parcel::OWNER),
            IndexOptions::ordered(),
        )?;
        let session = db.session()?;
        Ok(LimitedStore { db, parcels, session, rows: Model::new(), refused: 0 })
    }

    /// Runs the script. The model applies the committed transactions.
    fn run(&mut self, script: &[Step]) {
        for (number, step) in script.iter().enumerate() {
            let done = self.session.run(|tx| perform(&self.parcels, tx, step));
            match done {
                Ok(true) => model(&mut self.rows, step),
                Ok(false) | Err(Abort::MemoryLimit) => self.refused += 1,
                Err(abort) => panic!("{step:?}: {abort}"),
            }
            if number % 20 == 0 {
                self.db.inner.engine.epochs.pass();
            }
        }
    }

    fn check(&mut self) {
        let mut rows = Model::new();
        self.parcels
            .for_each_quiescent(|row| assert!(rows.insert(row.key(), *row).is_none()))
            .unwrap();
        assert!(rows == self.rows, "{} rows, {} expected", rows.len(), self.rows.len());
        assert_entries_match_rows(&mut self.session, &self.parcels);
        assert_eq!(self.db.health().oldest_pin, None);
    }

    fn check_limit(&self, limit: usize) {
        // If deletes make versions, a span may also be taken for the deleted rows of each of three
        // tables.
        let beyond = BEYOND + if P::Versions::WORDS > 0 { 3 * (64 << 10) } else { 0 };
        assert!(
            self.db.memory().reserved_bytes <= limit + beyond,
            "{:?} with a limit of {limit}",
            self.db.memory()
        );
    }

    /// Deletes all rows, which needs no memory. Then all memory of rows must become free.
    fn clear(&mut self) {
        for key in std::mem::take(&mut self.rows).into_keys() {
            assert_eq!(self.session.run(|tx| self.parcels.delete(tx, &key)), Ok(()));
        }
        // At a time, a session examines only a few hundred entries of its garbage.
        for _ in 0..100 {
            self.db.inner.engine.epochs.pass();
            self.session.run(|_| Ok(())).unwrap();
            if self.db.memory().garbage == 0 {
                break;
            }
        }
        let left = (self.db.memory().garbage, linked_records(&mut self.session, &self.parcels));
        assert_eq!(left, (0, 0), "garbage and linked records");
    }
}

/// Runs the closure of one transaction. Returns `false` if the closure has caught a refusal and
/// commits the rest.
fn perform<P: Protocol>(
    parcels: &Table<Parcel, P>,
    tx: &Tx<'_, P>,
    step: &Step,
) -> Result<bool, Abort> {
    let Step { kind, first, second, place } = *step;
    match kind {
        // Two rows or none.
        0..3 => {
            for (district, number) in [first, second] {
                parcels.insert_if_absent(tx, Parcel::new(district, number))?;
            }
        }
        3 => match parcels.insert_if_absent(tx, Parcel::new(first.0, first.1)) {
            // The closure continues after the refusal. The refused insert must have no effect, and
            // the rest takes effect. If the row existed, the insert would need no memory.
            Err(Abort::MemoryLimit) => {
                assert_eq!(parcels.get(tx, &first, ())?, None);
                return Ok(false);
            }
            other => drop(other?),
        },
        4 => parcels.put(tx, Parcel { shelf: place.0, ..Parcel::new(first.0, first.1) })?,
        5 => {
            let moved = |pair: &mut (u8, i8)| *pair = place;
            parcels.modify_if_present(tx, &first, (Parcel::SHELF, Parcel::OWNER), moved)?;
            parcels.modify_if_present(tx, &second, Parcel::CODE, |code| *code ^= 1 << 20)?;
        }
        6 => drop(parcels.update_if_present(tx, &first, Parcel::WEIGHT.add(1))?),
        _ => drop(parcels.delete_if_present(tx, &second)?),
    }
    Ok(true)
}

/// Applies the effect of a transaction to the model's rows.
fn model(rows: &mut Model, step: &Step) {
    let Step { kind, first, second, place } = *step;
    let mut insert = |key: Key| {
        rows.entry(key).or_insert(Parcel::new(key.0, key.1));
    };
    match kind {
        0..3 => [first, second].into_iter().for_each(insert),
        3 => insert(first),
        4 => drop(rows.insert(first, Parcel { shelf: place.0, ..Parcel::new(first.0, first.1) })),
        5 => {
            if let Some(row) = rows.get_mut(&first) {
                (row.shelf, row.owner) = place;
            }
            if let Some(row) = rows.get_mut(&second) {
                row.code ^= 1 << 20;
            }
        }
        6 => drop(rows.get_mut(&first).map(|row| row.weight += 1)),
        _ => drop(rows.remove(&second)),
    }
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: operations_refused_at_any_memory_limit_have_no_effect_and_leak_nothing
);
fn operations_refused_at_any_memory_limit_have_no_effect_and_leak_nothing<P: Protocol>() {
    let watchdog = Watchdog::new();
    let script = script();
    let mut room = LimitedStore::<P>::new(usize::MAX).unwrap();
    room.run(&script);
    room.check();
    let enough = room.db.memory().reserved_bytes;
    let limits = LIMITS * stress() as usize;
    let (mut tried, mut no_table, mut refusals) = (0, 0, 0);
    let mut sample = Sample::one_in(80);
    for number in 0..=limits {
        // The least and the greatest are always tried.
        if number > 0 && number < limits && !sample.has_next() {
            continue;
        }
        tried += 1;
        let limit =
            enough / limits * number + if number == limits { enough % limits } else { number % 7 };
        watchdog.step(format!("a limit of {limit} bytes under {}", P::NAME));
        let mut room = match LimitedStore::<P>::new(limit) {
            Ok(room) => room,
            Err(error) => {
                assert_eq!(error, Error::MemoryLimit { limit_bytes: limit });
                no_table += 1;
                continue;
            }
        };
        room.run(&script);
        room.check();
        let first = room.refused;
        refusals += first;
        assert!(number < limits || first == 0, "{first} refusals though {enough} bytes are enough");
        room.check_limit(limit);
        room.clear();
        // The memory of all deleted rows can be used again. (Slightly less can be used if the free
        // memory lies in another slab than the wanted memory.)
        room.run(&script);
        room.check();
        let second = room.refused - first;
        assert!(
            second <= first + first / 4 + 20,
            "{first} refusals and then {second} with a limit of {limit}"
        );
        room.clear();
    }
    assert!(
        no_table > 0 && no_table < tried,
        "limits are to be tried on both sides of what the table needs"
    );
    assert!(refusals > tried, "only {refusals} refusals under {tried} limits");
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: deletes_above_the_memory_limit_leave_no_room_for_inserts
);
/// No epoch passes, so the memory of deleted rows is not freed, and deletes take memory beyond the
/// limit. Inserts must not use that memory.
fn deletes_above_the_memory_limit_leave_no_room_for_inserts<P: Protocol>() {
    let limit = 1 << 20;
    let db = Database::<P>::builder().manual_epochs(1).memory_limit(limit).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    let mut refused = 0;
    for number in 0..40_000 {
        // Records are used again. Each insert makes a version, and so does each delete; only the
        // first inserts of the seven rows make none. So it is a delete that finds the last span
        // used up.
        let id = number % 7;
        match session.run(|tx| items.insert(tx, Item::new(id, 1))) {
            Ok(()) => assert_eq!(session.run(|tx| items.delete(tx, &id)), Ok(())),
            Err(abort) => {
                assert_eq!(abort, Abort::MemoryLimit);
                refused += 1;
            }
        }
    }
    assert!(db.memory().reserved_bytes <= limit + BEYOND, "{} {:?}", P::NAME, db.memory());
    assert!(refused > 0 || P::Versions::WORDS == 0, "a megabyte was enough under {}", P::NAME);
    for _ in 0..1_000 {
        db.inner.engine.epochs.pass();
        session.run(|_| Ok(())).unwrap();
    }
    assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 1))), Ok(()));
}
