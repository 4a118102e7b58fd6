//! Small schedules of former defects: waits in the wrong place, WANT flags of other sessions,
//! changes of a policy by several threads.

use super::base;
use crate::locks::{Lock, RASK, WASK, flags_of};
use crate::policy::{MoccOptions, Policy};
use crate::protocols::Occ;
use crate::record::{CellAt, Tid};
use crate::report::LockStats;
use crate::sync::{AtomicU64, Ordering};
use crate::tests::hostile::Watchdog;
use crate::tests::rows::Item;
use crate::tests::transactions::ONCE;
use crate::tests::waiting::receive;
use crate::{Abort, Database, RunOptions, Table, TableOptions, Tx};
use std::sync::mpsc;
use std::thread::{Scope, ScopedJoinHandle};

fn table(db: &Database<Occ>, name: &str, policy: Policy) -> Table<Item, Occ> {
    let table = db.table_with::<Item>(name, TableOptions::default().policy(policy)).unwrap();
    db.run(|tx| (0..8).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    table
}

fn database() -> Database<Occ> {
    Database::<Occ>::builder().manual_epochs(1).timestamp_splitting(false).build().unwrap()
}

/// Returns the only cell of a row, also of an absent one.
fn cell(table: &Table<Item, Occ>, key: u64) -> CellAt {
    let core = table.core();
    let mut found = None;
    core.index.for_each(&mut |record| {
        if record.key_words(1).as_slice()[0] == key {
            found = core.layout.cells(record).next();
        }
    });
    found.unwrap()
}

fn tid(at: CellAt) -> Tid {
    Tid(at.cell_word(0).load(Ordering::Relaxed))
}

/// Runs `body` while a transaction of another thread, which has run `act`, is open.
fn while_open(
    db: &Database<Occ>,
    act: impl Fn(&Tx<'_, Occ>) -> Result<(), Abort> + Sync,
    body: impl FnOnce(),
) {
    let (begun, done) = (mpsc::channel(), mpsc::channel::<()>());
    std::thread::scope(|scope| {
        let act = &act;
        scope.spawn(move || {
            let _ = db.session().unwrap().with(ONCE()).run(|tx| {
                let acted = act(tx);
                begun.0.send(()).unwrap();
                let _ = done.1.recv();
                acted
            });
        });
        receive("the other transaction", &begun.1);
        body();
        drop(done.0);
    });
}

/// Spawns a transaction of at most `attempts` attempts that has locked row 7, so that it is older
/// than all that begin later. Once the returned sender is dropped, it runs `act`. The thread
/// returns its counts of locks.
fn spawn_older<'s>(
    scope: &'s Scope<'s, '_>,
    db: &'s Database<Occ>,
    rows: &'s Table<Item, Occ>,
    attempts: u32,
    act: impl Fn(&Tx<'_, Occ>) -> Result<(), Abort> + Send + 's,
) -> (ScopedJoinHandle<'s, LockStats>, mpsc::Sender<()>) {
    let (say, aged) = mpsc::channel();
    let (open, go) = mpsc::channel::<()>();
    let older = scope.spawn(move || {
        let mut session = db.session().unwrap();
        let _ = session.with(RunOptions::new().attempts_max(attempts)).run(|tx| {
            rows.read(tx, 7, Item::COUNT)?;
            if tx.attempt_number() == 1 {
                say.send(()).unwrap();
                let _ = go.recv();
            }
            act(tx)
        });
        session.stats().locks
    });
    receive("the older transaction", &aged);
    (older, open)
}

#[test]
fn a_table_that_could_not_be_made_leaves_no_policy() {
    let db = Database::<Occ>::builder().memory_limit(8 << 20).build().unwrap();
    let options = TableOptions::default().policy(Policy::NoWait).capacity(1 << 28);
    assert!(db.table_with::<Item>("large", options).is_err());
    let table = db.table::<Item>("small").unwrap();
    assert_eq!(table.policy(), Policy::Optimistic);
}

#[test]
fn a_dreadlock_reader_that_turns_writer_waits_for_the_other_reader() {
    let db = database();
    let rows = table(&db, "rows", Policy::Dreadlock);
    let waits = |reads_first: bool| {
        let mut session = db.session().unwrap();
        while_open(
            &db,
            |tx| rows.read(tx, 0, Item::COUNT).map(drop),
            || {
                let _ = session.with(ONCE()).run(|tx| {
                    if reads_first {
                        rows.read(tx, 0, Item::COUNT)?;
                    }
                    rows.update(tx, 0, Item::COUNT.set(1))
                });
            },
        );
        session.stats().locks.waited
    };
    assert_eq!(waits(false), 1, "a writer that has not read waits");
    assert_eq!(waits(true), 1, "so does a reader that turns writer");
}

#[test]
fn a_doomed_attempt_ends_at_its_next_lock() {
    let db = database();
    let rows = table(&db, "rows", Policy::Swiss);
    let mut session = db.session().unwrap();
    let mut second = Ok(());
    let _ = session.with(ONCE()).run(|tx| {
        rows.update(tx, 0, Item::COUNT.set(1))?;
        let at = cell(&rows, 0);
        let owner = Lock::of(&at).word().owner();
        let desk = base(&db).locks.desks.desk(owner);
        desk.doom(desk.attempt());
        second = rows.update(tx, 1, Item::COUNT.set(1));
        second
    });
    assert_eq!(second, Err(Abort::Locked));
}

#[test]
fn a_commit_that_owns_a_cell_does_not_sleep() {
    let db = database();
    let plain = table(&db, "plain", Policy::Optimistic);
    let rows = table(&db, "rows", Policy::WaitDie);
    let (linked, go) = (mpsc::channel(), mpsc::channel::<()>());
    let ((say, linked), (open, go)) = (linked, go);
    std::thread::scope(|scope| {
        let (db, plain, rows) = (&db, &plain, &rows);
        let writer = scope.spawn(move || {
            let mut first = true;
            let mut session = db.session().unwrap();
            session.with(RunOptions::new().attempts_max(3)).run(|tx| {
                rows.read(tx, 5, Item::COUNT)?;
                plain.update(tx, 0, Item::COUNT.set(1))?;
                rows.insert(tx, Item::new(9, 0))?;
                if std::mem::take(&mut first) {
                    say.send(()).unwrap();
                    let _ = go.recv();
                }
                Ok(())
            })
        });
        receive("the insert", &linked);
        let mut slept_owning = false;
        while_open(
            db,
            |tx| rows.read(tx, 9, Item::COUNT).map(drop).or(Ok(())),
            || {
                drop(open);
                let (owned, wanted) = (cell(plain, 0), cell(rows, 9).address() + 8);
                while !writer.is_finished() && !slept_owning {
                    slept_owning = db.inner.engine.parking.waited_for().contains(&wanted)
                        && tid(owned).has(Tid::INSTALL)
                        && db.inner.engine.parking.waited_for().contains(&wanted);
                }
            },
        );
        assert!(!slept_owning, "WA3: a commit that owns a lock never sleeps for another");
    });
}

#[test]
fn no_two_attempts_sleep_for_one_another() {
    let db = database();
    let plain = table(&db, "plain", Policy::Optimistic);
    let rows = table(&db, "rows", Policy::WaitDie);
    let (held, locked) = (mpsc::channel(), mpsc::channel());
    let mut circle = false;
    let ((say_held, held), (say_locked, locked)) = (held, locked);
    std::thread::scope(|scope| {
        let (db, plain, rows) = (&db, &plain, &rows);
        let older = scope.spawn(move || {
            let _ = db.session().unwrap().with(ONCE()).run(|tx| {
                rows.read(tx, 5, Item::COUNT)?;
                plain.read_for_update(tx, 0, Item::COUNT)?;
                say_held.send(()).unwrap();
                receive("the lock", &locked);
                rows.update(tx, 0, Item::COUNT.set(1))
            });
        });
        receive("the older one", &held);
        let younger = scope.spawn(move || {
            let _ = db.session().unwrap().with(ONCE()).run(|tx| {
                rows.update(tx, 0, Item::COUNT.set(1))?;
                say_locked.send(()).unwrap();
                plain.read_for_update(tx, 0, Item::COUNT).map(drop)
            });
        });
        let places = [cell(plain, 0).address(), cell(rows, 0).address() + 8];
        while !older.is_finished() && !younger.is_finished() && !circle {
            let asleep = db.inner.engine.parking.waited_for();
            circle = places.iter().all(|place| asleep.contains(place));
        }
    });
    assert!(!circle, "the two sleep for one another");
}

#[test]
fn a_writer_that_aborts_leaves_the_want_flag_of_a_sleeping_one() {
    // A wait ends after 10 ms, so on a busy machine the older writer may have slept unseen.
    let watchdog = Watchdog::new();
    while !is_seen_to_leave_the_wish() {
        watchdog.step("another round".to_string());
    }
}

/// Lets a younger writer abort while an older one sleeps. Returns whether the older one was seen to
/// sleep until the younger one had died; its WANT must then still be set.
fn is_seen_to_leave_the_wish() -> bool {
    let db = database();
    let rows = table(&db, "rows", Policy::WaitDie);
    let mut session = db.session().unwrap();
    let mut is_seen = false;
    std::thread::scope(|scope| {
        let (older, open) =
            spawn_older(scope, &db, &rows, 1, |tx| rows.update(tx, 0, Item::COUNT.set(1)));
        while_open(
            &db,
            |tx| rows.read(tx, 0, Item::COUNT).map(drop),
            || {
                drop(open);
                let at = cell(&rows, 0);
                let parking = &db.inner.engine.parking;
                let sleeps = || parking.waited_for().contains(&(at.address() + 8));
                let is_ready = || sleeps() && Lock::of(&at).word().is_wanted();
                while !(older.is_finished() || is_ready()) {
                    std::thread::yield_now();
                }
                let entered = parking.entered();
                let died = session.with(ONCE()).run(|tx| rows.update(tx, 0, Item::COUNT.set(2)));
                let is_wanted = Lock::of(&at).word().is_wanted();
                is_seen = sleeps() && parking.entered() == entered;
                assert!(
                    is_wanted || !is_seen,
                    "the younger writer has cleared the older one's WANT"
                );
                assert!(died == Err(Abort::AttemptsExhausted) || !is_seen, "{died:?}");
            },
        );
    });
    is_seen
}

#[test]
fn changes_of_a_policy_by_two_threads_leave_one_policy() {
    let db = database();
    let rows = table(&db, "rows", Policy::NoWait);
    db.run(|tx| (8..3000).try_for_each(|id| rows.insert(tx, Item::new(id, 0)))).unwrap();
    for _ in 0..200 {
        std::thread::scope(|scope| {
            scope.spawn(|| rows.set_policy(Policy::Optimistic).unwrap());
            scope.spawn(|| rows.set_policy(Policy::NoWait).unwrap());
        });
        let (wanted, mut others) = (flags_of(rows.policy(), MoccOptions::new()), 0);
        let core = rows.core();
        core.index.for_each(&mut |record| {
            let at = core.layout.cells(record).next().unwrap();
            others += u32::from(tid(at).0 & (RASK | WASK) != wanted);
        });
        let new = core.at_links.new_record_flags.load(Ordering::Relaxed);
        assert_eq!((others, new), (0, wanted), "rows of another policy than {}", rows.policy());
    }
}

#[test]
fn a_row_locked_during_a_change_of_the_policy_gets_the_new_flags_later() {
    let db = database();
    let rows = table(&db, "rows", Policy::NoWait);
    rows.set_policy(Policy::Optimistic).unwrap();
    while_open(
        &db,
        |tx| rows.read_for_update(tx, 0, Item::COUNT).map(drop),
        || {
            rows.set_policy(Policy::NoWait).unwrap();
        },
    );
    for _ in 0..3 {
        db.run(|tx| rows.update(tx, 0, Item::COUNT.add(1))).unwrap();
    }
    assert_eq!(tid(cell(&rows, 0)).0 & (RASK | WASK), RASK | WASK, "it was locked again since");
}

#[test]
fn a_transaction_without_locks_does_not_wait_for_locks() {
    let db = database();
    let rows = table(&db, "rows", Policy::WaitDie);
    let at_end = AtomicU64::new(0);
    let update = |tx: &Tx<'_, Occ>, count| {
        (0..6).try_for_each(|id| rows.update(tx, &id, Item::COUNT.set(count)))
    };
    std::thread::scope(|scope| {
        let (older, open) = spawn_older(scope, &db, &rows, u32::MAX, |tx| {
            at_end.store(db.stats().locks.waited, Ordering::Relaxed);
            update(tx, 1)
        });
        while_open(
            &db,
            |tx| update(tx, 2),
            || {
                drop(open);
                let waited = older.join().unwrap().waited - at_end.load(Ordering::Relaxed);
                assert_eq!(waited, 0, "waits of the attempt that does without locks");
            },
        );
    });
}

#[test]
fn an_attempt_that_gets_a_desk_late_keeps_its_locks() {
    let db = database();
    let rows = table(&db, "rows", Policy::NoWait);
    let desks = &base(&db).locks.desks;
    let taken: Vec<u16> = std::iter::from_fn(|| desks.join(true)).collect();
    let mut session = db.session().unwrap();
    let mut again = Ok(());
    let _ = session.with(ONCE()).run(|tx| {
        rows.update(tx, 0, Item::COUNT.set(1))?;
        desks.leave(taken[0]);
        rows.update(tx, 1, Item::COUNT.set(1))?;
        again = rows.update(tx, 0, Item::COUNT.set(2));
        again
    });
    assert_eq!(again, Ok(()), "the attempt itself has locked the row");
}
