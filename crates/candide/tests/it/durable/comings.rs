//! Tables that come and go while threads use them.

use super::dropped::{choices, open_as};
use candide::any::Erased;
use candide::{Abort, Database, Error, Record, Table, Whole};
use candide_log_testing::SimDisk;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A row of a table whose rows all have the same tag, which no other table has.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
struct Tagged {
    #[key]
    id: u64,
    #[index]
    tag: u64,
    #[group(counts)]
    count: u64,
}

/// A row of a table that comes and goes beside it.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Loose {
    #[key]
    id: u64,
    #[unique]
    tag: u64,
}

const NAME: &str = "tagged";

/// Returns the tag of a table, which it gets with its first row.
fn tag(
    tx: &candide::Tx<'_, Erased>,
    table: &Table<Tagged, Erased>,
    new: u64,
) -> Result<u64, Abort> {
    if let Some(tag) = table.get(tx, 0, Tagged::TAG)? {
        return Ok(tag);
    }
    table.insert(tx, Tagged { id: 0, tag: new, count: 0 })?;
    Ok(new)
}

/// Asserts that all rows have one tag, and that the index has all of them.
fn check(tx: &candide::Tx<'_, Erased>, table: &Table<Tagged, Erased>) -> Result<(), Abort> {
    let mut tags = Vec::new();
    for row in table.scan(tx, .., Tagged::TAG) {
        tags.push(row?.1);
    }
    let Some(first) = tags.first().copied() else { return Ok(()) };
    let by_tag = table.index(Tagged::BY_TAG);
    let indexed = by_tag.rows(tx, first, Tagged::ID).count()?;
    let is_one = tags.iter().all(|tag| *tag == first);
    // The transaction may be doomed: what it has seen counts if it commits.
    if is_one && indexed == tags.len() { Ok(()) } else { Err(Abort::Guard) }
}

fn refused_or<T>(result: Result<T, Abort>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(Abort::TableDropped) => None,
        Err(other) => panic!("{other}"),
    }
}

/// Uses the table until it has been dropped, or everything is over.
fn use_table(db: &Database<Erased>, tags: &AtomicU64, is_over: &AtomicBool, turn: u64) {
    let table = db.table::<Tagged>(NAME).unwrap();
    let mut session = db.session().unwrap();
    for step in turn.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let new = tags.fetch_add(1, Ordering::Relaxed);
        let written = session.run(|tx| {
            let tag = tag(tx, &table, new)?;
            let id = step * 7 % 40 + 1;
            if step % 5 == 4 {
                table.delete_if_present(tx, id)?;
            } else {
                table.put(tx, Tagged { id, tag, count: step })?;
                table.update(tx, 0, Tagged::COUNT.add(1))?;
            }
            Ok(())
        });
        if refused_or(written).is_none() {
            return;
        }
        let now = table.get_now(&mut session, &0, Whole);
        if let Some(row) = refused_or(now) {
            assert!(row.is_some(), "the first row of a table is never deleted");
        }
        if refused_or(session.run(|tx| check(tx, &table))).is_none() {
            return;
        }
    }
}

#[test]
fn a_table_has_no_rows_of_those_before_it() {
    const DROPS: usize = 25;
    for chosen in choices() {
        let disk = SimDisk::new();
        let db = open_as(&chosen, &disk);
        if db.properties().one_session {
            continue;
        }
        let (tags, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for turn in 0..3 {
                let (db, tags, is_over) = (&db, &tags, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        use_table(db, tags, is_over, turn);
                    }
                });
            }
            for drops in 0..DROPS {
                match db.drop_table(NAME) {
                    Ok(()) | Err(Error::NoTable { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
                if drops % 4 == 1 {
                    let loose = db.table::<Loose>("loose").unwrap();
                    let rows = (0..9).map(|id| Loose { id, tag: id });
                    db.run(|tx| loose.insert_many(tx, rows.clone())).unwrap();
                    db.drop_table("loose").unwrap();
                }
                if drops % 6 == 3 {
                    db.checkpoint().unwrap();
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let _ = db.drop_table(NAME);
        let table = db.table::<Tagged>(NAME).unwrap();
        assert_eq!(db.run(|tx| table.len(tx)), Ok(0));
        db.run(|tx| table.insert(tx, Tagged { id: 5, tag: 5, count: 5 })).unwrap();
        drop((db, table));
        let db = open_as(&chosen, &disk);
        let table = db.table::<Tagged>(NAME).unwrap();
        assert_eq!(db.run(|tx| table.len(tx)), Ok(1), "{}", db.properties().name);
        assert_eq!(db.run(|tx| check(tx, &table)), Ok(()));
        assert!(db.table::<Loose>("loose").unwrap().len_estimate() == 0);
    }
}
