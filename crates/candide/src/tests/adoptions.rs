//! Tables from files that get a row type after another one has been refused.

use crate::engine::Stage;
use crate::protocols::Occ;
use crate::{Abort, Database, Error, LogOptions};
use candide_derive::Record;
use candide_log_testing::SimDisk;
use std::sync::Arc;

/// A row without indexes.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate)]
struct Bare {
    #[key]
    id: u64,
    mail: u64,
    age: u64,
}

/// The same row, with two indexes.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate)]
struct Both {
    #[key]
    id: u64,
    #[unique]
    mail: u64,
    #[unique]
    age: u64,
}

/// The same row, with the first of the two.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate)]
struct Mailed {
    #[key]
    id: u64,
    #[unique]
    mail: u64,
    age: u64,
}

fn open(disk: &SimDisk) -> Database<Occ> {
    Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new()).unwrap()
}

/// An index stays in this stage if a transaction does not end in time for its removal. (Here the
/// stages are set by hand.)
#[test]
fn an_index_that_was_begun_is_made_before_the_table_is_ready() {
    let disk = SimDisk::new();
    {
        let db = open(&disk);
        let bare = db.table::<Bare>("users").unwrap();
        let rows = (0..3).map(|id| Bare { id, mail: id, age: 7 });
        db.run(|tx| bare.insert_many(tx, rows.clone())).unwrap();
    }
    let db = open(&disk);
    let refused = db.table::<Both>("users").map(drop);
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
    let core = db.inner.catalog.find(&db.inner.engine.common, "users").unwrap();
    let by_mail = core.indexes.get(0).unwrap();
    core.indexes.set(by_mail, Stage::Kept, true);
    core.indexes.set(by_mail, Stage::Enforced, false);
    core.indexes.set(by_mail, Stage::Readable, false);
    let users = db.table::<Mailed>("users").unwrap();
    let twin = Mailed { id: 9, mail: 1, age: 9 };
    assert_eq!(db.run(|tx| users.insert(tx, twin)), Err(Abort::NotUnique));
    let by_mail = users.index(Mailed::BY_MAIL);
    assert_eq!(db.run(|tx| by_mail.get(tx, 2, Mailed::ID)), Ok(Some(2)));
}
