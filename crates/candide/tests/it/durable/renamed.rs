//! Tables that get other names.

use super::{insert, new_items, open};
use crate::common::{Item, builder};
use candide::{Abort, Database, Error, Mvto, Occ, Protocol, Record, TableOptions, Whole};
use candide_log_testing::{CrashOptions, Fault};

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct User {
    #[key]
    id: u64,
    #[unique]
    mail: u64,
}

fn no_table(table: &str, tables: &[&str]) -> Error {
    let tables = tables.iter().map(|name| name.to_string()).collect();
    Error::NoTable { table: table.to_owned(), tables }
}

protocol_tests!(all: a_renamed_table_keeps_rows_indexes_and_handles);

fn a_renamed_table_keeps_rows_indexes_and_handles<P: Protocol>() {
    let db: Database<P> = builder::<P>().build().unwrap();
    let users = db.table::<User>("users").unwrap();
    db.run(|tx| users.insert(tx, User { id: 1, mail: 10 })).unwrap();
    db.rename_table("users", "people").unwrap();
    db.run(|tx| users.insert(tx, User { id: 2, mail: 20 })).unwrap();
    let people = db.table::<User>("people").unwrap();
    assert_eq!((users.name(), people.name()), ("people", "people"));
    let twin = db.run(|tx| people.insert(tx, User { id: 3, mail: 20 }));
    assert_eq!(twin, Err(Abort::NotUnique));
    let by_mail = users.index(User::BY_MAIL);
    assert_eq!(db.run(|tx| by_mail.get(tx, 10, User::ID)), Ok(Some(1)));
    // The former name belongs to no table.
    let others = db.table::<Item>("users").unwrap();
    assert_eq!(others.len_estimate(), 0);
    assert_eq!(db.run(|tx| people.get(tx, 2, Whole)), Ok(Some(User { id: 2, mail: 20 })));
}

protocol_tests!(all: a_renamed_table_is_opened_by_its_new_name);

fn a_renamed_table_is_opened_by_its_new_name<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    insert(&db, &items, 1, 10).unwrap();
    db.rename_table("items", "goods").unwrap();
    insert(&db, &items, 2, 20).unwrap();
    drop((db, items));
    let db = open::<P>(&disk).unwrap();
    // The program has not named its row type yet.
    db.rename_table("goods", "wares").unwrap();
    assert_eq!(db.rename_table("goods", "x"), Err(no_table("goods", &["wares"])));
    let wares = db.table::<Item>("wares").unwrap();
    assert_eq!(wares.len_estimate(), 2);
    insert(&db, &wares, 3, 30).unwrap();
    drop((db, wares));
    let db = open::<P>(&disk).unwrap();
    assert_eq!(db.table::<Item>("wares").unwrap().len_estimate(), 3);
    assert_eq!(db.table::<Item>("items").unwrap().len_estimate(), 0);
}

#[test]
fn a_name_that_cannot_be_given_changes_nothing() {
    let (disk, db, items) = new_items::<Occ>();
    let scratch = TableOptions::default().volatile();
    db.table_with::<Item>("scratch", scratch).unwrap();
    let reserved = |name: &str| Err(Error::ReservedName { name: name.to_owned() });
    let names = ["items", "scratch"];
    assert_eq!(db.rename_table("item", "goods"), Err(no_table("item", &names)));
    let exists = |table: &str| Err(Error::TableExists { table: table.to_owned() });
    assert_eq!(db.rename_table("items", "scratch"), exists("scratch"));
    assert_eq!(db.rename_table("scratch", "items"), exists("items"));
    assert_eq!(db.rename_table("items", ""), Err(Error::EmptyTableName));
    assert_eq!(db.rename_table("items", "candide.x"), reserved("candide.x"));
    assert_eq!(db.rename_table("candide.sequences", "x"), reserved("candide.sequences"));
    let inside = db.run(|_| Ok(db.rename_table("items", "goods")));
    assert_eq!(inside, Ok(Err(Error::Transaction(Abort::Nested))));
    let long = db.rename_table("items", &"x".repeat(65_536)).unwrap_err().to_string();
    assert!(long.contains("it has a name of 65536 bytes; 65535 are the most"), "{long}");
    // The table has its name, and the same name is no change.
    assert_eq!(db.rename_table("items", "items"), Ok(()));
    assert_eq!(items.name(), "items");
    db.rename_table("scratch", &"y".repeat(65_536)).unwrap();
    insert(&db, &items, 1, 10).unwrap();
    drop((db, items));
    let db = open::<Occ>(&disk).unwrap();
    assert_eq!(db.rename_table("scratch", "x"), Err(no_table("scratch", &["items"])));
    assert_eq!(db.table::<Item>("items").unwrap().len_estimate(), 1);
}

#[test]
fn a_name_that_cannot_be_written_is_not_given() {
    let (disk, db, items) = new_items::<Occ>();
    // Nothing has been committed, so the logger writes nothing.
    disk.fail(1, Fault::Error);
    assert!(matches!(db.rename_table("items", "goods"), Err(Error::Files { .. })));
    assert_eq!(items.name(), "items");
    db.rename_table("items", "wares").unwrap();
    insert(&db, &items, 1, 10).unwrap();
    assert_eq!(items.name(), "wares");
    drop((db, items));
    let db = open::<Occ>(&disk).unwrap();
    assert_eq!(db.table::<Item>("wares").unwrap().len_estimate(), 1);
}

#[test]
fn names_change_while_transactions_run() {
    let (_disk, db, items) = new_items::<Mvto>();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..300).try_for_each(|id| insert(&db, &items, id, 1)));
        let mut number = 0;
        while !writer.is_finished() || number < 10 {
            let (from, to) = match number % 2 {
                0 => ("items", "goods"),
                _ => ("goods", "items"),
            };
            db.rename_table(from, to).unwrap();
            number += 1;
        }
        writer.join().unwrap().unwrap();
    });
    assert!(["items", "goods"].contains(&items.name()));
    assert_eq!(items.len_estimate(), 300);
}

protocol_tests!(all: every_crash_leaves_one_of_both_names_and_all_rows);

fn every_crash_leaves_one_of_both_names_and_all_rows<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    insert(&db, &items, 1, 10).unwrap();
    let begun = disk.position();
    db.rename_table("items", "goods").unwrap();
    let renamed = disk.position();
    insert(&db, &items, 2, 20).unwrap();
    let durable = disk.position();
    let options = CrashOptions {
        first: begun,
        last: durable,
        exhaustive: 4,
        pieces: 8,
        samples: 4,
        ..CrashOptions::default()
    };
    for state in disk.crash_states(&options) {
        let position = state.id().position;
        let db = open::<P>(&state.disk()).unwrap();
        let has = |name: &str| db.rename_table(name, name).is_ok();
        let (former, new) = (has("items"), has("goods"));
        assert!(former != new, "{}", state.describe());
        assert!(new || position < renamed, "{}", state.describe());
        let items = db.table::<Item>(if new { "goods" } else { "items" }).unwrap();
        let rows = items.len_estimate();
        assert!(rows == 1 || rows == 2 && position > renamed, "{}", state.describe());
        assert!(rows == 2 || position < durable, "{}", state.describe());
    }
}
