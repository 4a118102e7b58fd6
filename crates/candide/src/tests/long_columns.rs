//! Tests of rows with strings and bytes of any length.

#[cfg(not(sanitized))]
mod files;
mod guards;
mod histories;
#[cfg(feature = "json")]
mod json;
#[cfg(not(sanitized))]
mod migrations;
mod model;
mod outside;
mod views;

use super::blocks::settled;
use super::interleaving::acting;
use super::waiting::eventually;
use crate::engine::{Protocol, Versioned};
use crate::sync::Point;
use crate::{Abort, Database, Occ, Session, Table, Tx, Whole};
use candide_derive::Record;

#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct User {
    #[key]
    id: u64,
    name: String,
    visits: u32,
    #[group(rest)]
    photo: Vec<u8>,
    #[group(rest)]
    nickname: Option<String>,
    #[group(rest)]
    hash: Option<Vec<u8>>,
    #[group(rest)]
    age: u8,
}

/// The lengths of the values: none, those that have room in a word, and those with blocks of the
/// slabs and of their own.
const LENGTHS: [usize; 7] = [0, 1, 7, 8, 100, 5_000, 70_000];

fn text(length: usize, seed: usize) -> String {
    (0..length).map(|index| char::from(b'a' + ((index + seed) % 26) as u8)).collect()
}

impl User {
    fn new(id: usize) -> User {
        let length = |place: usize| LENGTHS[(id + place) % LENGTHS.len()];
        let of = |place| text(length(place), id + place);
        User {
            id: id as u64,
            name: of(0),
            visits: id as u32,
            photo: of(1).into_bytes(),
            nickname: (!id.is_multiple_of(3)).then(|| of(2)),
            hash: (!id.is_multiple_of(4)).then(|| of(3).into_bytes()),
            age: 40,
        }
    }

    /// Returns the number of values that have no room in a word.
    fn blocks(&self) -> usize {
        let User { name, photo, nickname, hash, .. } = self;
        let nickname = nickname.as_ref().map(String::len);
        let lengths = [Some(name.len()), Some(photo.len()), nickname, hash.as_ref().map(Vec::len)];
        lengths.into_iter().flatten().filter(|&length| length > 7).count()
    }
}

/// Waits until the blocks in use are those that these rows name, which are all rows.
fn settle<P: Protocol>(db: &Database<P>, rows: &[User]) {
    settled(db, || rows.iter().map(User::blocks).sum());
}

fn scene<P: Protocol>() -> (Database<P>, Table<User, P>) {
    let db = Database::<P>::builder().build().unwrap();
    let users = db.table::<User>("users").unwrap();
    (db, users)
}

fn all<P: Protocol>(session: &mut Session<P>, users: &Table<User, P>) -> Vec<User> {
    session.run(|tx| users.rows(tx, ..).collect_rows()).unwrap()
}

protocol_tests!(all: values_of_all_lengths_are_read_as_they_were_written);
fn values_of_all_lengths_are_read_as_they_were_written<P: Protocol>() {
    let (db, users) = scene::<P>();
    let mut session = db.session().unwrap();
    let rows: Vec<User> = (0..60).map(User::new).collect();
    session.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    assert_eq!(all(&mut session, &users), rows);
    for row in &rows {
        let id = row.id;
        let columns = (User::NAME, User::PHOTO, (User::NICKNAME, User::HASH, User::VISITS));
        let read = session.run(|tx| users.read(tx, id, columns)).unwrap();
        let rest = (row.nickname.clone(), row.hash.clone(), row.visits);
        assert_eq!(read, (row.name.clone(), row.photo.clone(), rest));
        assert_eq!(users.get_now(&mut session, id, User::NAME), Ok(Some(row.name.clone())));
        assert_eq!(users.get_now(&mut session, id, Whole), Ok(Some(row.clone())));
        assert_eq!(session.run(|tx| users.find(tx, id)?.read(Whole)).as_ref(), Ok(row));
        let for_update = session.run(|tx| users.read_for_update(tx, id, User::NICKNAME));
        assert_eq!(for_update.as_ref(), Ok(&row.nickname));
    }
    let mut quiescent = Vec::new();
    drop(session);
    users.for_each_quiescent(|row| quiescent.push(row.clone())).unwrap();
    quiescent.sort_by_key(|row| row.id);
    assert_eq!(quiescent, rows);
    db.run(|tx| users.clear(tx)).unwrap();
    settle(&db, &[]);
}

