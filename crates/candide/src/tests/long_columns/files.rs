//! Strings and bytes of any length in the files of a database.

use super::{LENGTHS, User, all, settle, text};
use crate::any::{Chosen, Erased};
use crate::api::TableWords;
use crate::engine::Protocol;
use crate::protocols::Exclusion;
use crate::{
    Abort, Database, Level, LogOptions, Mvcc, Mvto, Occ, Serial, Table, TableOptions, TicToc, Whole,
};
use candide_log::format::long_row::LongRow;
use candide_log_testing::{CrashOptions, SimDisk};
use std::num::NonZeroUsize;
use std::sync::Arc;

pub(super) fn options() -> LogOptions {
    LogOptions::new().segment_bytes(64 << 10).acknowledge(Level::Durable)
}

fn open<P: Protocol>(disk: &SimDisk, threads: usize) -> Database<P> {
    let options = options().recovery_threads(NonZeroUsize::new(threads).unwrap());
    Database::<P>::builder().open_on(Arc::new(disk.clone()), options).unwrap()
}

/// Opens the database, and checks that the table has these rows and that all blocks are theirs.
fn reopen<P: Protocol>(
    disk: &SimDisk,
    threads: usize,
    rows: &[User],
) -> (Database<P>, Table<User, P>) {
    let db = open::<P>(disk, threads);
    let users = db.table::<User>("users").unwrap();
    assert_eq!(all(&mut db.session().unwrap(), &users), rows);
    settle(&db, rows);
    (db, users)
}

/// Changes rows in each way; `rows` are those of the table. `seed` makes other values each time.
fn change<P: Protocol>(
    db: &Database<P>,
    users: &Table<User, P>,
    rows: &mut Vec<User>,
    seed: usize,
) {
    let mut session = db.session().unwrap();
    for (place, length) in LENGTHS.into_iter().enumerate() {
        let new = text(length, seed + place);
        let row = &mut rows[place];
        session
            .run(|tx| {
                // Only the last value of a column counts.
                users.update(tx, row.id, User::NAME.set("an earlier value of the column"))?;
                users.update(tx, row.id, (User::NAME.set(&new), User::VISITS.add(1)))
            })
            .unwrap();
        (row.name, row.visits) = (new, row.visits + 1);
    }
    // An image of the unit repeats the words of the other columns.
    for row in &mut rows[7..14] {
        let (id, nickname) = (row.id, seed.is_multiple_of(2).then(|| text(seed + 8, seed)));
        session
            .run(|tx| {
                users.update(tx, id, User::AGE.add(1))?;
                users.read(tx, id, User::AGE)?;
                users.update(tx, id, (User::AGE.add(2), User::NICKNAME.set(nickname.as_deref())))
            })
            .unwrap();
        (row.age, row.nickname) = (row.age + 3, nickname);
        session.run(|tx| users.modify(tx, id, Whole, |row| row.visits += 1)).unwrap();
        row.visits += 1;
    }
    for row in &mut rows[14..18] {
        let hash: Option<Vec<u8>> = (row.id % 2 == 0).then(Vec::new);
        session.run(|tx| users.update(tx, row.id, User::HASH.set(hash.as_deref()))).unwrap();
        row.hash = hash;
    }
    // A put of a row that exists, or was deleted before, and of one that is new.
    session
        .run(|tx| {
            users.delete(tx, rows[18].id)?;
            for row in &mut rows[18..21] {
                *row = User { id: row.id, ..User::new(seed + 3 * row.id as usize) };
                users.put(tx, row.clone())?;
            }
            users.delete(tx, rows[21].id)?;
            users.put(tx, User { id: 1_000 + seed as u64, ..User::new(seed) })
        })
        .unwrap();
    rows.push(User { id: 1_000 + seed as u64, ..User::new(seed) });
    rows.remove(21);
    let undone = session.run(|tx| {
        users.update(tx, rows[0].id, User::NAME.set("of a transaction that fails"))?;
        Err::<(), _>(Abort::Guard)
    });
    assert_eq!(undone, Err(Abort::Guard));
}

