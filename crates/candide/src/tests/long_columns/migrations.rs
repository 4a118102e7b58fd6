//! Migrations of tables with strings and bytes of any length.

use super::files::{choices, options};
use super::{eventually, text};
use crate::any::{Chosen, Erased};
use crate::{Bytes, Database, Error, Migration, Mvcc, Occ, Table, Text};
use candide_derive::Record;
use candide_log_testing::SimDisk;
use std::sync::Arc;

/// Rows with texts of a bounded length.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Short {
    #[key]
    id: u64,
    name: Text<12>,
    stars: u8,
    #[group(rest)]
    note: Option<Text<20>>,
    #[group(rest)]
    code: Bytes<8>,
}

/// Rows with texts of any length, in other places, and with new columns.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Long {
    #[key]
    id: u64,
    #[default]
    empty: String,
    #[default = "as new"]
    word: String,
    #[default]
    nothing: Option<String>,
    code: Vec<u8>,
    stars: u8,
    name: String,
    #[group(rest)]
    note: Option<String>,
}

fn short(id: u64) -> Short {
    let of = |length: u64| text(length as usize, id as usize);
    Short {
        id,
        name: Text::new(&of(id % 13)).unwrap(),
        stars: id as u8,
        note: (!id.is_multiple_of(3)).then(|| Text::new(&of(id % 21)).unwrap()),
        code: Bytes::new(id.to_be_bytes()),
    }
}

fn long(id: u64) -> Long {
    let Short { id, name, stars, note, code } = short(id);
    Long {
        id,
        empty: String::new(),
        word: "as new".into(),
        nothing: None,
        code: code.as_bytes().to_vec(),
        stars,
        name: name.as_str().into(),
        note: note.map(|note| note.as_str().into()),
    }
}

fn open(disk: &SimDisk, chosen: &(Chosen, bool), migration: Migration) -> Database<Erased> {
    let builder = Database::<Erased>::builder().policy(chosen.0.clone()).migration(migration);
    let builder = builder.timestamp_splitting(chosen.1);
    builder.open_on(Arc::new(disk.clone()), options()).unwrap()
}

fn rows_of<R: crate::schema::Record<Key = u64, Index = crate::schema::Ordered>>(
    db: &Database<Erased>,
    table: &Table<R, Erased>,
) -> Vec<R> {
    db.run(|tx| table.rows(tx, ..).collect_rows()).unwrap()
}

fn blocks(db: &Database<Erased>) -> usize {
    db.inner.engine.long_memory().map_or(0, |memory| memory.in_use() as usize)
}

/// Waits until the blocks in use are those of these rows.
fn settle(db: &Database<Erased>, rows: &[Long]) {
    eventually("the end of the blocks that no row names", || {
        db.run(|_| Ok(())).unwrap();
        blocks(db) == blocks_of(rows)
    });
}

/// Returns the number of values that have no room in a word.
fn blocks_of(rows: &[Long]) -> usize {
    let of = |row: &Long| {
        let texts = [&row.empty, &row.word, &row.name].map(String::len);
        let optional = [&row.nothing, &row.note].map(|text| text.as_ref().map_or(0, String::len));
        let lengths = texts.into_iter().chain(optional).chain([row.code.len()]);
        lengths.filter(|length| *length > 7).count()
    };
    rows.iter().map(of).sum()
}

const ROWS: u64 = 600;

