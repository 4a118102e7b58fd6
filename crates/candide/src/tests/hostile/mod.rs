//! Tests of hostile use: user code that panics wherever the engine calls it, threads that end
//! without cleaning up, and memory that runs out.
//!
//! After each attack, another thread checks the whole database: all changes were committed, indexes
//! and tables agree, nothing is locked or pinned, and later transactions commit. If a step hangs, a
//! watchdog names the step and ends the process.

mod brittle;
mod false_words;
mod limits;
mod long_values;
mod long_words;
mod panics;
mod threads;

use super::entries::assert_entries_match_rows;
use super::indexed_rows::{Filed, Parcel};
use super::threads::spawn;
use super::waiting::eventually;
use crate::engine::Protocol;
use crate::sync::Duration;
use crate::{
    Abort, Column, Database, Hashed, Index, IndexOptions, Ordered, Record, RunOptions, Session,
    Table, Tx, Whole,
};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// The payload of the tests' own panics.
struct Deliberate;

/// Panics without a message, since there are thousands of these panics.
fn deliberate() -> ! {
    resume_unwind(Box::new(Deliberate))
}

/// Runs `body`, which must end in a deliberate panic. Any other panic continues.
fn demand_panic<T: std::fmt::Debug>(what: &str, body: impl FnOnce() -> T) {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => panic!("{what}: the panic did not come out, but {value:?}"),
        Err(panic) if panic.is::<Deliberate>() => {}
        Err(panic) => resume_unwind(panic),
    }
}

/// The time between two looks of the watchdog.
const LOOK: Duration = Duration::from_millis(200);

/// The number of looks in one step of a test after which the step counts as hanging. So many looks
/// take two minutes, and longer on a busy machine.
const LOOKS_MAX: u32 = 600;

/// A watchdog. The watchdog ends the process if a step takes too long, since a test that hangs
/// reports nothing.
pub(crate) struct Watchdog {
    /// The current step, and the number of looks that have found it; `None` when the test has
    /// ended.
    step: Arc<Mutex<Option<(String, u32)>>>,
}