protocol_tests!(all: values_of_all_lengths_come_back_from_the_files);
fn values_of_all_lengths_come_back_from_the_files<P: Protocol>() {
    let disk = SimDisk::new();
    let db = open::<P>(&disk, 1);
    let users = db.table::<User>("users").unwrap();
    let mut rows: Vec<User> = (0..40).map(User::new).collect();
    db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    change(&db, &users, &mut rows, 1);
    drop((db, users));
    // From the log; then from a checkpoint, and the log behind it.
    let (db, users) = reopen::<P>(&disk, 2, &rows);
    change(&db, &users, &mut rows, 2);
    db.checkpoint().unwrap();
    drop((db, users));
    let (db, users) = reopen::<P>(&disk, 1, &rows);
    change(&db, &users, &mut rows, 3);
    drop((db, users));
    // A program that does not name the table keeps its values.
    for _ in 0..2 {
        let db = open::<P>(&disk, 1);
        db.checkpoint().unwrap();
    }
    let (db, users) = reopen::<P>(&disk, 3, &rows);
    change(&db, &users, &mut rows, 4);
    db.run(|tx| rows.iter().try_for_each(|row| users.delete(tx, row.id))).unwrap();
    settle(&db, &[]);
    drop((db, users));
    reopen::<P>(&disk, 2, &[]);
}

protocol_tests!(all: a_commit_logs_only_the_values_that_it_sets);
fn a_commit_logs_only_the_values_that_it_sets<P: Protocol>() {
    let disk = SimDisk::new();
    let db = open::<P>(&disk, 1);
    let users = db.table::<User>("users").unwrap();
    let empty =
        User { name: String::new(), photo: vec![], nickname: None, hash: None, ..User::new(1) };
    let large = User { name: text(70_000, 0), ..empty.clone() };
    db.run(|tx| users.insert(tx, large.clone())).unwrap();
    for others in [1, 40] {
        let recorded = || db.durability().unwrap().recorded_bytes;
        let before = recorded();
        db.run(|tx| {
            for id in 2..2 + others {
                users.put(tx, User { id, name: text(20, id as usize), ..empty.clone() })?;
            }
            // The words of the unit, among them that of the large value.
            users.modify(tx, 1, Whole, |row| row.visits += 1)?;
            users.update(tx, 1, User::VISITS.set(2))
        })
        .unwrap();
        let bytes = recorded() - before;
        assert!(bytes < 200 * (others + 1), "{}: {bytes} bytes for {others} rows", P::NAME);
    }
}

/// Returns all protocols, with timestamp splitting or not.
pub(super) fn choices() -> Vec<(Chosen, bool)> {
    let protocols = [
        Chosen::of::<Occ>(Default::default()),
        Chosen::of::<TicToc>(()),
        Chosen::of::<Mvcc>(()),
        Chosen::of::<Mvto>(()),
        Chosen::of::<Serial>(Exclusion::OneSession),
        Chosen::of::<Serial>(Exclusion::GlobalLock),
    ];
    protocols.into_iter().flat_map(|chosen| [(chosen.clone(), true), (chosen, false)]).collect()
}

#[test]
fn values_are_read_under_any_protocol_with_splitting_or_without() {
    let disk = SimDisk::new();
    let mut rows: Vec<User> = (0..40).map(User::new).collect();
    for (number, (chosen, splitting)) in choices().into_iter().enumerate() {
        let builder = Database::<Erased>::builder().policy(chosen).timestamp_splitting(splitting);
        let db = builder.open_on(Arc::new(disk.clone()), options()).unwrap();
        let users = db.table::<User>("users").unwrap();
        if number == 0 {
            db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
        }
        assert_eq!(all(&mut db.session().unwrap(), &users), rows);
        settle(&db, &rows);
        change(&db, &users, &mut rows, number + 1);
        if number % 3 == 1 {
            db.checkpoint().unwrap();
        }
    }
}

/// Runs transactions that give three rows the values of one number, of lengths from one word to
/// more than a segment. Each state that a crash can leave has those of one number, no earlier than
/// the last that was acknowledged.
#[test]
fn every_crash_leaves_the_values_of_one_commit() {
    const COMMITS: usize = 14;
    let disk = SimDisk::new();
    let row = |id: u64, number: usize| User {
        id,
        visits: number as u32,
        name: text(LENGTHS[number % LENGTHS.len()], number),
        photo: text(LENGTHS[(number + id as usize) % LENGTHS.len()], number).into_bytes(),
        ..User::new(0)
    };
    let mut acknowledged = Vec::new();
    for number in 0..COMMITS {
        let db = open::<Occ>(&disk, 1);
        let users = db.table::<User>("users").unwrap();
        db.run(|tx| (0..3).try_for_each(|id| users.put(tx, row(id, number)))).unwrap();
        acknowledged.push(disk.position());
        if number % 4 == 2 {
            db.checkpoint().unwrap();
        }
    }
    let crashes = CrashOptions { exhaustive: 3, pieces: 4, samples: 2, ..CrashOptions::default() };
    let mut states = 0;
    for state in disk.crash_states(&crashes).step_by(5) {
        let position = state.id().position;
        let least = acknowledged.iter().rposition(|&at| at <= position);
        let db = open::<Occ>(&state.disk(), 1);
        let users = db.table::<User>("users").unwrap();
        let found = all(&mut db.session().unwrap(), &users);
        let number = found.first().map(|row| row.visits as usize);
        assert!(number >= least, "{number:?} after {least:?}: {}", state.describe());
        let expected: Vec<User> =
            number.into_iter().flat_map(|number| (0..3).map(move |id| row(id, number))).collect();
        assert_eq!(found, expected, "{}", state.describe());
        settle(&db, &found);
        states += 1;
    }
    assert!(states > 100, "{states} states");
}

