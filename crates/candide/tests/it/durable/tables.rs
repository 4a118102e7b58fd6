//! Tables and indexes of a database that is opened again.

use super::{insert, new_items, open, open_items};
use crate::common::Item;
use candide::{Abort, Database, Error, LogOptions, Occ, Protocol, Record, TableOptions, Whole};
use candide_log_testing::SimDisk;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Car {
    #[key]
    id: u64,
    #[index]
    owner: u32,
    #[unique]
    plate: u64,
}

protocol_tests!(all: declared_indexes_are_made_again);

fn declared_indexes_are_made_again<P: Protocol>() {
    let disk = SimDisk::new();
    let db = open::<P>(&disk).unwrap();
    let cars = db.table::<Car>("cars").unwrap();
    for id in 0..30 {
        let car = Car { id, owner: (id % 7) as u32, plate: 100 + id };
        db.run(|tx| cars.insert(tx, car)).unwrap();
    }
    db.run(|tx| cars.delete(tx, 5)).unwrap();
    drop((db, cars));
    let db = open::<P>(&disk).unwrap();
    let cars = db.table::<Car>("cars").unwrap();
    let twin = Car { id: 50, owner: 1, plate: 101 };
    assert_eq!(db.run(|tx| cars.insert(tx, twin)), Err(Abort::NotUnique));
    db.run(|tx| cars.insert(tx, Car { plate: 105, ..twin })).unwrap();
    let by_owner = cars.index(Car::BY_OWNER);
    let of_one =
        db.run(|tx| by_owner.rows(tx, 1, Whole).collect::<Result<Vec<_>, Abort>>()).unwrap();
    assert_eq!(of_one.len(), 6);
}

protocol_tests!(all: exchanged_keys_and_undone_parts_are_recovered_as_committed);

fn exchanged_keys_and_undone_parts_are_recovered_as_committed<P: Protocol>() {
    let disk = SimDisk::new();
    let db = open::<P>(&disk).unwrap();
    let cars = db.table::<Car>("cars").unwrap();
    let car = |id, plate| Car { id, owner: 1, plate };
    db.run(|tx| cars.insert_many(tx, (1..=3).map(|id| car(id, id)))).unwrap();
    db.run(|tx| {
        cars.modify(tx, 1, Car::PLATE, |plate| *plate = 2)?;
        cars.modify(tx, 2, Car::PLATE, |plate| *plate = 1)?;
        let refused = tx.attempt(|tx| {
            cars.delete(tx, 1)?;
            cars.insert(tx, car(4, 3))
        });
        assert_eq!(refused, Err(Abort::NotUnique));
        cars.insert(tx, car(4, 4))
    })
    .unwrap();
    drop((db, cars));
    let db = open::<P>(&disk).unwrap();
    let cars = db.table::<Car>("cars").unwrap();
    let by_plate = cars.index(Car::BY_PLATE);
    let plates = [1, 2, 3, 4].map(|plate| db.run(|tx| by_plate.read(tx, &plate, Car::ID)));
    assert_eq!(plates, [Ok(2), Ok(1), Ok(3), Ok(4)]);
    let rows = db.run(|tx| cars.iter(tx, ()).collect::<Result<Vec<_>, Abort>>());
    assert_eq!(rows.map(|rows| rows.len()), Ok(4));
}

#[test]
fn a_table_with_another_row_type_is_refused_and_stays() {
    #[derive(Record, Clone, Copy)]
    struct Other {
        #[key]
        id: u64,
        name: [u8; 16],
    }
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 1).unwrap();
    drop((db, items));
    let db = open::<Occ>(&disk).unwrap();
    let refused = db.table::<Other>("items").unwrap_err();
    assert!(matches!(&refused, Error::Schema { table, .. } if table == "items"), "{refused}");
    let message = "the rows of table \"items\" are not of type Other: column `name: [u8; 16]` is \
                   new, and has no default; column `count: i64` of the files is not in the program; ";
    assert!(refused.to_string().starts_with(message), "{refused}");
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(db.run(|tx| items.get(tx, 1, Whole)), Ok(Some(Item::new(1, 1))));
}

#[test]
fn a_volatile_table_is_empty_again() {
    let disk = SimDisk::new();
    let open_both = || {
        let db = open::<Occ>(&disk).unwrap();
        let durable = db.table::<Item>("durable").unwrap();
        let volatile =
            db.table_with::<Item>("volatile", TableOptions::default().volatile()).unwrap();
        (db, durable, volatile)
    };
    let (db, durable, volatile) = open_both();
    db.run(|tx| {
        durable.insert(tx, Item::new(1, 1))?;
        volatile.insert(tx, Item::new(1, 1))
    })
    .unwrap();
    drop((db, durable, volatile));
    let (db, durable, volatile) = open_both();
    let (kept, gone) =
        db.run(|tx| Ok((durable.get(tx, 1, Whole)?, volatile.get(tx, 1, Whole)?))).unwrap();
    assert_eq!((kept, gone), (Some(Item::new(1, 1)), None));
}

