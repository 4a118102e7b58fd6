//! Tests of versions in timestamp order: of their order in a chain, and of the conflicts that
//! follow from it. Besides, no attempt may read at the time of a commit in progress.

use crate::protocols::Mvto;
use crate::sync::{Point, with_hook};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::transactions::{CONFLICT, ONCE, run};
use crate::tests::waiting::receive;
use crate::timestamps::by_the_clock;
use crate::{Abort, Database, Table, Tx};
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

type Items = Table<Item, Mvto>;

/// Makes a database with rows 0 and 1, whose counts are 0.
fn database() -> (Database<Mvto>, Items) {
    let db = Database::<Mvto>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let filled = db.run(|tx| (0..2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    assert_eq!(filled, Ok(()));
    (db, items)
}

fn counts(db: &Database<Mvto>, items: &Items) -> [i64; 2] {
    let counts =
        db.run(|tx| Ok([items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?]));
    counts.unwrap()
}

/// Adds one to a row's count. The sum may overflow, so the commit reads the row.
fn add(tx: &Tx<'_, Mvto>, items: &Items, id: u64) -> Result<(), Abort> {
    items.update(tx, &id, Item::COUNT.add(1))
}

fn add_to_both(tx: &Tx<'_, Mvto>, items: &Items) -> Result<(), Abort> {
    (0..2).try_for_each(|id| add(tx, items, id))
}

#[test]
fn a_write_below_a_read_timestamp_restarts_its_transaction() {
    for writes in [false, true] {
        let (db, items) = database();
        let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
        let rows = items.clone();
        // The first session has drawn its timestamp. The second session reads, at a later
        // timestamp, the row that the first one is about to replace.
        let meanwhile = move || {
            run(&mut second, |tx| {
                assert_eq!(rows.read(tx, 0, Item::COUNT)?, 0);
                if writes { rows.update(tx, 1, Item::COUNT.set(5)) } else { Ok(()) }
            });
        };
        let lost = acting(Point::Unlocked, meanwhile, || {
            first
                .with(ONCE())
                .run(|tx| items.update(tx, 0, (Item::COUNT.set(1), Item::SMALL.set(1))))
        });
        assert_eq!((lost, first.last_conflict().unwrap().cause), (CONFLICT, Abort::ReadChanged));
        assert_eq!(counts(&db, &items), [0, if writes { 5 } else { 0 }]);
    }
}

#[test]
fn a_row_that_was_missing_is_not_inserted_below_a_reader_that_missed_it() {
    let (db, items) = database();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let rows = items.clone();
    let meanwhile = move || {
        run(&mut second, |tx| {
            assert_eq!(rows.get(tx, 9, ())?, None);
            rows.update(tx, 1, Item::COUNT.set(5))
        });
    };
    let lost = acting(Point::Unlocked, meanwhile, || {
        first.with(ONCE()).run(|tx| items.insert(tx, Item::new(9, 9)))
    });
    assert_eq!((lost, first.last_conflict().unwrap().cause), (CONFLICT, Abort::ReadChanged));
    // Now the key has a record, and the record's chain is empty.
    assert_eq!(first.run(|tx| items.insert(tx, Item::new(9, 9))), Ok(()));
}

/// A reader reads and commits after the writer has checked for readers, and before it has linked
/// its version.
#[test]
fn a_read_just_before_a_version_is_linked_below_is_noticed() {
    let (db, items) = database();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let rows = items.clone();
    let meanwhile = move || assert_eq!(run(&mut second, |tx| rows.read(tx, 0, Item::COUNT)), 0);
    let lost = acting(Point::Linking, meanwhile, || {
        first.with(ONCE()).run(|tx| {
            items.update(tx, 0, (Item::COUNT.set(1), Item::SMALL.set(1), Item::FLAG.set(true)))
        })
    });
    assert_eq!((lost, first.last_conflict().unwrap().cause), (CONFLICT, Abort::ReadChanged));
    assert_eq!(counts(&db, &items), [0, 0]);
}

/// The second transaction replaces a row after the first one has read that row, and commits before
/// the first one does.
#[test]
fn reads_are_validated_at_the_commit_timestamp() {
    let (db, items) = database();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let lost = first.with(ONCE()).run(|tx| {
        assert_eq!(items.read(tx, 0, Item::COUNT)?, 0);
        // This commit has a later timestamp than the time at which the first transaction reads.
        run(&mut second, |tx| items.update(tx, 0, Item::COUNT.set(7)));
        items.update(tx, 1, (Item::COUNT.set(1), Item::SMALL.set(1)))
    });
    assert_eq!((lost, first.last_conflict().unwrap().cause), (CONFLICT, Abort::ReadChanged));
    assert_eq!(counts(&db, &items), [7, 0]);
}

#[test]
fn a_version_linked_below_a_commit_fails_the_commit() {
    let (db, items) = database();
    let [mut slipping, mut late, mut middle] = [(); 3].map(|()| db.session().unwrap());
    let ((drawn, has_drawn), (go, may_go)) = (channel(), channel());
    let rows = items.clone();
    let slips = thread::spawn(move || {
        let wait = move || {
            drawn.send(()).unwrap();
            may_go.recv().unwrap();
        };
        acting(Point::Unlocked, wait, || slipping.with(ONCE()).run(|tx| add(tx, &rows, 0)))
            == Ok(())
    });
    has_drawn.recv().unwrap();
    // The other thread draws the first timestamp, `late` the second, and `middle` the third. When
    // `middle` has found the version below its own, the other thread links a version between the
    // two. Afterwards `late` tries to link one, too. No addition may be lost.
    let rows = items.clone();
    let (result, of_middle): (Sender<bool>, Receiver<bool>) = channel();
    let meanwhile = move || {
        let mut slips = Some(slips);
        let slip = move || {
            go.send(()).unwrap();
            assert!(
                slips.take().unwrap().join().unwrap(),
                "no transaction is in conflict with the write"
            );
        };
        let committed =
            acting(Point::Following, slip, || middle.with(ONCE()).run(|tx| add(tx, &rows, 0)));
        result.send(committed == Ok(())).unwrap();
    };
    let late =
        acting(Point::Unlocked, meanwhile, || late.with(ONCE()).run(|tx| add(tx, &items, 0)))
            == Ok(());
    let added = 1 + i64::from(late) + i64::from(of_middle.recv().unwrap());
    assert_eq!(counts(&db, &items), [added, 0]);
}

/// Returns a hook that sends the default value whenever this thread waits for commits in progress.
fn telling<T: Default + 'static>(told: Sender<T>) -> impl FnMut(Point) + 'static {
    move |point| {
        if point == Point::Awaiting {
            // Only the first message is needed. The receiver may have been dropped afterwards.
            let _ = told.send(T::default());
        }
    }
}

/// Runs a commit that writes both rows. When the commit has drawn its timestamp, a reader begins.
/// The reader reads the second row only after the commit's end.
fn looks_amid_a_commit(
    look: impl FnOnce(Database<Mvto>, Items, Box<dyn FnMut() + Send>) -> Result<[i64; 2], Abort>
    + Send
    + 'static,
) {
    let (db, items) = database();
    let mut writer = db.session().unwrap();
    let ((looks, has_looked), (over, is_over)) = (channel(), channel());
    let (there, rows) = (db.clone(), items.clone());
    let reader = std::cell::RefCell::new(None);
    let handle = std::rc::Rc::new(reader);
    let kept = handle.clone();
    let meanwhile = move || {
        let waits = looks.clone();
        let between = Box::new(move || {
            let _ = looks.send(());
            is_over.recv().unwrap();
        });
        *kept.borrow_mut() =
            Some(thread::spawn(move || with_hook(telling(waits), || look(there, rows, between))));
        // The reader sends a message when it waits for the commit, as it should. The reader also
        // sends a message if it has read the first row, so that the test continues.
        receive("it waits, or looks", &has_looked);
    };
    acting(Point::Unlocked, meanwhile, || run(&mut writer, |tx| add_to_both(tx, &items)));
    over.send(()).unwrap();
    let reader = handle.borrow_mut().take().expect("the point was passed");
    assert_eq!(reader.join().unwrap(), Ok([1, 1]), "its time is not before the commit's");
}

#[test]
fn a_snapshot_is_not_opened_amid_a_commit_that_belongs_to_it() {
    looks_amid_a_commit(|db, items, mut between| {
        let snapshot = db.snapshot();
        let first = snapshot.run(|tx| items.read(tx, 0, Item::COUNT))?;
        between();
        Ok([first, snapshot.run(|tx| items.read(tx, 1, Item::COUNT))?])
    });
}

#[test]
fn a_reader_does_not_begin_amid_a_commit_that_belongs_to_it() {
    looks_amid_a_commit(|db, items, mut between| {
        db.read_view(|tx| {
            let first = items.read(tx, 0, Item::COUNT)?;
            between();
            Ok([first, items.read(tx, 1, Item::COUNT)?])
        })
    });
}

#[test]
fn a_transaction_without_writes_is_validated_against_pending_commits() {
    let (db, items) = database();
    let (mut writer, mut reader) = (db.session().unwrap(), db.session().unwrap());
    let rows = items.clone();
    // The writer has linked its versions. The reader's time is not before the timestamp of these
    // versions.
    let meanwhile = move || {
        let read = |tx: &Tx<'_, Mvto>| rows.read(tx, 0, Item::COUNT).map(drop);
        assert_eq!(
            reader.with(ONCE()).run(read),
            CONFLICT,
            "it waits for what is pending, for a moment"
        );
        let other =
            |tx: &Tx<'_, Mvto>| rows.get(tx, 7, Item::COUNT).map(|found| assert_eq!(found, None));
        assert_eq!(reader.with(ONCE()).run(other), Ok(()), "what is not written does not wait");
    };
    acting(Point::Locked, meanwhile, || run(&mut writer, |tx| add_to_both(tx, &items)));
    assert_eq!(counts(&db, &items), [1, 1]);
}

#[test]
fn numbers_of_ended_sessions_are_reused() {
    let (db, items) = database();
    for round in 1..=50 {
        let mut sessions: Vec<_> = (0..4).map(|_| db.session().unwrap()).collect();
        sessions
            .iter_mut()
            .for_each(|session| run(session, |tx| items.update(tx, 0, Item::COUNT.add(1))));
        assert_eq!(sessions[3].read_view(|tx| items.read(tx, 0, Item::COUNT)), Ok(4 * round));
    }
    assert!(db.inner.engine.clock.parts() <= 6, "{}", db.inner.engine.clock.parts());
}

/// Two sessions are made after others have ended. One of them commits during the other's commit.
/// The commit of the one session must not make that of the other appear to have ended.
#[test]
fn a_reused_session_number_has_one_session() {
    let (db, items) = database();
    run(&mut db.session().unwrap(), |tx| add(tx, &items, 0));
    let [mut first, mut second] = [(); 2].map(|()| db.session().unwrap());
    [&mut first, &mut second].into_iter().for_each(|session| run(session, |tx| add(tx, &items, 0)));
    let (there, rows) = (db.clone(), items.clone());
    let (opened, is_opened) = channel();
    let meanwhile = move || {
        run(&mut second, |tx| add(tx, &rows, 0));
        let waits = opened.clone();
        thread::spawn(move || {
            let snapshot = with_hook(telling(waits), || there.snapshot());
            let _ = opened.send(Some(snapshot.run(|tx| rows.read(tx, 1, Item::COUNT))));
        });
        let first = receive("it waits, or is opened", &is_opened);
        assert_eq!(first, None, "a commit that belongs to it is going on");
    };
    acting(Point::Unlocked, meanwhile, || run(&mut first, |tx| add(tx, &items, 1)));
    assert_eq!(counts(&db, &items), [4, 1]);
}

#[test]
fn sessions_beyond_the_numbers_of_sessions_lose_no_commit() {
    const THREADS: u64 = 4;
    const SESSIONS: u64 = 80;
    const ROUNDS: u64 = 10;
    let (db, items) = database();
    // No session ends before all threads have made their sessions.
    let all = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, items, all) = (&db, &items, &all);
            scope.spawn(move || {
                let mut sessions: Vec<_> = (0..SESSIONS).map(|_| db.session().unwrap()).collect();
                for _ in 0..ROUNDS {
                    for session in &mut sessions {
                        assert_eq!(session.run(|tx| add(tx, items, thread % 2)), Ok(()));
                    }
                }
                all.wait();
            });
        }
    });
    assert_eq!(counts(&db, &items), [(THREADS / 2 * SESSIONS * ROUNDS) as i64; 2]);
    assert!(db.inner.engine.clock.parts() > 256);
}

/// Runs the tests of this file with timestamps from the system's clock.
#[test]
fn chains_are_ordered_with_timestamps_of_the_clock() {
    let all: [fn(); 10] = [
        reads_are_validated_at_the_commit_timestamp,
        a_write_below_a_read_timestamp_restarts_its_transaction,
        a_row_that_was_missing_is_not_inserted_below_a_reader_that_missed_it,
        a_version_linked_below_a_commit_fails_the_commit,
        a_snapshot_is_not_opened_amid_a_commit_that_belongs_to_it,
        a_reader_does_not_begin_amid_a_commit_that_belongs_to_it,
        a_transaction_without_writes_is_validated_against_pending_commits,
        numbers_of_ended_sessions_are_reused,
        a_reused_session_number_has_one_session,
        sessions_beyond_the_numbers_of_sessions_lose_no_commit,
    ];
    by_the_clock(|| all.iter().for_each(|test| test()));
}
