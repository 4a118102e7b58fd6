//! The engine in the crash laboratory: it recovers what crashes leave of random scripts.

use super::options;
use candide::any::{Chosen, Erased};
use candide::protocols::Exclusion;
use candide::{Abort, Database, Mvcc, Mvto, Occ, Record, Serial, Table, TicToc, Whole};
use candide_log::{Rows, Store, StoreOptions, TableSchema};
use candide_log_testing::SimDisk;
use candide_log_testing::laboratory::{Contents, Counts, Plan, WholeEngine, examine};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A row of two groups and an index.
#[derive(Record, Clone, Copy, Debug)]
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
}

/// The engine under each protocol in turn, with timestamp splitting or not.
struct InTurn {
    choices: Vec<(Chosen, bool)>,
    opened: AtomicUsize,
}

impl InTurn {
    fn new() -> InTurn {
        let protocols = [
            Chosen::of::<Occ>(Default::default()),
            Chosen::of::<TicToc>(()),
            Chosen::of::<Mvcc>(()),
            Chosen::of::<Mvto>(()),
            Chosen::of::<Serial>(Exclusion::OneSession),
        ];
        let both = |chosen: Chosen| [(chosen.clone(), true), (chosen, false)];
        InTurn { choices: protocols.into_iter().flat_map(both).collect(), opened: 0.into() }
    }
}

impl WholeEngine for InTurn {
    fn rows(&self, disk: SimDisk, tables: &[TableSchema]) -> Result<Contents, String> {
        let turn = self.opened.fetch_add(1, Ordering::Relaxed);
        let (chosen, splitting) = self.choices[turn % self.choices.len()].clone();
        let builder = Database::<Erased>::builder().policy(chosen).timestamp_splitting(splitting);
        let db = builder.open_on(Arc::new(disk), options()).map_err(|error| error.to_string())?;
        let mut all = Contents::new();
        for schema in tables {
            let table = db.table::<Specimen>(&schema.name).map_err(|error| error.to_string())?;
            let mut rows = Vec::new();
            table.for_each_quiescent(|row| rows.push(*row)).map_err(|error| error.to_string())?;
            check_index(&db, &table, &rows)?;
            all.extend(rows.into_iter().map(|Specimen { id, first, second, third }| {
                ((schema.number, vec![id]), vec![first, second, third])
            }));
        }
        Ok(all)
    }
}

/// Checks that the index has the rows of the table, each under its column.
fn check_index(
    db: &Database<Erased>,
    table: &Table<Specimen, Erased>,
    rows: &[Specimen],
) -> Result<(), String> {
    let index = table.index(Specimen::BY_THIRD);
    for third in rows.iter().map(|row| row.third) {
        let found = db.run(|tx| {
            let found = index.rows(tx, &third, Whole).map(|row| Ok(row?.1.id));
            found.collect::<Result<BTreeSet<u64>, Abort>>()
        });
        let found = found.map_err(|abort| abort.to_string())?;
        let alike = rows.iter().filter(|row| row.third == third);
        let alike: BTreeSet<u64> = alike.map(|row| row.id).collect();
        if found != alike {
            return Err(format!("the index has {found:?} under {third}, and the table {alike:?}"));
        }
    }
    Ok(())
}

/// Returns the schema that the engine gives the files for tables of specimens.
fn schema() -> TableSchema {
    let disk = SimDisk::new();
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options()).unwrap();
    drop(db.table::<Specimen>("specimens").unwrap());
    drop(db);
    let opened =
        Store::open(Arc::new(disk), &StoreOptions::default(), &Rows::new(), &|_| {}).unwrap();
    opened.0.tables().remove(0)
}

#[test]
fn every_crash_leaves_a_state_that_the_laboratory_expects() {
    let states = if std::env::var_os("CANDIDE_FULL").is_none() { 3_000 } else { 100_000 };
    let plan = Plan { engine_share: 0.01, ..Plan::new(schema()) };
    let engine = InTurn::new();
    let mut counts = Counts::default();
    for seed in 0.. {
        counts += examine(seed, &plan, Some(&engine)).unwrap_or_else(|found| panic!("{found}"));
        if counts.states() >= states {
            break;
        }
    }
    assert!(counts.engines > states / 200, "{counts:?}");
}
