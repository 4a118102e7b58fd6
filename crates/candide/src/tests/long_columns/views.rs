//! Strings and bytes that closures read without a copy, and those that a change leaves as they are.

use super::{LENGTHS, User, scene, settle, text};
use crate::engine::{Protocol, Versioned};
use crate::{Abort, Database, IndexOptions, Level, LogOptions, Table, Whole};
use candide_log_testing::SimDisk;
use std::sync::Arc;

protocol_tests!(all: closures_are_lent_values_of_all_lengths);
fn closures_are_lent_values_of_all_lengths<P: Protocol>() {
    let (db, users) = scene::<P>();
    let by_visits = users.create_index("by_visits", User::VISITS, IndexOptions::ordered()).unwrap();
    let mut session = db.session().unwrap();
    let rows: Vec<User> = (0..60).map(User::new).collect();
    session.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    let columns = (User::NAME, (User::PHOTO, User::NICKNAME), User::HASH, User::ID, User::VISITS);
    session
        .run(|tx| {
            for row in &rows {
                let same =
                    users.read_with(tx, row.id, columns, |(name, rest, hash, id, visits)| {
                        name == row.name
                            && rest == (&*row.photo, row.nickname.as_deref())
                            && hash == row.hash.as_deref()
                            && (id, visits) == (row.id, row.visits)
                    });
                assert_eq!(same, Ok(true));
                let found = users.find(tx, row.id)?;
                assert_eq!(found.read_with(User::NAME, str::len)?, row.name.len());
                let whole = found.get_with(Whole, |whole| whole == *row);
                assert_eq!(whole, Ok(Some(true)));
            }
            assert_eq!(users.get_with(tx, 99, User::NAME, |_| panic!("no row")), Ok(None));
            let missing = users.find(tx, 99)?.read_with(User::NAME, |_| panic!("no row"));
            assert_eq!(missing, Err(Abort::NotFound));
            assert_eq!(users.read_with(tx, 99, (), |()| ()), Err(Abort::NotFound));
            let mut seen = Vec::new();
            users.iter(tx, (User::NAME, User::HASH)).for_each_with(|id, (name, hash)| {
                seen.push((id, name.to_owned(), hash.map(<[u8]>::to_vec)));
            })?;
            let expected = rows.iter().map(|row| (row.id, row.name.clone(), row.hash.clone()));
            assert!(seen.into_iter().eq(expected));
            let mut count = 0;
            let stopped = users.scan(tx, 5.., User::PHOTO).try_for_each_with(|id, photo| {
                count += 1;
                assert_eq!(photo, rows[id as usize].photo);
                if count < 10 { Ok(()) } else { Err(Abort::OutOfBounds) }
            });
            assert_eq!((stopped, count), (Err(Abort::OutOfBounds), 10));
            let mut seen = Vec::new();
            let found = by_visits.scan(tx, 3..=40, (User::NAME, User::HASH));
            found.for_each_with(|id, (name, hash)| {
                seen.push((id, name.to_owned(), hash.map(<[u8]>::to_vec)));
            })?;
            let expected = rows[3..=40].iter();
            let expected = expected.map(|row| (row.id, row.name.clone(), row.hash.clone()));
            assert!(seen.into_iter().eq(expected));
            let found = by_visits.rows(tx, 7, User::NAME);
            let stopped = found.try_for_each_with(|id, name| {
                assert_eq!((id, name), (7, &*rows[7].name));
                Err(Abort::OutOfBounds)
            });
            assert_eq!(stopped, Err(Abort::OutOfBounds));
            Ok(())
        })
        .unwrap();
    let read = session.read_view(|tx| users.read_with(tx, 20, User::NICKNAME, |n| n.map(str::len)));
    assert_eq!(read, Ok(rows[20].nickname.as_ref().map(String::len)));
}

