//! Keys of several components in files, and operations that end in a panic.

use super::open;
use candide::schema::Field;
use candide::{
    Abort, Database, Equals, Error, Key, Mvcc, Prefix, Protocol, Record, Table, TableOptions, Text,
    Whole,
};
use candide_log_testing::SimDisk;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
#[index(columns(mark, count))]
struct Part {
    #[key]
    store: i8,
    #[key]
    name: Text<11>,
    #[key]
    variant: Option<Text<4>>,
    mark: Text<9>,
    count: u32,
}

type PartKey = (i8, Text<11>, Option<Text<4>>);

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).expect("the text fits")
}

/// Returns all rows by key. No transaction is running.
fn rows<P: Protocol>(parts: &Table<Part, P>) -> BTreeMap<PartKey, Part> {
    let mut rows = BTreeMap::new();
    parts.for_each_quiescent(|row| assert!(rows.insert(row.key(), *row).is_none())).unwrap();
    rows
}

protocol_tests!(all: keys_of_several_components_are_recovered);

/// The files hold keys as they are, whether the table packs components into common words or not.
fn keys_of_several_components_are_recovered<P: Protocol>() {
    let disk = SimDisk::new();
    let mut model = BTreeMap::new();
    for round in 0..4u32 {
        let db = open::<P>(&disk).unwrap();
        let options = TableOptions::default().contention_aware_keys(round % 2 == 0);
        let parts = db.table_with::<Part>("parts", options).unwrap();
        assert_eq!(rows(&parts), model, "{round}");
        db.run(|tx| {
            model.retain(|&key, part| {
                let is_kept = !(part.count + round).is_multiple_of(5);
                if is_kept {
                    part.mark = text("kept");
                    parts.modify(tx, key, Part::MARK, |mark| *mark = text("kept")).unwrap();
                } else {
                    parts.delete(tx, key).unwrap();
                }
                is_kept
            });
            for number in 0..24 {
                let store = [-128, -1, 0, 127][number as usize % 4];
                let name = text(["", "a", "a\0", "hammerdrill"][(number + round) as usize / 3 % 4]);
                let variant = [None, Some(text("")), Some(text("long"))][number as usize % 3];
                let part = Part { store, name, variant, mark: text("m\0"), count: number };
                parts.put(tx, part)?;
                model.insert(part.key(), part);
            }
            Ok(())
        })
        .unwrap();
        let by_mark = parts.index(Part::BY_MARK_COUNT);
        db.run(|tx| {
            let all = parts.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()?;
            assert!(all.iter().map(|(key, part)| (key, part)).eq(&model));
            let kept = model.values().filter(|part| part.mark == "kept").count();
            assert_eq!(by_mark.count(tx, Prefix((Equals("kept"),)))?, kept);
            Ok(())
        })
        .unwrap();
        if round == 1 {
            db.checkpoint().unwrap();
        }
    }
    let db = open::<P>(&disk).unwrap();
    assert_eq!(rows(&db.table::<Part>("parts").unwrap()), model);
}

/// Row types of the same name, whose key has a text of another length.
macro_rules! people {
    ($version:ident: $length:literal) => {
        mod $version {
            #[derive(candide::Key, Clone, Copy, Debug, PartialEq)]
            pub(super) struct Name {
                pub(super) branch: u16,
                pub(super) last: candide::Text<$length>,
            }

            #[derive(candide::Record, Clone, Copy, Debug, PartialEq)]
            pub(super) struct Person {
                #[key]
                pub(super) name: Name,
                pub(super) cents: i64,
            }
        }
    };
}

people!(longer: 24);
people!(shorter: 20);

#[test]
fn a_text_in_a_key_keeps_its_length() {
    assert_eq!(<longer::Name as Key>::WIDTHS, <shorter::Name as Key>::WIDTHS);
    let disk = SimDisk::new();
    let db: Database<Mvcc> = open(&disk).unwrap();
    let people = db.table::<longer::Person>("people").unwrap();
    let name = longer::Name { branch: 1, last: text("a name of 22 bytes now") };
    db.run(|tx| people.insert(tx, longer::Person { name, cents: 7 })).unwrap();
    drop((db, people));
    let db: Database<Mvcc> = open(&disk).unwrap();
    let refused = db.table::<shorter::Person>("people").unwrap_err();
    assert!(matches!(&refused, Error::Schema { table, .. } if table == "people"), "{refused}");
    let people = db.table::<longer::Person>("people").unwrap();
    assert_eq!(db.run(|tx| people.read(tx, name, longer::Person::CENTS)), Ok(7));
}

/// A number that panics when it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unwritable(u64);

impl Field for Unwritable {
    const BITS: u32 = 64;
    type Buffer = [u64; 1];

    fn word(&self, _index: usize) -> u64 {
        assert_ne!(self.0, 13, "this number panics");
        self.0
    }

    fn from_buffer(buffer: &[u64; 1]) -> Unwritable {
        Unwritable(buffer[0])
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Brittle {
    #[key]
    id: u64,
    count: u64,
    #[group(value)]
    value: Unwritable,
}

protocol_tests!(all: a_partial_operation_is_not_recovered);

fn a_partial_operation_is_not_recovered<P: Protocol>() {
    let disk = SimDisk::new();
    let db = open::<P>(&disk).unwrap();
    let table = db.table::<Brittle>("brittle").unwrap();
    let row = |id| Brittle { id, count: 0, value: Unwritable(0) };
    db.run(|tx| table.insert_many(tx, (1..=4).map(row))).unwrap();
    let count = Brittle::COUNT.add(1);
    let panics = |tx: &candide::Tx<'_, P>| {
        let update = (count, Brittle::VALUE.set(Unwritable(13)));
        assert!(catch_unwind(AssertUnwindSafe(|| table.update(tx, 1, update))).is_err());
    };
    // Parts come before the panic, around it, and after it; some are undone.
    let all = |in_part: bool| {
        db.run(|tx| {
            tx.attempt(|tx| table.update(tx, 2, count))?;
            let part = |tx: &candide::Tx<'_, P>| {
                panics(tx);
                Ok::<_, Abort>(())
            };
            let ended = if in_part { tx.attempt(part) } else { part(tx) };
            assert_eq!(ended, if in_part { Err(Abort::Panicked) } else { Ok(()) });
            tx.attempt(|tx| table.update(tx, 3, count))?;
            let undone = tx.attempt(|tx| {
                table.update(tx, 4, count)?;
                Err::<(), _>(Abort::Duplicate)
            });
            assert_eq!(undone, Err(Abort::Duplicate));
            Ok(())
        })
    };
    assert_eq!((all(true), all(false)), (Ok(()), Err(Abort::Panicked)));
    let counts = |db: &Database<P>, table: &Table<Brittle, P>| {
        let read = |id: u64| db.run(|tx| table.read(tx, id, Brittle::COUNT)).unwrap();
        [1, 2, 3, 4].map(read)
    };
    assert_eq!(counts(&db, &table), [0, 1, 1, 0]);
    drop((db, table));
    let db = open::<P>(&disk).unwrap();
    assert_eq!(counts(&db, &db.table::<Brittle>("brittle").unwrap()), [0, 1, 1, 0]);
}