/// A commit that is acknowledged as durable must not be in a table whose rows are lost.
#[test]
fn opening_a_volatile_table_as_durable_is_refused() {
    let disk = SimDisk::new();
    let volatile = TableOptions::default().volatile();
    let (db, items) = open_items::<Occ>(&disk);
    let sessions = db.table_with::<Item>("sessions", volatile).unwrap();
    let refused = |error: Error, name: &str, wanted: &str, existing: &str| {
        let (table, wanted, existing) = (name.to_owned(), wanted.to_owned(), existing.to_owned());
        assert_eq!(error, Error::TableOption { table, wanted, existing }, "{error}");
    };
    for options in [TableOptions::default(), TableOptions::default().capacity(10)] {
        let error = db.table_with::<Item>("sessions", options).unwrap_err();
        refused(error, "sessions", "rows that are not volatile", "volatile rows");
    }
    let error = db.table::<Item>("sessions").unwrap_err();
    assert!(error.to_string().contains("volatile rows, and the call asks for rows that are not"));
    let error = db.table_with::<Item>("items", volatile).unwrap_err();
    refused(error, "items", "volatile rows", "rows that are not volatile");
    // Nothing has changed, and each table is found as it was made.
    db.table_with::<Item>("sessions", volatile).unwrap();
    db.table::<Item>("items").unwrap();
    insert(&db, &sessions, 1, 1).unwrap();
    insert(&db, &items, 1, 1).unwrap();
    drop((db, items, sessions));
    // A table from the files is durable, also before its row type is named. A volatile one is gone,
    // and its name is free.
    let db = open::<Occ>(&disk).unwrap();
    let error = db.table_with::<Item>("items", volatile).unwrap_err();
    refused(error, "items", "volatile rows", "rows that are not volatile");
    let items = db.table::<Item>("items").unwrap();
    let sessions = db.table::<Item>("sessions").unwrap();
    assert_eq!(db.run(|tx| items.get(tx, 1, Whole)), Ok(Some(Item::new(1, 1))));
    assert_eq!(db.run(|tx| sessions.get(tx, 1, Whole)), Ok(None));
}

#[test]
fn options_of_a_table_from_the_files_are_compared_if_the_files_have_them() {
    let disk = SimDisk::new();
    let made = TableOptions::default().ordered().timestamp_splitting(false).capacity(10);
    let db = open::<Occ>(&disk).unwrap();
    drop(db.table_with::<Item>("items", made).unwrap());
    drop(db);
    let db = open::<Occ>(&disk).unwrap();
    let ask = |options| db.table_with::<Item>("items", options);
    let error = ask(TableOptions::default().timestamp_splitting(true)).unwrap_err();
    assert!(matches!(error, Error::TableOption { .. }), "{error}");
    for options in [made, made.capacity(20), TableOptions::default()] {
        ask(options).unwrap();
    }
}

#[test]
fn tables_that_a_program_does_not_open_stay_in_the_files() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 1).unwrap();
    drop((db, items));
    for _ in 0..2 {
        let db: Database<Occ> = open(&disk).unwrap();
        let others = db.table::<Item>("others").unwrap();
        db.run(|tx| others.put(tx, Item::new(9, 9))).unwrap();
        db.checkpoint().unwrap();
    }
    let (db, items) = open_items::<Occ>(&disk);
    assert_eq!(db.run(|tx| items.get(tx, 1, Whole)), Ok(Some(Item::new(1, 1))));
}

#[test]
fn options_above_their_largest_values_are_an_error() {
    let options = LogOptions::new();
    let many = NonZeroUsize::MAX;
    for (options, option, given, most) in [
        (options.clone().segment_bytes(u64::MAX), "LogOptions::segment_bytes", u64::MAX, 64 << 30),
        (
            options.clone().recovery_threads(many),
            "LogOptions::recovery_threads",
            many.get() as u64,
            1_024,
        ),
    ] {
        let disk = SimDisk::new();
        let opened = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options);
        let error = Error::from(opened.map(drop).unwrap_err());
        assert_eq!(error, Error::OptionTooLarge { option, given, most });
    }
    // What is only compared with other numbers has no largest value.
    let disk = SimDisk::new();
    let options = options.checkpoint_bytes(u64::MAX).flush_every(Duration::MAX);
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options).unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 1))).unwrap();
}