/// Reads the name of row 7 in the transaction, in which it is `expected`, and changes the row in
/// all ways meanwhile.
fn change_while_reading<P: Protocol>(
    tx: &crate::Tx<'_, P>,
    users: &Table<User, P>,
    expected: &str,
) -> Result<(), Abort> {
    users.read_with(tx, 7, (User::NAME, User::PHOTO), |(name, photo)| {
        assert_eq!(name, expected);
        for length in LENGTHS {
            let other = text(length, 1);
            users.update(tx, 7, (User::NAME.set(&other), User::PHOTO.set(&other)))?;
            assert_eq!(users.read_with(tx, 7, User::NAME, |own| own == other), Ok(true));
            let undone = tx.attempt(|tx| {
                users.modify(tx, 7, Whole, |row| row.name.push_str(name))?;
                // The closure reads what the part has staged, and then the part is undone.
                let undone = tx.attempt(|tx| {
                    users.read_with(tx, 7, User::NAME, |own| {
                        users.delete(tx, 7)?;
                        assert_eq!(own, format!("{other}{expected}"));
                        Err::<(), _>(Abort::Guard)
                    })?
                });
                assert_eq!(undone, Err(Abort::Guard));
                users.delete(tx, 7)?;
                Err::<(), _>(Abort::Guard)
            });
            assert_eq!(undone, Err(Abort::Guard));
            users.delete(tx, 7)?;
            users.insert(tx, User { name: text(length, 2), ..User::new(7) })?;
        }
        assert_eq!((name, photo), (expected, &*User::new(7).photo));
        users.put(tx, User::new(7))
    })?
}

protocol_tests!(all: a_closure_may_change_the_row_that_it_reads);
fn a_closure_may_change_the_row_that_it_reads<P: Protocol>() {
    let (db, users) = scene::<P>();
    for length in LENGTHS {
        let row = User { name: text(length, 0), ..User::new(7) };
        db.run(|tx| users.put(tx, row.clone())).unwrap();
        db.run(|tx| change_while_reading(tx, &users, &row.name)).unwrap();
        assert_eq!(db.run(|tx| users.read(tx, 7, Whole)), Ok(User::new(7)));
        // Now the name that is read is one that the transaction has staged.
        db.run(|tx| {
            users.update(tx, 7, User::NAME.set(&row.name))?;
            change_while_reading(tx, &users, &row.name)
        })
        .unwrap();
        let failed = db.run(|tx| {
            change_while_reading(tx, &users, &User::new(7).name)?;
            Err::<(), _>(Abort::Guard)
        });
        assert_eq!(failed, Err(Abort::Guard));
    }
    settle(&db, &[User::new(7)]);
}

protocol_tests!(overlapping: what_is_lent_stays_although_others_replace_it);
fn what_is_lent_stays_although_others_replace_it<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    let users = db.table::<User>("users").unwrap();
    let mut other = db.session().unwrap();
    for length in LENGTHS {
        let row = User { name: text(length, 0), ..User::new(7) };
        db.run(|tx| users.put(tx, row.clone())).unwrap();
        let mut has_changed = false;
        db.run(|tx| {
            if std::mem::replace(&mut has_changed, true) {
                return Ok(());
            }
            users.read_with(tx, 7, User::NAME, |name| {
                for seed in 1..20 {
                    let new = text(length, seed);
                    other.run(|tx| users.update(tx, 7, User::NAME.set(&new))).unwrap();
                    epochs.pass();
                }
                other.run(|tx| users.delete(tx, 7)).unwrap();
                for _ in 0..8 {
                    epochs.pass();
                    other.run(|_| Ok(())).unwrap();
                }
                assert_eq!(name, row.name);
            })
        })
        .unwrap();
    }
}

protocol_tests!(versioned: closures_are_lent_what_a_snapshot_sees);
fn closures_are_lent_what_a_snapshot_sees<P: Versioned>() {
    let (db, users) = scene::<P>();
    let rows: Vec<User> = (0..20).map(User::new).collect();
    db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    let snapshot = db.snapshot();
    db.run(|tx| users.clear(tx)).unwrap();
    for row in &rows {
        let same = snapshot.run(|tx| users.read_with(tx, row.id, User::NAME, |n| n == row.name));
        assert_eq!(same, Ok(true));
    }
    let mut names = Vec::new();
    let read = snapshot
        .run(|tx| users.iter(tx, User::NAME).for_each_with(|_, name| names.push(name.to_owned())));
    assert_eq!(read, Ok(()));
    assert!(names.iter().eq(rows.iter().map(|row| &row.name)));
    drop(snapshot);
    settle(&db, &[]);
}

