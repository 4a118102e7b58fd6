//! Tests of wrong use, and of the errors that report it.

use crate::common::{Item, Parcel, builder, database_with};
use candide::protocols::Exclusion;
use candide::schema::{RowReader, RowWriter};
use candide::{
    Abort, Bytes, Column, Database, Error, Group, Hashed, IndexOptions, Occ, Protocol, Record,
    RunOptions, Serial, TableOptions, Text,
};

/// A row type with the same columns as another row type.
#[derive(Debug, Clone, Copy)]
struct Impostor {
    id: u64,
}

impl Record for Impostor {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 1];
    const META: candide::schema::Meta =
        candide::schema::Meta::new("Impostor", &[Group::new("only", 1)]);

    fn key(&self) -> u64 {
        self.id
    }
    fn store(&self, _: &mut RowWriter<'_>) {}
    fn load(key: &u64, _: &RowReader<'_>) -> Impostor {
        Impostor { id: *key }
    }
}

/// A row type of another module, with the same name as another row type.
mod elsewhere {
    #[derive(Debug, Clone, Copy, candide::Record)]
    pub(super) struct Item {
        #[key]
        id: u64,
        count: i64,
    }
}

protocol_tests!(all: misuse_is_refused_with_a_precise_error_and_without_effect);
fn misuse_is_refused_with_a_precise_error_and_without_effect<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("rows");
    assert!(db.table::<Item>("rows").is_ok());
    assert_eq!(
        db.table::<Impostor>("rows").unwrap_err(),
        Error::TableType { table: "rows".into(), wanted: "Impostor", existing: "Item" }
    );
    let alike = db.table::<elsewhere::Item>("rows").unwrap_err();
    assert_eq!(
        alike.to_string(),
        "table \"rows\" holds rows of type it::common::rows::Item, not it::misuse::answers::elsewhere::Item; use another \
         name for it::misuse::answers::elsewhere::Item"
    );
    assert_eq!(db.table::<Item>("").unwrap_err(), Error::EmptyTableName);

    let other = builder::<P>().build().unwrap();
    let foreign = other.table::<Item>("rows").unwrap();
    assert_eq!(db.run(|tx| foreign.insert(tx, Item::new(1, 1))), Err(Abort::ForeignTable));
    assert_eq!(db.run(|tx| foreign.find_many(tx, &[1, 2]).map(drop)), Err(Abort::ForeignTable));

    // Inside a transaction, a program can use another database, but not the same database.
    let nested: Result<(), Abort> = db.run(|tx| {
        table.put(tx, Item::new(1, 1))?;
        other.run(|tx| foreign.put(tx, Item::new(1, 1)))?;
        db.run(|tx| table.put(tx, Item::new(2, 1)))
    });
    assert_eq!(nested, Err(Abort::Nested));
    assert_eq!(db.run(|tx| table.get(tx, 1, Item::COUNT)), Ok(None));
    assert_eq!(other.run(|tx| foreign.get(tx, 1, Item::COUNT)), Ok(Some(1)));

    let running = db.run(|_| Ok(table.for_each_quiescent(|_| {})));
    assert_eq!(running, Ok(Err(Error::NotQuiescent)));
}

#[test]
fn a_serial_database_has_one_session() {
    let db = builder::<Serial>().build().unwrap();
    let session = db.session().unwrap();
    assert_eq!(db.session().unwrap_err(), Error::SecondSession { protocol: "serial" });
    assert_eq!(db.run(|_| Ok(())), Err(Abort::SecondSession));
    drop(session);
    db.run(|_| Ok(())).unwrap();
    drop(db.session().unwrap());
    // Two sessions are allowed under another policy.
    let db = builder::<Serial>().policy(Exclusion::GlobalLock).build().unwrap();
    let _sessions = (db.session().unwrap(), db.session().unwrap());
}