#[test]
fn a_value_of_16_mib_comes_back() {
    let disk = SimDisk::new();
    let row = User { name: text(16 << 20, 5), ..User::new(3) };
    let db = open::<Mvcc>(&disk, 1);
    let users = db.table::<User>("users").unwrap();
    db.run(|tx| users.insert(tx, row.clone())).unwrap();
    drop((db, users));
    let (db, users) = reopen::<Mvcc>(&disk, 1, std::slice::from_ref(&row));
    db.checkpoint().unwrap();
    drop((db, users));
    reopen::<Mvcc>(&disk, 1, &[row]);
}

#[test]
fn an_update_logs_the_values_that_it_sets_and_no_others() {
    let disk = SimDisk::new();
    let db = open::<Occ>(&disk, 1);
    let users = db.table::<User>("users").unwrap();
    let row = User { photo: vec![7; 70_000], ..User::new(1) };
    db.run(|tx| (1..3).try_for_each(|id| users.insert(tx, User { id, ..row.clone() }))).unwrap();
    let log = db.inner.engine.log.get().unwrap();
    let of_sets = [1, 2].map(|sets| {
        let before = log.appended_words();
        let set = |id| (id, User::NAME.set(text(100, 0)));
        db.run(|tx| (1..=sets).map(set).try_for_each(|(id, set)| users.update(tx, id, set)))
            .unwrap();
        (log.appended_words() - before) * 8
    });
    // The head of a commit's record, and for each set a header, the key, the column's word, and the
    // value with its header.
    assert_eq!(of_sets, [24 + 136, 24 + 2 * 136]);
    let before = log.appended_words();
    // Two operations on one word make an image of the unit.
    db.run(|tx| {
        users.update(tx, 1, User::AGE.add(1))?;
        users.update(tx, 1, User::AGE.add(2))
    })
    .unwrap();
    let of_image = log.appended_words() - before;
    assert!(of_image < 100, "{of_image} words");
}

#[test]
fn files_and_volatile_tables_are_apart() {
    let disk = SimDisk::new();
    let db = open::<Occ>(&disk, 1);
    let options = TableOptions::default().volatile();
    let users = db.table_with::<User>("users", options).unwrap();
    db.run(|tx| users.insert(tx, User::new(8))).unwrap();
    assert_eq!(db.run(|tx| users.read(tx, 8, Whole)), Ok(User::new(8)));
    drop((db, users));
    reopen::<Occ>(&disk, 1, &[]);
}

#[test]
fn rows_go_in_and_out_with_their_values_before_the_program_names_their_type() {
    let disk = SimDisk::new();
    let rows: Vec<User> = (0..30).map(User::new).collect();
    let db = open::<Occ>(&disk, 1);
    let users = db.table::<User>("users").unwrap();
    db.run(|tx| users.insert_many(tx, rows.iter().cloned())).unwrap();
    drop((db, users));
    let kept = |db: &Database<Occ>| {
        let mut kept = Vec::new();
        let each = |words: TableWords<'_, Occ>| {
            words.for_each_row(&mut |row: LongRow<'_>| {
                kept.push((row.key.to_vec(), row.words.to_vec(), row.value_words().to_vec()));
            })
        };
        db.with_words("users", each).unwrap().unwrap();
        kept.sort();
        kept
    };
    let db = open::<Occ>(&disk, 1);
    let before = kept(&db);
    assert_eq!(before.len(), rows.len());
    let insert = |words: TableWords<'_, Occ>| {
        db.run(|tx| {
            let (key, fixed, values) = &before[5];
            assert!(!words.insert_row(tx, LongRow::of(key, fixed, values).unwrap())?);
            for (key, fixed, values) in &before {
                let key = [key[0] + 100];
                assert!(words.insert_row(tx, LongRow::of(&key, fixed, values).unwrap())?);
            }
            Ok(())
        })
    };
    db.with_words("users", insert).unwrap().unwrap();
    drop(db);
    let copies = rows.iter().map(|row| User { id: row.id + 100, ..row.clone() });
    let all: Vec<User> = rows.iter().cloned().chain(copies).collect();
    let (db, _users) = reopen::<Occ>(&disk, 1, &all);
    assert_eq!(kept(&db).len(), 60);
}