protocol_tests!(all: a_value_that_a_change_leaves_is_not_staged);
fn a_value_that_a_change_leaves_is_not_staged<P: Protocol>() {
    let (db, users) = scene::<P>();
    let row = User { nickname: Some(text(100, 5)), hash: None, ..User::new(4) };
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    settle(&db, std::slice::from_ref(&row));
    let in_use = || db.inner.engine.long_memory().unwrap().in_use() as usize;
    let before = in_use();
    assert!(before > 1);
    db.run(|tx| {
        users.modify(tx, 4, User::NAME, |name| {
            name.push('s');
            name.pop();
        })?;
        users.modify(tx, 4, (User::PHOTO, User::NICKNAME, User::VISITS), |(.., n)| *n += 1)?;
        users.modify(tx, 4, Whole, |row| row.visits += 1)?;
        users.find(tx, 4)?.modify(Whole, |row| row.age += 1)?;
        assert_eq!(in_use(), before, "{}", P::NAME);
        // A column whose value is that of another one has a block of its own.
        users
            .modify(tx, 4, Whole, |row| row.hash = row.nickname.clone().map(String::into_bytes))?;
        assert_eq!(in_use(), before + 1, "{}", P::NAME);
        users.modify(tx, 4, Whole, |row| row.visits += 1)?;
        assert_eq!(in_use(), before + 1, "{}", P::NAME);
        Ok(())
    })
    .unwrap();
    let hash = row.nickname.clone().map(String::into_bytes);
    let (visits, age) = (row.visits + 3, row.age + 1);
    let row = User { hash, visits, age, ..row };
    assert_eq!(db.run(|tx| users.read(tx, 4, Whole)).as_ref(), Ok(&row));
    settle(&db, std::slice::from_ref(&row));
    // The closure replaces what stays, and the row.
    db.run(|tx| {
        users.modify(tx, 4, Whole, |_| {
            users.update(tx, 4, User::NICKNAME.set(Some(&text(50, 1))))?;
            users.delete(tx, 4)?;
            users.insert(tx, User::new(4))
        })?
    })
    .unwrap();
    assert_eq!(db.run(|tx| users.read(tx, 4, Whole)).as_ref(), Ok(&row));
    settle(&db, &[row]);
}

fn open<P: Protocol>(disk: &SimDisk) -> (Database<P>, Table<User, P>) {
    let options = LogOptions::new().segment_bytes(64 << 10).acknowledge(Level::Durable);
    let db = Database::<P>::builder().open_on(Arc::new(disk.clone()), options).unwrap();
    let users = db.table::<User>("users").unwrap();
    (db, users)
}

protocol_tests!(all: values_that_changes_leave_are_in_the_files);
fn values_that_changes_leave_are_in_the_files<P: Protocol>() {
    let disk = SimDisk::default();
    let (db, users) = open::<P>(&disk);
    let rows: Vec<User> = (0..14).map(User::new).collect();
    db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    for row in &rows {
        let name = &row.name;
        let end = db.run(|tx| {
            users.update(tx, row.id, User::NAME.equals(name))?;
            users.modify(tx, row.id, Whole, |seen| {
                if row.id.is_multiple_of(2) {
                    users.delete(tx, row.id)?;
                    users.insert(tx, User { id: row.id, ..User::new(99) })?;
                }
                seen.visits += 1;
                Ok::<(), Abort>(())
            })?
        });
        assert_eq!(end, Ok(()));
    }
    let rows: Vec<User> =
        rows.into_iter().map(|row| User { visits: row.visits + 1, ..row }).collect();
    drop(users);
    db.close().unwrap();
    let (db, users) = open::<P>(&disk);
    let read = db.run(|tx| users.rows(tx, ..).collect_rows());
    assert_eq!(read.as_ref(), Ok(&rows), "{}", P::NAME);
    settle(&db, &rows);
}
