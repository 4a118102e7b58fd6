//! Tests of objects that end, and of what they leave to later ones.

use crate::api::find_table;
use crate::catalog::TableOptions;
use crate::engine::Protocol;
use crate::objects::{Boxed, TArray, TBox, TMap};
use crate::schema::RowType;
use crate::sync::{AtomicU64, Ordering};
use crate::tests::rows::Item;
use crate::tests::snapshots::Chained;
use crate::{Database, Error, Occ};
use std::collections::HashMap;
use std::sync::Arc;

/// A value that counts how many of its kind there are.
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn new(living: &Arc<AtomicU64>) -> Counted {
        living.fetch_add(1, Ordering::Relaxed);
        Counted(living.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) > 0, "no value is dropped twice");
    }
}

fn database<P: Protocol>() -> Database<P> {
    Database::<P>::builder().manual_epochs(1).build().unwrap()
}

/// Lets epochs pass, and runs transactions that find what is due.
fn pass<P: Protocol>(db: &Database<P>, rounds: u32) {
    for _ in 0..rounds {
        db.inner.engine.epochs.pass();
        db.run(|_| Ok(())).unwrap();
    }
}

/// Returns the number of rows in the table of this name, deleted ones included.
fn linked<P: Protocol>(db: &Database<P>, name: &str) -> u64 {
    let tables = db.inner.engine.tables.read().unwrap();
    tables.iter().find(|table| &*table.name == name).unwrap().linked.sum()
}

protocol_tests!(concurrent: the_values_of_an_object_end_with_the_object);
fn the_values_of_an_object_end_with_the_object<P: Protocol>() {
    let living = Arc::new(AtomicU64::new(0));
    let (db, count) = (database::<P>(), || living.load(Ordering::Relaxed));
    let one = TBox::new(&db, Boxed(Counted::new(&living))).unwrap();
    let array = TArray::new(&db, 100, |_| Boxed(Counted::new(&living))).unwrap();
    let map = TMap::<u64, Boxed<Counted>, P>::new(&db).unwrap();
    db.run(|tx| (0..600).try_for_each(|key| map.put(tx, key, Counted::new(&living)))).unwrap();
    pass(&db, 12);
    assert_eq!(count(), 701, "{}", P::NAME);
    drop(one);
    pass(&db, 12);
    assert_eq!(count(), 700, "{}: of a box", P::NAME);
    drop(array);
    pass(&db, 12);
    assert_eq!(count(), 600, "{}: of an array", P::NAME);
    drop(map);
    pass(&db, 12);
    assert_eq!(count(), 0, "{}: of a map", P::NAME);
}

protocol_tests!(overlapping: a_box_that_is_forgotten_before_its_commit_ends_after_it);
fn a_box_that_is_forgotten_before_its_commit_ends_after_it<P: Protocol>() {
    let living = Arc::new(AtomicU64::new(0));
    let db = database::<P>();
    db.run(|tx| {
        TBox::create(tx, &db, Boxed(Counted::new(&living))).map(drop).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| pass(&db, 4)).join().unwrap();
        });
        Ok(())
    })
    .unwrap();
    pass(&db, 12);
    assert_eq!(living.load(Ordering::Relaxed), 0, "{}", P::NAME);
}

protocol_tests!(concurrent: dropped_cells_are_deleted_as_fast_as_cells_are_made);
fn dropped_cells_are_deleted_as_fast_as_cells_are_made<P: Protocol>() {
    let db = database::<P>();
    for _ in 0..30 {
        drop(TArray::new(&db, 300, |_| 0u64).unwrap());
        (0..300).for_each(|_| drop(db.run(|tx| Ok(TBox::create(tx, &db, 0u64))).unwrap()));
        db.inner.engine.epochs.pass();
    }
    let linked = linked(&db, "candide.object.unnamed.1");
    assert!(linked <= 6_000, "{}: {linked} of 18,000 cells", P::NAME);
}