#[test]
fn texts_become_strings_and_come_back_where_they_fit() {
    for chosen in choices() {
        let disk = SimDisk::new();
        let db = open(&disk, &chosen, Migration::Refuse);
        let table = db.table::<Short>("rows").unwrap();
        db.run(|tx| table.insert_many(tx, (0..ROWS).map(short))).unwrap();
        drop((db, table));
        let db = open(&disk, &chosen, Migration::Refuse);
        let refused = db.table::<Long>("rows").unwrap_err().to_string();
        let plan = "a migration would add `empty: String`, add `word: String`, add `nothing: \
                    Option<String>`, change `code` from `Bytes<8>` to `Vec<u8>`, move `code` to \
                    group `row`, change `name` from `Text<12>` to `String`, change `note` from \
                    `Option<Text<20>>` to `Option<String>`, rewrite 600 rows";
        assert!(refused.contains(plan), "{refused}");
        drop(db);
        let mut rows: Vec<Long> = (0..ROWS).map(long).collect();
        for number in 0..2 {
            let wanted = if number == 0 { Migration::Apply } else { Migration::Refuse };
            let db = open(&disk, &chosen, wanted);
            let table = db.table::<Long>("rows").unwrap();
            assert_eq!(rows_of(&db, &table), rows);
            settle(&db, &rows);
            rows[5].note = Some(text(21, 9));
            db.run(|tx| table.put(tx, rows[5].clone())).unwrap();
        }
        // A text that is too long for the type that the table had.
        let db = open(&disk, &chosen, Migration::Apply);
        let refused = db.table::<Short>("rows").unwrap_err();
        let expected = Error::Migration {
            table: "rows".into(),
            key: "id: 5".into(),
            problem: "column `note`: a text of 21 bytes does not fit Text<20>".into(),
        };
        assert_eq!(refused, expected);
        settle(&db, &rows);
        // Nothing has changed, now and in the files.
        let table = db.table::<Long>("rows").unwrap();
        assert_eq!(rows_of(&db, &table), rows);
        drop((db, table));
        let db = open(&disk, &chosen, Migration::Apply);
        let table = db.table::<Long>("rows").unwrap();
        assert_eq!(rows_of(&db, &table), rows);
        db.run(|tx| table.put(tx, long(5))).unwrap();
        drop((db, table));
        for wanted in [Migration::Apply, Migration::Refuse] {
            let db = open(&disk, &chosen, wanted);
            let table = db.table::<Short>("rows").unwrap();
            assert_eq!(rows_of(&db, &table), (0..ROWS).map(short).collect::<Vec<_>>());
        }
        let db = open(&disk, &chosen, Migration::Refuse);
        settle(&db, &[]);
    }
}

/// Rows of another kind, which a function makes.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Joined {
    #[key]
    id: u64,
    all: String,
    bytes: Option<Vec<u8>>,
}

fn joined(row: Long) -> Joined {
    let Long { id, name, note, code, .. } = row;
    let all = format!("{name} and {note:?}");
    Joined { id, all, bytes: (!id.is_multiple_of(2)).then(|| code.repeat(3)) }
}

fn with_function(
    disk: &SimDisk,
    function: impl Fn(Long) -> Joined + Send + Sync + 'static,
) -> (Database<Mvcc>, Result<Table<Joined, Mvcc>, Error>) {
    let builder = Database::<Mvcc>::builder().migration(Migration::Apply);
    let builder = builder.migrate("rows", function);
    let db = builder.open_on(Arc::new(disk.clone()), options()).unwrap();
    let table = db.table::<Joined>("rows");
    (db, table)
}

#[test]
fn a_function_makes_strings_of_strings() {
    let disk = SimDisk::new();
    let db = Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options()).unwrap();
    let table = db.table::<Long>("rows").unwrap();
    let rows: Vec<Long> = (0..ROWS).map(long).collect();
    db.run(|tx| table.insert_many(tx, rows.iter().cloned())).unwrap();
    drop((db, table));
    let in_use = |db: &Database<Mvcc>| db.inner.engine.long_memory().unwrap().in_use() as usize;
    // A value that no row can have; then a panic. Neither changes anything.
    let (db, refused) = with_function(&disk, |row| match row.id {
        300 => Joined { all: "a".repeat((16 << 20) + 1), ..joined(row) },
        _ => joined(row),
    });
    let problem = "column `all`: a value of 16777217 bytes; 16777216 are the most";
    let expected = |problem: &str| Error::Migration {
        table: "rows".into(),
        key: "id: 300".into(),
        problem: problem.into(),
    };
    assert_eq!(refused.unwrap_err(), expected(problem));
    drop(db);
    let (db, refused) = with_function(&disk, |row| match row.id {
        300 => panic!("row 300"),
        _ => joined(row),
    });
    let problem = "the function of the migration has panicked: row 300";
    assert_eq!(refused.unwrap_err(), expected(problem));
    // The rows that had been copied are freed, those of the old table are there.
    eventually("the end of the copies", || {
        db.run(|_| Ok(())).unwrap();
        in_use(&db) == blocks_of(&rows)
    });
    drop(db);
    let (db, table) = with_function(&disk, joined);
    let expected: Vec<Joined> = rows.into_iter().map(joined).collect();
    let table = table.unwrap();
    assert_eq!(db.run(|tx| table.rows(tx, ..).collect_rows()).unwrap(), expected);
    drop((db, table));
    let db = Database::<Mvcc>::builder().open_on(Arc::new(disk.clone()), options()).unwrap();
    let table = db.table::<Joined>("rows").unwrap();
    assert_eq!(db.run(|tx| table.rows(tx, ..).collect_rows()).unwrap(), expected);
    let long = |row: &Joined| 1 + usize::from(row.bytes.is_some());
    assert_eq!(in_use(&db), expected.iter().map(long).sum::<usize>());
}
