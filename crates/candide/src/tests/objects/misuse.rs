//! Tests of what objects refuse, and of what dropped objects leave.

use crate::any::{Chosen, Erased};
use crate::engine::Protocol;
use crate::objects::{TArray, TBox, TCounter, TMap, TOrderedMap, TSet};
use crate::schema::Ordered;
use crate::{Abort, Database, Error, Mvto, Occ};

protocol_tests!(all: a_name_finds_the_object_of_its_type_and_no_other);
fn a_name_finds_the_object_of_its_type_and_no_other<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let hits = TCounter::named(&db, "hits").unwrap();
    db.run(|tx| hits.add(tx, 3)).unwrap();
    let again = TCounter::named(&db, "hits").unwrap();
    assert_eq!(db.run(|tx| again.get(tx)), Ok(3), "{}", P::NAME);
    let other = TCounter::named(&db, "misses").unwrap();
    assert_eq!(db.run(|tx| other.get(tx)), Ok(0), "{}", P::NAME);
    let grid = TArray::named(&db, "grid", 3, |index| index as u8).unwrap();
    assert_eq!(db.run(|tx| grid.get(tx, 2)), Ok(2), "{}", P::NAME);
    let map = TMap::<u64, i64, P>::named(&db, "map").unwrap();
    db.run(|tx| map.put(tx, 1, 2)).unwrap();
    let map = TMap::<u64, i64, P>::named(&db, "map").unwrap();
    assert_eq!(db.run(|tx| map.get(tx, 1)), Ok(Some(2)), "{}", P::NAME);
    TSet::<u64, P, Ordered>::named(&db, "set").unwrap();

    let refusal = |made: Result<(), Error>| match made {
        Err(Error::ObjectType { object, wanted, existing }) => [object, wanted, existing],
        other => panic!("{}: {other:?}", P::NAME),
    };
    let cases = [
        (TBox::named(&db, "hits", 0i64).map(|_| ()), ["hits", "TBox<i64>", "TCounter"]),
        (
            TArray::named(&db, "grid", 4, |_| 0u8).map(|_| ()),
            ["grid", "TArray<u8> of length 4", "TArray<u8> of length 3"],
        ),
        (
            TArray::named(&db, "grid", 3, |_| 0i8).map(|_| ()),
            ["grid", "TArray<i8> of length 3", "TArray<u8> of length 3"],
        ),
        (
            TMap::<u64, u64, P>::named(&db, "map").map(|_| ()),
            ["map", "TMap<u64, u64>", "TMap<u64, i64>"],
        ),
        (
            TOrderedMap::<u64, i64, P>::named(&db, "map").map(|_| ()),
            ["map", "TOrderedMap<u64, i64>", "TMap<u64, i64>"],
        ),
        (TSet::<u64, P>::named(&db, "set").map(|_| ()), ["set", "TSet<u64>", "TSet<u64> in order"]),
    ];
    for (made, expected) in cases {
        assert_eq!(refusal(made), expected, "{}", P::NAME);
    }
}

#[test]
fn names_that_are_empty_or_too_long_are_refused() {
    let db = Database::new();
    let long = "n".repeat(65);
    assert_eq!(TCounter::named(&db, "").unwrap_err(), Error::EmptyTableName);
    let refused = TCounter::named(&db, &long).unwrap_err();
    assert_eq!(refused, Error::LongName { name: long.clone(), bytes_max: 64 });
    assert!(TCounter::named(&db, &long[1..]).is_ok());
    // The tables of objects are the engine's own.
    for name in ["candide.objects", "candide.object.cells.1"] {
        let refused = db.table::<crate::tests::rows::Item>(name).unwrap_err();
        assert_eq!(refused, Error::ReservedName { name: name.to_owned() });
    }
}

