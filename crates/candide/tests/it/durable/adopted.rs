//! Tables from files that get a row type after another one has been refused.

use super::dropped::{choices, open_as};
use super::open;
use candide::any::Erased;
use candide::{Abort, Database, Error, IndexOptions, Occ, Record, Whole};
use candide_log_testing::SimDisk;

/// Rows of the same columns, with other indexes.
macro_rules! users {
    ($($name:ident: [$($whole:meta),*] $(#[$mail:meta])? mail $(#[$age:meta])? age;)*) => {
        $(
            #[derive(Record, Clone, Copy, Debug, PartialEq)]
            $(#[$whole])*
            struct $name {
                #[key]
                id: u64,
                $(#[$mail])?
                mail: u64,
                $(#[$age])?
                age: u64,
            }
        )*
    };
}

users! {
    Bare: [] mail age;
    ByAge: [] mail #[index] age;
    UniqueMail: [] #[unique] mail #[index] age;
    UniqueBoth: [] #[unique] mail #[unique] age;
    UniqueAge: [] mail #[unique] age;
    ByMailCalledAge: [index(name = by_age, columns(mail))] mail age;
}

/// Makes a database with the table, in which no two rows have the same mail, and some the same age.
fn made() -> SimDisk {
    let disk = SimDisk::new();
    let db: Database<Occ> = open(&disk).unwrap();
    let users = db.table::<Bare>("users").unwrap();
    let rows = (0..6).map(|id| Bare { id, mail: 10 + id, age: id / 2 });
    db.run(|tx| users.insert_many(tx, rows.clone())).unwrap();
    disk
}

fn is_refused<R: Record>(db: &Database<Erased>) {
    let refused = db.table::<R>("users").map(drop);
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
}

#[test]
fn indexes_are_found_after_another_type_was_refused() {
    for chosen in choices() {
        let disk = made();
        let db = open_as(&chosen, &disk);
        is_refused::<UniqueAge>(&db);
        is_refused::<UniqueBoth>(&db);
        let users = db.table::<ByAge>("users").unwrap();
        let by_age = users.index(ByAge::BY_AGE);
        assert_eq!(by_age.name(), "by_age");
        assert!(!by_age.is_unique());
        let of_age = db.run(|tx| by_age.rows(tx, 1, ByAge::ID).count());
        assert_eq!(of_age, Ok(2));
        let scanned = db.run(|tx| users.scan_by(tx, ByAge::BY_AGE, 1.., Whole).count());
        assert_eq!(scanned, Ok(4));
        // A declared index cannot be dropped, and one that was made can.
        assert!(matches!(users.drop_index("by_age"), Err(Error::NoIndex { .. })));
        users.create_index("by_mail", ByAge::MAIL, IndexOptions::hashed()).unwrap();
        users.drop_index("by_mail").unwrap();
        drop((db, users, by_age));
        let db = open_as(&chosen, &disk);
        let users = db.table::<UniqueMail>("users").unwrap();
        let by_mail = users.index(UniqueMail::BY_MAIL);
        assert_eq!(db.run(|tx| by_mail.get(tx, 13, UniqueMail::ID)), Ok(Some(3)));
    }
}

#[test]
fn a_unique_index_of_a_type_that_was_refused_refuses_no_rows() {
    for chosen in choices() {
        let db = open_as(&chosen, &made());
        is_refused::<UniqueBoth>(&db);
        let users = db.table::<Bare>("users").unwrap();
        let twin = Bare { id: 9, mail: 13, age: 9 };
        assert_eq!(db.run(|tx| users.insert(tx, twin)), Ok(()));
        assert_eq!(db.run(|tx| users.update(tx, 1, Bare::MAIL.set(12))), Ok(()));
    }
}

#[test]
fn an_index_of_a_name_has_the_columns_of_the_type_that_was_not_refused() {
    let db = open_as(&choices().next().unwrap(), &made());
    is_refused::<UniqueBoth>(&db);
    is_refused::<UniqueAge>(&db);
    let users = db.table::<ByMailCalledAge>("users").unwrap();
    let by_mail = users.index(ByMailCalledAge::BY_AGE);
    assert_eq!(db.run(|tx| by_mail.get(tx, 13, ByMailCalledAge::ID)), Ok(Some(3)));
    let refused = db.table::<ByAge>("users").map(drop);
    assert!(matches!(refused, Err(Error::TableType { .. })), "{refused:?}");
}

#[test]
fn the_same_type_is_accepted_when_its_reason_is_gone() {
    let disk = made();
    let chosen = choices().next().unwrap();
    let db = open_as(&chosen, &disk);
    (0..3).for_each(|_| is_refused::<UniqueBoth>(&db));
    let users = db.table::<Bare>("users").unwrap();
    db.run(|tx| (0..3).try_for_each(|half| users.delete(tx, half * 2))).unwrap();
    drop((db, users));
    let db = open_as(&chosen, &disk);
    let users = db.table::<UniqueBoth>("users").unwrap();
    let twin = UniqueBoth { id: 9, mail: 99, age: 1 };
    assert_eq!(db.run(|tx| users.insert(tx, twin)), Err(Abort::NotUnique));
    let by_age = users.index(UniqueBoth::BY_AGE);
    assert_eq!(db.run(|tx| by_age.get(tx, 1, UniqueBoth::ID)), Ok(Some(3)));
}
