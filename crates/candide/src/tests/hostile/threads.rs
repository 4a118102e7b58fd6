//! Tests of threads that end badly: by unwinding, with forgotten sessions, and with sessions that
//! are destroyed while the thread ends.

use super::super::threads::spawn;
use super::{Deliberate, Scene, Watchdog, deliberate};
use crate::engine::Protocol;
use crate::tests::indexed_rows::Parcel;
use crate::tests::waiting::eventually_with;
use crate::{Abort, Database, Session, Table, Whole};
use std::cell::RefCell;
use std::thread::JoinHandle;

/// Waits for a thread that must end in a deliberate panic.
fn join_panicking(thread: JoinHandle<()>) {
    assert!(thread.join().expect_err("the thread panics").is::<Deliberate>());
}

protocol_tests!(all: a_thread_that_unwinds_undoes_its_transaction);
fn a_thread_that_unwinds_undoes_its_transaction<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let rows = scene.rows();
    for number in 0..20 {
        watchdog.step(format!("thread {number} unwinds under {}", P::NAME));
        let (db, parcels) = (scene.db.clone(), scene.parcels.clone());
        join_panicking(std::thread::spawn(move || {
            let own = if number % 2 == 0 { Some(db.session().unwrap()) } else { None };
            let body = |tx: &crate::Tx<'_, P>| -> Result<(), Abort> {
                let scan = parcels.scan(tx, .., Whole);
                parcels.get_for_update(tx, &(1, 1), Parcel::WEIGHT)?;
                parcels.put(tx, Parcel::new(5, number))?;
                parcels.delete(tx, &(1, 2))?;
                if number % 4 < 2 {
                    std::mem::forget(scan);
                }
                deliberate()
            };
            let _ended = match own {
                Some(mut session) => session.run(body),
                None => db.run(body),
            };
        }));
        scene.assert_unharmed(&rows, "a thread that unwound in a transaction");
        let (db, parcels) = (scene.db.clone(), scene.parcels.clone());
        join_panicking(std::thread::spawn(move || {
            let mut session = db.session().unwrap();
            let changed = session
                .run(|tx| parcels.modify(tx, &(1, 1), Parcel::CODE, |code| *code ^= 1 << 20));
            assert_eq!(changed, Ok(()));
            let changed = session
                .run(|tx| parcels.modify(tx, &(1, 1), Parcel::CODE, |code| *code ^= 1 << 20));
            assert_eq!(changed, Ok(()));
            deliberate()
        }));
        scene.assert_unharmed(&rows, "a thread that unwound after a transaction");
    }
}

protocol_tests!(all: a_session_survives_the_threads_that_panic_with_it);
fn a_session_survives_the_threads_that_panic_with_it<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let rows = scene.rows();
    // After a thread has panicked, another thread continues to use its session.
    let session = std::sync::Mutex::new(scene.db.session().unwrap());
    for _ in 0..5 {
        std::thread::scope(|scope| {
            let panicking = spawn(scope, || {
                let mut session = session.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let _: Result<(), Abort> = session.run(|tx| {
                    scene.parcels.put(tx, Parcel::new(6, 1))?;
                    scene.filed.delete(tx, &(1, 1))?;
                    deliberate()
                });
            });
            assert!(panicking.join().is_err());
        });
        let mut session = session.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let there = session
            .run(|tx| Ok((scene.parcels.get(tx, &(6, 1), ())?, scene.filed.get(tx, &(1, 1), ())?)));
        assert_eq!(there, Ok((None, Some(()))));
    }
    drop(session);
    scene.assert_unharmed(&rows, "a session that moved on from panics");
}

protocol_tests!(concurrent: a_forgotten_session_does_not_delay_reclamation);
fn a_forgotten_session_does_not_delay_reclamation<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let rows = scene.rows();
    for number in 0..10 {
        watchdog.step(format!("forgotten session {number} under {}", P::NAME));
        let (db, parcels) = (scene.db.clone(), scene.parcels.clone());
        let thread = std::thread::spawn(move || {
            let mut session = db.session().unwrap();
            let put = session.run(|tx| {
                let mut scan = parcels.scan(tx, .., Whole);
                scan.next().transpose()?;
                std::mem::forget(scan);
                parcels.put(tx, Parcel { weight: 0, ..Parcel::new(6, number) })
            });
            assert_eq!(put, Ok(()));
            assert_eq!(session.run(|tx| parcels.delete(tx, &(6, number))), Ok(()));
            if number % 2 == 0 {
                let _: Result<(), Abort> = session.run(|tx| {
                    // The scan and the box are forgotten, so the closure's code never drops them.
                    std::mem::forget((parcels.scan_rev(tx, .., Whole), Box::new(tx)));
                    parcels.delete(tx, &(1, 3))?;
                    Err(Abort::NotFound)
                });
            }
            std::mem::forget(session);
        });
        thread.join().unwrap();
        scene.assert_unharmed(&rows, "a thread that forgot its session");
    }
    // A forgotten session leaks its own memory, but not the memory of the rows that it has deleted.
    watchdog.step(format!("collection for forgotten sessions under {}", P::NAME));
    eventually_with(
        "what they left",
        || scene.db.memory().garbage,
        || scene.db.memory().garbage == 0,
    );
}

