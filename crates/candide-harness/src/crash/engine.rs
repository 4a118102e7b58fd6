//! The whole engine, which opens a share of the states of the laboratory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candide::any::Erased;
use candide::{Abort, Database, LogOptions, Record, Table, Whole};
use candide_log::{Rows, Store, StoreOptions, TableSchema};
use candide_log_testing::SimDisk;
use candide_log_testing::laboratory::{Contents, Plan, WholeEngine};

use crate::registry::Choices;

/// A row of the laboratory's tables: two groups, and an index.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Specimen {
    #[key]
    id: u64,
    #[group(cold)]
    first: u64,
    #[group(hot)]
    second: u64,
    #[group(hot)]
    #[index]
    third: u64,
    #[group(hot)]
    fourth: u64,
}

/// The engine under one protocol after the other.
pub(super) struct Engine {
    protocols: Choices,
    opened: AtomicUsize,
}

impl Engine {
    /// Returns the engine under these protocols in turn.
    pub(super) fn new(protocols: Choices) -> Engine {
        Engine { protocols, opened: AtomicUsize::new(0) }
    }

    /// Returns the plan for scripts whose tables the engine can open.
    pub(super) fn plan(&self) -> Result<Plan, Box<dyn std::error::Error>> {
        let disk = SimDisk::new();
        let builder = Database::<Erased>::builder().policy(self.protocols.0[0].erased());
        let db = builder.open_on(Arc::new(disk.clone()), options())?;
        let _: Table<Specimen, Erased> = db.table("specimens")?;
        drop(db);
        let rows = Rows::new();
        let (store, ..) = Store::open(Arc::new(disk), &StoreOptions::default(), &rows, &|_| {})?;
        let schema = store.tables().pop().ok_or("a table is in the files")?;
        Ok(Plan::new(schema))
    }
}

fn options() -> LogOptions {
    LogOptions::new().segment_bytes(64 << 10)
}

impl WholeEngine for Engine {
    fn rows(&self, disk: SimDisk, tables: &[TableSchema]) -> Result<Contents, String> {
        let turn = self.opened.fetch_add(1, Ordering::Relaxed);
        let protocol = self.protocols.0[turn % self.protocols.0.len()];
        let failed = |error: String| format!("under {}: {error}", protocol.name());
        let builder = Database::<Erased>::builder().policy(protocol.erased());
        let db = builder
            .open_on(Arc::new(disk), options())
            .map_err(|error| failed(error.to_string()))?;
        let mut all = Contents::new();
        for schema in tables {
            let table: Table<Specimen, Erased> =
                db.table(&schema.name).map_err(|error| failed(error.to_string()))?;
            let rows = rows_of(&db, &table).map_err(failed)?;
            check_index(&db, &table, &rows).map_err(failed)?;
            all.extend(rows.into_iter().map(|row| {
                let words = vec![row.first, row.second, row.third, row.fourth];
                ((schema.number, vec![row.id]), words)
            }));
        }
        Ok(all)
    }
}

/// Returns the rows of a table. Each is read in two ways: directly, and by a transaction.
fn rows_of(
    db: &Database<Erased>,
    table: &Table<Specimen, Erased>,
) -> Result<Vec<Specimen>, String> {
    let mut rows = Vec::new();
    table.for_each_quiescent(|row| rows.push(*row)).map_err(|error| error.to_string())?;
    for row in &rows {
        let read = db.run(|tx| table.get(tx, &row.id, Whole));
        let read = read.map_err(|abort: Abort| abort.to_string())?;
        if read != Some(*row) {
            return Err(format!("{row:?} is read as {read:?}"));
        }
    }
    Ok(rows)
}

/// Checks that each row is found by its index, and nothing else.
fn check_index(
    db: &Database<Erased>,
    table: &Table<Specimen, Erased>,
    rows: &[Specimen],
) -> Result<(), String> {
    let index = table.index(Specimen::BY_THIRD);
    for row in rows {
        let mut found = db
            .run(|tx| {
                let rows = index.rows(tx, &row.third, Whole);
                rows.map(|row| Ok(row?.1.id)).collect::<Result<Vec<u64>, Abort>>()
            })
            .map_err(|abort| abort.to_string())?;
        let alike = rows.iter().filter(|other| other.third == row.third);
        let mut alike: Vec<u64> = alike.map(|other| other.id).collect();
        alike.sort_unstable();
        found.sort_unstable();
        if found != alike {
            return Err(format!(
                "the index finds the rows {found:?}, but the table has the rows {alike:?} with that key"
            ));
        }
    }
    Ok(())
}