impl Watchdog {
    pub(crate) fn new() -> Watchdog {
        let step = Arc::new(Mutex::new(Some(("the first step".to_string(), 0))));
        let watched = step.clone();
        std::thread::spawn(move || {
            loop {
                if let Some((what, looks)) =
                    &mut *watched.lock().unwrap_or_else(PoisonError::into_inner)
                {
                    *looks += 1;
                    if *looks > LOOKS_MAX {
                        end_process(&format!("nothing happens at {what}"));
                    }
                } else {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        });
        Watchdog { step }
    }

    pub(crate) fn step(&self, what: impl Into<String>) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = Some((what.into(), 0));
    }
}

/// Ends the process, since the test would hang.
pub(crate) fn end_process(why: &str) -> ! {
    // No macro is used here, since it would write to the test's captured output, which is kept
    // until the test ends.
    let _ = writeln!(std::io::stderr(), "hostile: {why}; giving up");
    std::process::abort();
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The rows of both tables, in the order of their keys.
type Rows = (Vec<Parcel>, Vec<Filed>);

/// An ordered table with indexes that the scene creates, and a hash table with the indexes that its
/// type names.
struct Scene<P: Protocol> {
    db: Database<P>,
    parcels: Table<Parcel, P>,
    filed: Table<Filed, P>,
    by_code: Index<Parcel, u32, Hashed, P>,
    by_place: Index<Parcel, (u8, i8), Ordered, P>,
}

/// The number of rows of each table.
const ROWS: u16 = 12;
/// The sum of the weights of all rows. The script moves weight and creates none.
const WEIGHT: i64 = 2 * 10 * ROWS as i64;

/// A correct updater, which adds one to the count.
#[derive(Debug, Clone, Copy)]
struct Bump;

impl crate::schema::Updater<Parcel> for Bump {
    type Target = Column<Parcel, i16>;

    fn target(&self) -> Self::Target {
        Parcel::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), crate::schema::Refused> {
        *count += 1;
        Ok(())
    }
}

/// An action between two operations of the script.
type Between<'a, P> = &'a dyn Fn(&Tx<'_, P>) -> Result<(), Abort>;

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().build().unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        let filed = db.table::<Filed>("filed").unwrap();
        let by_code =
            parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
        let by_place = parcels
            .create_index("by_place", (Parcel::SHELF, Parcel::OWNER), IndexOptions::ordered())
            .unwrap();
        db.run(|tx| {
            parcels.insert_many(tx, (0..ROWS).map(|number| Parcel::new(1, number)))?;
            filed.insert_many(tx, (0..ROWS).map(|number| Parcel::new(1, number).into()))
        })
        .unwrap();
        Scene { db, parcels, filed, by_code, by_place }
    }

    /// Runs all kinds of operations in one transaction, with scans that stay open throughout. Calls
    /// `between` before and after each operation.
    fn script(&self, tx: &Tx<'_, P>, between: Between<'_, P>) -> Result<(), Abort> {
        let Scene { parcels, filed, by_code, by_place, .. } = self;
        let weightless = |district, number| Parcel { weight: 0, ..Parcel::new(district, number) };
        between(tx)?;
        let note = parcels.read(tx, &(1, 11), Parcel::NOTE)?;
        between(tx)?;
        let mut forwards = parcels.scan(tx, .., Whole);
        let mut by_shelf = by_place.scan_rev(tx, .., Parcel::WEIGHT);
        let first = forwards.next().transpose()?.expect("there are rows");
        by_shelf.next().transpose()?.expect("there are entries");
        between(tx)?;
        parcels.insert(tx, weightless(1, 50))?;
        between(tx)?;
        filed.insert(tx, weightless(1, 50).into())?;
        between(tx)?;
        parcels.update(tx, &first.0, Parcel::WEIGHT.sub(3).at_least(-1_000))?;
        between(tx)?;
        filed.update(tx, &(1, 50), Filed::WEIGHT.add(3))?;
        between(tx)?;
        parcels.read(tx, &first.0, (Parcel::CODE, Parcel::WEIGHT))?;
        between(tx)?;
        parcels.modify(tx, &(1, 1), (Parcel::SHELF, Parcel::OWNER), |place| *place = (9, -9))?;
        between(tx)?;
        filed.modify(tx, &(1, 1), (Filed::CODE, Filed::COLOUR), |both| *both = (77, 7))?;
        between(tx)?;
        let moved = parcels.read_for_update(tx, &(1, 2), Parcel::WEIGHT)?;
        between(tx)?;
        parcels.delete(tx, &(1, 2))?;
        between(tx)?;
        filed.update(tx, &(1, 3), (Filed::WEIGHT.add(moved), Filed::COUNT.max(3)))?;
        between(tx)?;
        parcels.put(tx, Parcel { note: note + 1, ..parcels.read(tx, &(1, 3), Whole)? })?;
        between(tx)?;
        filed.get_for_update(tx, &(1, 4), (Filed::NOTE, Filed::OWNER))?;
        between(tx)?;
        parcels.insert_many(tx, (0..5).map(|number| weightless(3, number)))?;
        between(tx)?;
        filed.upsert(tx, weightless(1, 5).into(), Filed::NOTE.add(1))?;
        between(tx)?;
        let rows = filed.find_many(tx, &[(1, 6), (1, 7)])?;
        rows[0].update(Filed::WEIGHT.sub(1))?;
        rows[1].modify(Filed::WEIGHT, |weight| *weight += 1)?;
        between(tx)?;
        let next = forwards.next().transpose()?.expect("there are more rows");
        parcels.update_with(tx, &next.0, Bump)?;
        between(tx)?;
        assert_eq!(parcels.insert(tx, Parcel::new(1, 4)), Err(Abort::Duplicate));
        assert_eq!(
            tx.attempt(|tx| filed.insert(tx, Filed { number: 90, ..Parcel::new(1, 4).into() })),
            Err(Abort::NotUnique)
        );
        between(tx)?;
        let coded = by_code.find(tx, 1_005)?.expect("it is there");
        coded.update((Parcel::WEIGHT.sub(2), Parcel::NOTE.set(5)))?;
        by_code.find(tx, 1_006)?.expect("it is there").update(Parcel::WEIGHT.add(2))?;
        between(tx)?;
        parcels.insert(tx, weightless(4, 1))?;
        parcels.delete(tx, &(4, 1))?;
        assert!(!filed.delete_if_present(tx, &(9, 9))?);
        between(tx)?;
        while forwards.next().transpose()?.is_some() {}
        while by_shelf.next().transpose()?.is_some() {}
        between(tx)
    }

    /// Returns all rows, read outside of transactions. No other thread uses the database during the
    /// call.
    fn rows(&self) -> Rows {
        let (mut parcels, mut filed) = (Vec::new(), Vec::new());
        self.parcels.for_each_quiescent(|row| parcels.push(*row)).unwrap();
        self.filed.for_each_quiescent(|row| filed.push(*row)).unwrap();
        parcels.sort_by_key(Record::key);
        filed.sort_by_key(Record::key);
        (parcels, filed)
    }

    /// Asserts, from another thread, that the rows equal `wanted` and that the whole database is in
    /// order.
    fn assert_unharmed(&self, wanted: &Rows, after: &str) {
        std::thread::scope(|scope| {
            let looking = spawn(scope, || self.look(wanted));
            if let Err(panic) = looking.join() {
                eprintln!("after {after}:");
                resume_unwind(panic);
            }
        });
    }

    fn look(&self, wanted: &Rows) {
        assert_eq!(self.db.health().oldest_pin, None);
        assert_eq!(self.rows(), *wanted);
        let mut session = self.db.session().unwrap();
        assert_entries_match_rows(&mut session, &self.parcels);
        assert_entries_match_rows(&mut session, &self.filed);
        let parcels = wanted.0.iter().map(|row| row.weight);
        let weight: i64 = parcels.chain(wanted.1.iter().map(|row| row.weight)).sum();
        assert_eq!(weight, WEIGHT);
        let by_index =
            |tx: &Tx<'_, P>| self.by_place.scan(tx, .., Whole).map(|row| Ok(row?.1)).collect();
        let mut by_index: Vec<Parcel> = commits(&mut session, by_index);
        by_index.sort_by_key(Record::key);
        assert_eq!(by_index, wanted.0);
        self.write_everything(&mut session, wanted, 1);
        self.write_everything(&mut session, wanted, -1);
        assert_eq!(self.rows(), *wanted);
    }

    /// Writes every cell that the script writes or might have left locked. A second call with the
    /// opposite `sign` undoes the writes.
    fn write_everything(&self, session: &mut Session<P>, rows: &Rows, sign: i64) {
        let newcomers = || (0..5).map(|number| (3, number)).chain([(1, 50), (4, 1)]);
        commits(session, |tx| {
            for row in &rows.0 {
                let note = if sign > 0 { Parcel::NOTE.add(2) } else { Parcel::NOTE.sub(2) };
                let count = Parcel::COUNT.add(sign as i16);
                self.parcels.update(tx, &row.key(), (Parcel::WEIGHT.add(sign), count, note))?;
                self.parcels.modify(tx, &row.key(), Parcel::CODE, |code| *code ^= 1 << 30)?;
            }
            for row in &rows.1 {
                let note = if sign > 0 { Filed::NOTE.add(2) } else { Filed::NOTE.sub(2) };
                let (weight, count) = (Filed::WEIGHT.add(sign), Filed::COUNT.add(sign as i16));
                self.filed.update(tx, &row.key(), (weight, count, note))?;
                self.filed.modify(tx, &row.key(), Filed::CODE, |code| *code ^= 1 << 30)?;
            }
            let is_new = |key: &(u8, u16)| rows.0.iter().all(|row| row.key() != *key);
            for (district, number) in newcomers().filter(is_new) {
                if sign > 0 {
                    self.parcels.insert(tx, Parcel::new(district, number))?;
                    self.filed.put(tx, Parcel::new(district, 100 + number).into())?;
                } else {
                    self.parcels.delete(tx, &(district, number))?;
                    self.filed.delete(tx, &(district, 100 + number))?;
                }
            }
            Ok(())
        });
    }
}

/// Runs a transaction that has no reason to conflict, so it must commit in a few attempts. But the
/// advancer may be removing a record that the transaction uses, and a busy machine may stop the
/// advancer just then. In this case the transaction is tried again.
fn commits<T, P: Protocol>(
    session: &mut Session<P>,
    mut body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> T {
    let options = RunOptions::new().attempts_max(50);
    let mut committed = None;
    eventually("a later transaction commits", || {
        match session.with(options).run(&mut body) {
            Ok(value) => committed = Some(value),
            Err(Abort::AttemptsExhausted) => {}
            Err(abort) => panic!("a later transaction: {abort}"),
        }
        committed.is_some()
    });
    committed.expect("it has committed")
}