protocol_tests!(all: an_object_is_not_made_within_a_transaction_but_by_create);
fn an_object_is_not_made_within_a_transaction_but_by_create<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    TBox::new(&db, 0u64).unwrap();
    let made = db.run(|tx| {
        let refused = TBox::new(&db, 1u64).map(|_| ());
        assert_eq!(refused, Err(Error::Transaction(Abort::Nested)), "{}", P::NAME);
        let refused = TCounter::named(&db, "name").map(|_| ());
        assert_eq!(refused, Err(Error::Transaction(Abort::Nested)), "{}", P::NAME);
        let made = TBox::create(tx, &db, 7u64).map_err(|_| Abort::NotFound)?;
        made.modify(tx, |value| *value += 1)?;
        Ok(made)
    });
    assert_eq!(db.run(|tx| made.clone()?.get(tx)), Ok(8), "{}", P::NAME);
    // A box of a transaction that has no effect does not exist.
    let mut left = None;
    let undone = db.run(|tx| {
        left = TBox::create(tx, &db, 7u64).ok();
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!(undone, Err(Abort::Guard));
    let left = left.unwrap();
    assert_eq!(db.run(|tx| left.get(tx)), Err(Abort::NotFound), "{}", P::NAME);
    assert_eq!(db.run(|tx| left.set(tx, 1)), Err(Abort::NotFound), "{}", P::NAME);
}

#[test]
fn an_object_belongs_to_its_database() {
    let (db, other) = (Database::new(), Database::new());
    let (value, map) = (TBox::new(&db, 0u64).unwrap(), TMap::<u64, u64>::new(&db).unwrap());
    assert_eq!(other.run(|tx| value.get(tx)), Err(Abort::ForeignTable));
    assert_eq!(other.run(|tx| map.put(tx, 1, 1)), Err(Abort::ForeignTable));
    let created = other.run(|tx| Ok(TBox::create(tx, &db, 1u64).map(|_| ())));
    assert_eq!(created, Ok(Err(Error::Transaction(Abort::ForeignTable))));
    let only_reads = db.read_view(|tx| value.set(tx, 1));
    assert_eq!(only_reads, Err(Abort::ReadOnly));
}

protocol_tests!(all: dropped_objects_leave_their_memory_to_later_ones);
fn dropped_objects_leave_their_memory_to_later_ones<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    for round in 0..50 {
        let values: Vec<_> = (0..10).map(|value| TBox::new(&db, value).unwrap()).collect();
        let array = TArray::new(&db, 20, |_| 0u64).unwrap();
        let sum = db.run(|tx| {
            let array = array.get(tx, 3)?;
            values.iter().try_fold(array, |sum, value: &TBox<u64, P>| Ok(sum + value.get(tx)?))
        });
        assert_eq!(sum, Ok(45), "{}: {round}", P::NAME);
        drop((values, array));
        (0..4).for_each(|_| epochs.pass());
    }
    let linked = {
        let tables = db.inner.engine.common.tables.read().unwrap();
        let cells = tables.iter().find(|table| &*table.name == "candide.object.unnamed.1");
        cells.unwrap().linked.sum()
    };
    // There have been 1,500 cells. Each new object deletes some of those that were dropped.
    assert!(linked < 200, "{}: {linked} cells", P::NAME);
    // Maps without a name take turns in few tables.
    let tables = db.inner.engine.common.tables.read().unwrap().len();
    for round in 0..20 {
        let map = TMap::<u64, u64, P>::new(&db).unwrap();
        assert_eq!(db.run(|tx| map.iter(tx).count()), Ok(0), "{}: {round}", P::NAME);
        db.run(|tx| (0..600).try_for_each(|key| map.put(tx, key, key))).unwrap();
        drop(map);
        (0..4).for_each(|_| epochs.pass());
        db.run(|_| Ok(())).unwrap();
    }
    let more = db.inner.engine.common.tables.read().unwrap().len() - tables;
    assert!(more <= 2, "{}: {more} tables", P::NAME);
}

#[test]
fn an_erased_database_has_objects_and_ranges() {
    for chosen in [Chosen::of::<Occ>(Default::default()), Chosen::of::<Mvto>(())] {
        let is_occ = chosen.properties().name == "occ";
        let db = Database::<Erased>::builder().policy(chosen).build().unwrap();
        let [left, right] = [(); 2].map(|()| TCounter::new(&db).unwrap());
        let mut second = db.session().unwrap();
        let mut first = db.session().unwrap();
        let mut attempts = 0;
        let done = first.run(|tx| {
            attempts += 1;
            let is_so = left.at_least(tx, 0)?;
            if attempts == 1 {
                second.run(|tx| left.add(tx, 1))?;
            }
            right.add(tx, 1)?;
            Ok(is_so)
        });
        assert_eq!(done, Ok(true));
        assert!(!is_occ || attempts == 1, "{attempts}");
    }
}

#[test]
fn many_small_objects_take_little_memory() {
    const BOXES: usize = 20_000;
    let db = Database::new();
    let first = TBox::new(&db, 0u64).unwrap();
    let before = db.memory().reserved_bytes;
    let boxes: Vec<_> = (0..BOXES).map(|value| TBox::new(&db, value as u64).unwrap()).collect();
    let each = (db.memory().reserved_bytes - before) / BOXES;
    let map = TMap::<u64, u64>::new(&db).unwrap();
    let of_map = db.memory().reserved_bytes - before - each * BOXES;
    let of_handle = size_of_val(&boxes[0]);
    eprintln!("{each} bytes for a box, {of_map} for a map, {of_handle} for a handle");
    assert!(each < 150 && of_map < 300_000 && of_handle <= 64);
    drop((first, map));
}