protocol_tests!(versioned: a_snapshot_sees_no_entry_of_a_map_that_ended_in_a_later_one);
fn a_snapshot_sees_no_entry_of_a_map_that_ended_in_a_later_one<P: Chained>() {
    let db = database::<P>();
    let first = TMap::<u64, u64, P>::new(&db).unwrap();
    db.run(|tx| first.put(tx, 1, 42)).unwrap();
    let snapshot = db.snapshot();
    drop(first);
    pass(&db, 12);
    let second = TMap::<u64, u64, P>::new(&db).unwrap();
    assert_eq!(snapshot.run(|tx| second.get(tx, 1)), Ok(None), "{}", P::NAME);
    // A snapshot that was opened when the table was empty keeps it from no map.
    drop((snapshot, second));
    let _later = db.snapshot();
    pass(&db, 12);
    let tables = || db.inner.engine.tables.read().unwrap().len();
    let before = tables();
    let _third = TMap::<u64, u64, P>::new(&db).unwrap();
    assert_eq!(tables(), before, "{}", P::NAME);
}

/// A node of a list, as a program would write it.
struct Node<P: Protocol> {
    next: Option<TBox<Boxed<Node<P>>, P>>,
    _counted: Counted,
}

protocol_tests!(all: objects_within_values_do_not_keep_the_database_open);
fn objects_within_values_do_not_keep_the_database_open<P: Protocol>() {
    for closes in [false, true] {
        let living = Arc::new(AtomicU64::new(0));
        let db = database::<P>();
        let mut head: Option<TBox<Boxed<Node<P>>, P>> = None;
        for _ in 0..5 {
            let node = |next| Node { next, _counted: Counted::new(&living) };
            let next = head.take();
            let made = db.try_run(|tx| TBox::create(tx, &db, Boxed(node(next.clone()))));
            head = Some(made.unwrap());
        }
        let length = db.run(|tx| {
            let (mut length, mut at) = (0, head.as_ref());
            while let Some(node) = at {
                (length, at) = (length + 1, node.get(tx)?.next.as_ref());
            }
            Ok(length)
        });
        assert_eq!(length, Ok(5), "{}", P::NAME);
        match closes {
            true => db.close().unwrap(),
            false => drop(db),
        }
        assert_eq!(living.load(Ordering::Relaxed), 0, "{}", P::NAME);
        drop(head);
    }
}

#[test]
fn a_handle_in_a_value_that_is_deleted_does_not_prevent_closing() {
    let db = database::<Occ>();
    let holder = TBox::new(&db, Boxed(Some(db.clone()))).unwrap();
    db.run(|tx| holder.set(tx, None)).unwrap();
    (0..4).for_each(|_| db.inner.engine.epochs.pass());
    assert!(db.close().is_ok());
}

#[test]
fn the_length_of_an_array_belongs_to_its_type_however_long_its_name_is() {
    type Long = HashMap<String, Vec<String>>;
    let db = Database::new();
    let value = || Boxed(Long::new());
    let short = TArray::named(&db, "a", 4, |_| value()).unwrap();
    let one = TBox::named(&db, "b", value()).unwrap();
    let refused = TArray::named(&db, "a", 100, |_| value()).map(|_| ());
    assert!(matches!(refused, Err(Error::ObjectType { .. })), "{refused:?}");
    let same = TArray::named(&db, "a", 4, |_| value()).unwrap();
    assert_eq!((short.len(), same.len()), (4, 4));
    assert_eq!(db.run(|tx| Ok(one.get(tx)?.len())), Ok(0));
}

#[test]
fn the_table_of_a_map_without_its_row_refuses_maps_of_other_rows_only() {
    let db = Database::new();
    // As after a crash between the two, of a program whose map had other rows.
    let row = RowType::of::<Item>();
    find_table(&db.inner, "candide.object.named.m", TableOptions::default(), &row).unwrap();
    let refused = TMap::<(u32, u32), i64>::named(&db, "m").map(|_| ());
    assert!(matches!(refused, Err(Error::ObjectType { .. })), "{refused:?}");
    let other = TBox::named(&db, "m", 1u8).unwrap();
    assert_eq!(db.run(|tx| other.get(tx)), Ok(1), "the name is free");
}