protocol_tests!(concurrent: the_value_of_a_single_read_is_made_before_the_pin_ends);
/// As soon as the reader is not pinned any more, its block is freed and used for another text.
fn the_value_of_a_single_read_is_made_before_the_pin_ends<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let users = db.table::<User>("users").unwrap();
    let row = User::new(4);
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    let mut session = db.session().unwrap();
    let replace = || {
        let (mut other, users) = (db.session().unwrap(), users.clone());
        let epochs = db.inner.engine.epochs.clone();
        move || {
            for seed in 0..8 {
                let name = text(100, seed);
                let change = |tx: &Tx<'_, P>| {
                    let rest = (User::PHOTO.set([7; 90]), User::HASH.set(Some(&[8; 90])));
                    users.update(tx, 4, (User::NAME.set(&name), rest.0, rest.1))
                };
                other.run(change).unwrap();
                epochs.pass();
            }
        }
    };
    let name = || users.get_now(&mut session, 4, User::NAME);
    assert_eq!(acting(Point::Unpinned, replace(), name), Ok(Some(row.name)), "{}", P::NAME);
    let photo = || users.get_now(&mut session, 4, (User::PHOTO, User::HASH));
    let wanted = Ok(Some((vec![7; 90], Some(vec![8; 90]))));
    assert_eq!(acting(Point::Unpinned, replace(), photo), wanted, "{}", P::NAME);
}

protocol_tests!(all: values_are_changed_by_updates_closures_and_whole_rows);
fn values_are_changed_by_updates_closures_and_whole_rows<P: Protocol>() {
    let (db, users) = scene::<P>();
    let mut session = db.session().unwrap();
    let mut row = User::new(5);
    session.run(|tx| users.insert(tx, row.clone())).unwrap();
    for (step, length) in LENGTHS.into_iter().cycle().take(40).enumerate() {
        let new = text(length, step);
        let read = session.run(|tx| {
            match step % 7 {
                0 => users.update(tx, 5, User::NAME.set(&new))?,
                1 => users.update(tx, 5, (User::PHOTO.set(&new), User::VISITS.add(1)))?,
                2 => users.update(tx, 5, (User::NICKNAME.set(Some(&new)), User::HASH.set(None)))?,
                3 => users.modify(tx, 5, User::NAME, |name| name.push_str(&new))?,
                4 => users.modify(tx, 5, Whole, |row| row.hash = Some(new.clone().into_bytes()))?,
                5 => users.put(tx, User { name: new.clone(), ..row.clone() })?,
                _ => {
                    users.delete(tx, 5)?;
                    assert_eq!(users.get(tx, 5, User::NAME)?, None);
                    users.insert(tx, User { photo: new.clone().into_bytes(), ..row.clone() })?;
                }
            }
            users.read(tx, 5, Whole)
        });
        match step % 7 {
            0 | 5 => row.name = new,
            1 => {
                row.photo = new.into_bytes();
                row.visits += 1;
            }
            2 => (row.nickname, row.hash) = (Some(new), None),
            3 => row.name.push_str(&new),
            4 => row.hash = Some(new.into_bytes()),
            _ => row.photo = new.into_bytes(),
        }
        assert_eq!(read.as_ref(), Ok(&row), "as the transaction sees it, in step {step}");
        assert_eq!(session.run(|tx| users.read(tx, 5, Whole)).as_ref(), Ok(&row), "step {step}");
    }
    drop(session);
    settle(&db, &[row]);
}

protocol_tests!(all: a_change_of_other_columns_keeps_the_values);
fn a_change_of_other_columns_keeps_the_values<P: Protocol>() {
    let (db, users) = scene::<P>();
    let row = User::new(11);
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    for _ in 0..10 {
        db.run(|tx| users.update(tx, 11, (User::VISITS.add(1), User::AGE.set(41)))).unwrap();
    }
    db.run(|tx| users.modify(tx, 11, User::VISITS, |visits| *visits -= 10)).unwrap();
    let row = User { age: 41, ..row };
    assert_eq!(db.run(|tx| users.read(tx, 11, Whole)).as_ref(), Ok(&row));
    settle(&db, &[row]);
}