#[test]
fn a_table_opened_with_another_row_type_is_refused() {
    #[derive(Clone, Copy)]
    struct WrongImage;
    impl Record for WrongImage {
        type Key = u64;
        type Index = Hashed;
        type Image = [u64; 3];
        const META: candide::schema::Meta =
            candide::schema::Meta::new("WrongImage", &[Group::new("only", 2)]);
        fn key(&self) -> u64 {
            0
        }
        fn store(&self, _: &mut RowWriter<'_>) {}
        fn load(_: &u64, _: &RowReader<'_>) -> WrongImage {
            WrongImage
        }
    }
    let error = Database::new().table::<WrongImage>("rows").unwrap_err();
    assert_eq!(
        error.to_string(),
        "row type WrongImage cannot be stored: its image has 3 words but its groups have 2; use [u64; 2]"
    );
}

#[test]
fn an_index_without_columns_is_refused() {
    #[derive(Record, Clone, Copy)]
    struct Nothing {
        #[key]
        id: u64,
        none: Bytes<0>,
    }
    #[derive(Record, Clone, Copy)]
    struct IndexedNothing {
        #[key]
        id: u64,
        #[unique(ordered)]
        none: Bytes<0>,
    }
    let is_refused = |error: Error| {
        assert!(
            matches!(&error, Error::RowType { problem, .. } if problem.contains("0 of them")),
            "{error}"
        );
    };
    let db = Database::new();
    is_refused(db.table::<IndexedNothing>("indexed").unwrap_err());
    assert_eq!(db.memory().reserved_bytes, 0);
    let table = db.table::<Nothing>("rows").unwrap();
    is_refused(
        table.create_index("none", Nothing::NONE, IndexOptions::ordered().unique()).unwrap_err(),
    );
    is_refused(table.create_index("none", Nothing::NONE, IndexOptions::hashed()).unwrap_err());
    let row = Nothing { id: 1, none: Bytes::new([]) };
    db.run(|tx| table.insert(tx, row))
        .unwrap_or_else(|e: Abort| panic!("nothing is left of it: {e}"));
}

/// A row whose key is text.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Named {
    name: Text<12>,
    value: u64,
}

impl Named {
    const VALUE: Column<Named, u64> = Column::new(0, 0, "value");
}

impl Record for Named {
    type Key = Text<12>;
    type Index = Hashed;
    type Image = [u64; 1];
    const META: candide::schema::Meta =
        candide::schema::Meta::new("Named", &[Group::new("only", 1)]);

    fn key(&self) -> Text<12> {
        self.name
    }
    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }
    fn load(key: &Text<12>, row: &RowReader<'_>) -> Named {
        Named { name: *key, value: Self::VALUE.take(row) }
    }
}

#[test]
fn text_keys_are_found_and_never_truncated() {
    let (db, table) = database_with::<Named, Occ>("named");
    let names = ["", "x", "x\0", "exactly12byt", "Candide"];
    db.run(|tx| {
        for (value, name) in (0..).zip(names) {
            table.insert(tx, Named { name: Text::new(name).unwrap(), value })?;
        }
        Ok(())
    })
    .unwrap();
    for (value, name) in (0..).zip(names) {
        assert_eq!(db.run(|tx| table.read(tx, &Text::new(name).unwrap(), Named::VALUE)), Ok(value));
    }
    let error = Text::<12>::new("exactly13byte").unwrap_err();
    assert_eq!(error.to_string(), "a text of 13 bytes does not fit into Text<12>");
}

#[test]
fn a_capacity_beyond_all_memory_is_an_error() {
    let db = builder::<Occ>().memory_limit(1 << 30).build().unwrap();
    for capacity in [usize::MAX, usize::MAX / 2, 1 << 40] {
        let options = TableOptions::default().capacity(capacity);
        assert_eq!(
            db.table_with::<Item>("rows", options).unwrap_err(),
            Error::MemoryLimit { limit_bytes: 1 << 30 }
        );
    }
    assert_eq!(db.memory().reserved_bytes, 0);
}

protocol_tests!(overlapping: an_index_of_another_database_is_refused_as_such);
/// A transaction uses an index of another database, whose time may be ahead.
fn an_index_of_another_database_is_refused_as_such<P: Protocol>() {
    let (db, other) = (builder::<P>().build().unwrap(), builder::<P>().build().unwrap());
    let parcels = other.table::<Parcel>("parcels").unwrap();
    for number in 1..10 {
        assert_eq!(other.run(|tx| parcels.insert(tx, Parcel::new(1, number))), Ok(()));
    }
    let by_code = parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    for options in [RunOptions::new(), RunOptions::new().read_only()] {
        let found =
            db.with(options.attempts_max(3)).run(|tx| by_code.get(tx, 1_001, Parcel::NUMBER));
        assert_eq!(found, Err(Abort::ForeignTable), "{}", P::NAME);
    }
}