/// A thread-local value. When its thread ends, it runs a transaction with the session that it
/// keeps.
struct LastWill<P: Protocol> {
    session: RefCell<Session<P>>,
    db: Database<P>,
    parcels: Table<Parcel, P>,
}

impl<P: Protocol> Drop for LastWill<P> {
    fn drop(&mut self) {
        let add = |tx: &crate::Tx<'_, P>| self.parcels.update(tx, &(1, 1), Parcel::NOTE.add(1));
        assert_eq!(self.session.get_mut().run(add), Ok(()));
        if !self.db.properties().one_session {
            assert_eq!(self.db.run(add), Ok(()));
        }
    }
}

protocol_tests!(all: sessions_work_to_the_end_of_a_thread_that_unwinds);
fn sessions_work_to_the_end_of_a_thread_that_unwinds<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let mut rows = scene.rows();
    for number in 0..10 {
        watchdog.step(format!("thread {number} ends under {}", P::NAME));
        let (db, parcels) = (scene.db.clone(), scene.parcels.clone());
        join_panicking(std::thread::spawn(move || {
            thread_local! {
                static WILL: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
            }
            let used = |db: &Database<P>| db.run(|tx| parcels.read(tx, &(1, 1), Parcel::NOTE));
            // The value is made before or after the thread's list of sessions, so it is destroyed
            // after or before that list.
            if number % 2 == 0 && !db.properties().one_session {
                used(&db).unwrap();
            }
            let session = RefCell::new(db.session().unwrap());
            let will = LastWill { session, db: db.clone(), parcels: parcels.clone() };
            WILL.with(|slot| *slot.borrow_mut() = Some(Box::new(will)));
            if db.properties().one_session {
                deliberate()
            }
            let _: Result<(), Abort> = db.run(|tx| {
                parcels.delete(tx, &(1, 4))?;
                deliberate()
            });
        }));
        let wills = if scene.db.properties().one_session { 1 } else { 2 };
        rows.0
            .iter_mut()
            .find(|row| (row.district, row.number) == (1, 1))
            .expect("it is there")
            .note += wills;
        scene
            .assert_unharmed(&rows, "a thread that ended in a panic with a session in its storage");
    }
}

protocol_tests!(concurrent: panics_of_many_threads_do_not_affect_other_threads);
fn panics_of_many_threads_do_not_affect_other_threads<P: Protocol>() {
    let watchdog = Watchdog::new();
    watchdog.step(format!("threads that panic beside one another under {}", P::NAME));
    let scene = Scene::<P>::new();
    let rows = scene.rows();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let scene = &scene;
                spawn(scope, move || {
                    for round in 0..60 {
                        let passed = std::cell::Cell::new(0);
                        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                            scene.db.run(|tx| {
                                let between = |_: &crate::Tx<'_, P>| {
                                    let now = passed.replace(passed.get() + 1);
                                    if now == (7 * thread + round) % 25 {
                                        deliberate()
                                    } else {
                                        Ok(())
                                    }
                                };
                                passed.set(0);
                                scene.script(tx, &between).and(Err(Abort::NotFound))
                            })
                        }));
                        match ended {
                            Ok(stopped) => assert_eq!(stopped, Err::<(), _>(Abort::NotFound)),
                            Err(panic) => assert!(panic.is::<Deliberate>()),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    scene.assert_unharmed(&rows, "a crowd");
}

protocol_tests!(all: records_of_dead_threads_are_buried);
fn records_of_dead_threads_are_buried<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    for number in 0..50 {
        let (db, parcels) = (scene.db.clone(), scene.parcels.clone());
        join_panicking(std::thread::spawn(move || {
            let mut session = db.session().unwrap();
            let _: Result<(), Abort> = session.run(|tx| {
                parcels.insert_many(tx, (0..40).map(|row| Parcel::new(9, 40 * number + row)))?;
                deliberate()
            });
        }));
    }
    watchdog.step(format!("burial behind dead threads under {}", P::NAME));
    eventually_with(
        "what they left",
        || scene.db.memory().garbage,
        || scene.db.memory().garbage == 0,
    );
    let mut session = scene.db.session().unwrap();
    let linked = crate::tests::entries::linked_records(&mut session, &scene.parcels);
    assert_eq!(linked, 3 * usize::from(super::ROWS), "rows and their entries in two indexes");
}