protocol_tests!(all: an_attempt_that_fails_leaves_the_values_and_no_block);
fn an_attempt_that_fails_leaves_the_values_and_no_block<P: Protocol>() {
    let (db, users) = scene::<P>();
    let row = User::new(4);
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    let failed: Result<(), Abort> = db.run(|tx| {
        users.update(tx, 4, User::NAME.set(text(300, 1)))?;
        users.put(tx, User { photo: vec![1; 100_000], ..row.clone() })?;
        users.insert(tx, User::new(5))?;
        users.delete(tx, 4)?;
        Err(Abort::Guard)
    });
    assert_eq!(failed, Err(Abort::Guard));
    db.run(|tx| {
        let undone: Result<(), Abort> = tx.attempt(|tx| {
            users.update(tx, 4, User::NAME.set(text(300, 1)))?;
            Err(Abort::Guard)
        });
        assert_eq!(undone, Err(Abort::Guard));
        assert_eq!(users.read(tx, 4, User::NAME)?, row.name);
        assert_eq!(users.insert(tx, row.clone()), Err(Abort::Duplicate));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.run(|tx| users.read(tx, 4, Whole)).as_ref(), Ok(&row));
    settle(&db, &[row]);
}

protocol_tests!(versioned: snapshots_read_the_values_of_their_time);
fn snapshots_read_the_values_of_their_time<P: Versioned>() {
    let (db, users) = scene::<P>();
    let row = User::new(6);
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    let snapshot = db.snapshot();
    for step in 0..200 {
        db.run(|tx| users.put(tx, User { id: 6, ..User::new(step) })).unwrap();
    }
    db.run(|tx| users.delete(tx, 6)).unwrap();
    assert_eq!(snapshot.run(|tx| users.read(tx, 6, Whole)), Ok(row));
    drop(snapshot);
    settle(&db, &[]);
}

#[test]
fn a_value_is_refused_if_it_is_too_long() {
    let (db, users) = scene::<Occ>();
    let mut session = db.session().unwrap();
    let most = 16 << 20;
    let at_most = session.run(|tx| users.insert(tx, User { name: text(most, 0), ..User::new(1) }));
    assert_eq!(at_most, Ok(()));
    let long = text(most + 1, 0);
    let expected = "text_too_long on users.name, key id: 7: a value of 16777217 bytes; \
                    at most 16777216 are possible";
    let row = User { name: long.clone(), ..User::new(7) };
    for put in [false, true] {
        let insert = session.run(|tx| match put {
            false => users.insert(tx, row.clone()),
            true => users.put(tx, row.clone()),
        });
        assert_eq!(insert, Err(Abort::TextTooLong));
        assert_eq!(session.last_outcome().unwrap().to_string(), expected);
    }
    session.run(|tx| users.insert(tx, User::new(7))).unwrap();
    session
        .run(|tx| {
            // A refused update changes nothing, and the transaction can go on.
            let both = (User::VISITS.add(1), User::NAME.set(&long));
            assert_eq!(users.update(tx, 7, both), Err(Abort::TextTooLong));
            let modified = users.modify(tx, 7, User::NAME, |name| name.clone_from(&long));
            assert_eq!(modified, Err(Abort::TextTooLong));
            assert_eq!(users.read(tx, 7, Whole)?, User::new(7));
            Ok(())
        })
        .unwrap();
    assert_eq!(
        session.run(|tx| users.update(tx, 7, User::NAME.set(&long))),
        Err(Abort::TextTooLong)
    );
    assert_eq!(session.last_outcome().unwrap().to_string(), expected);
    assert_eq!(session.run(|tx| users.read(tx, 7, Whole)), Ok(User::new(7)));
}

#[test]
fn the_memory_limit_counts_values() {
    let db = Database::<Occ>::builder().memory_limit(8 << 20).build().unwrap();
    let users = db.table::<User>("users").unwrap();
    db.run(|tx| users.insert(tx, User::new(1))).unwrap();
    let before = db.memory().value_bytes;
    let large = vec![7; 5 << 20];
    db.run(|tx| users.insert(tx, User { photo: large.clone(), ..User::new(3) })).unwrap();
    let memory = db.memory();
    assert!(memory.value_bytes >= before + large.len(), "{memory:?} after {before}");
    assert!(memory.value_bytes < memory.reserved_bytes, "{memory:?}");
    db.run(|tx| users.delete(tx, 3)).unwrap();
    eventually("the end of the large value", || {
        db.run(|_| Ok(())).unwrap();
        db.memory().value_bytes < before + large.len()
    });
    let refused = db.run(|tx| {
        let both = (User::AGE.set(1), User::PHOTO.set(&large));
        users.update(tx, 1, both)?;
        users.insert(tx, User { photo: large.clone(), ..User::new(2) })
    });
    assert_eq!(refused, Err(Abort::MemoryLimit));
    assert_eq!(db.run(|tx| users.read(tx, 1, Whole)), Ok(User::new(1)));
}
