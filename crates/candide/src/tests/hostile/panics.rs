//! Tests of panics between the operations of a transaction, and of panics in the user code that
//! operations call.

use super::{Between, Deliberate, Scene, Watchdog, deliberate, demand_panic};
use crate::engine::{Protocol, Versions};
use crate::report::Conflict;
use crate::schema::{Refused, Updater};
use crate::sync::size::{Sample, is_short, share};
use crate::tests::indexed_rows::{Filed, Parcel};
use crate::tests::properties;
use crate::{Abort, Column, Database, RunOptions, Tx, Whole};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// An updater that panics.
#[derive(Debug, Clone, Copy)]
struct Boom;

impl Updater<Parcel> for Boom {
    type Target = Column<Parcel, i16>;

    fn target(&self) -> Self::Target {
        Parcel::COUNT
    }

    fn apply(&self, _: &mut i16) -> Result<(), Refused> {
        deliberate()
    }
}

/// A value that panics when it is dropped.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        deliberate()
    }
}

/// The key of a row that no script uses.
const BYSTANDER: (u8, u16) = (1, 9);

/// An action between two operations that makes `run` end in a panic.
type Attack<P> = fn(&Scene<P>, &Tx<'_, P>) -> Result<(), Abort>;

fn attacks<P: Protocol>() -> [(&'static str, Attack<P>); 14] {
    [
        ("a panic", |_, _| deliberate()),
        ("a panic after a scan was forgotten", |scene, tx| {
            let mut scan = scene.parcels.scan(tx, .., Whole);
            scan.next().transpose()?;
            std::mem::forget(scan);
            deliberate()
        }),
        ("an updater that panics at commit", |scene, tx| {
            scene.parcels.update_with(tx, &BYSTANDER, Boom)
        }),
        ("an updater that panics when its effect is read", |scene, tx| {
            scene.parcels.update_with(tx, &BYSTANDER, Boom)?;
            scene.parcels.read(tx, &BYSTANDER, Parcel::COUNT).map(drop)
        }),
        ("an updater whose panic at a read the closure has caught", |scene, tx| {
            scene.parcels.update_with(tx, &BYSTANDER, Boom)?;
            let read = catch_unwind(AssertUnwindSafe(|| {
                scene.parcels.read(tx, &BYSTANDER, Parcel::COUNT)
            }));
            // A protocol that applies updates at once raises the panic only at the end of the
            // transaction.
            assert!(matches!(read, Err(_) | Ok(Err(Abort::Guard))));
            Ok(())
        }),
        ("the closure of a modify", |scene, tx| {
            scene.filed.modify(tx, &BYSTANDER, (Filed::CODE, Filed::NOTE), |_| deliberate())
        }),
        ("an iterator given to insert_many", |scene, tx| {
            let rows = (60..)
                .map(|number| if number < 63 { Parcel::new(1, number) } else { deliberate() });
            scene.parcels.insert_many(tx, rows)
        }),
        ("an iterator that uses the transaction before it panics", |scene, tx| {
            let rows = (60..).map(|number| {
                scene
                    .parcels
                    .delete_if_present(tx, &(1, 9))
                    .expect("no other transaction is in the way");
                scene
                    .filed
                    .insert(tx, Parcel::new(1, number).into())
                    .expect("no other transaction is in the way");
                if number < 62 { Filed::from(Parcel::new(1, number + 500)) } else { deliberate() }
            });
            scene.filed.insert_many(tx, rows)
        }),
        ("a closure within a scan", |scene, tx| {
            scene
                .parcels
                .scan_rev(tx, .., Whole)
                .skip(3)
                .try_for_each(|row| row.map(|_| deliberate()))
        }),
        ("a second panic after one that the closure has caught", |scene, tx| {
            let modify = || scene.parcels.modify(tx, &BYSTANDER, Parcel::CODE, |_| deliberate());
            assert!(catch_unwind(AssertUnwindSafe(modify)).is_err());
            scene.parcels.update(tx, &BYSTANDER, Parcel::WEIGHT.add(1))?;
            deliberate()
        }),
        ("a transaction of another database", |scene, tx| {
            scene.parcels.delete(tx, &BYSTANDER)?;
            let other = Database::<P>::builder().build().unwrap();
            let table = other.table::<Parcel>("parcels").unwrap();
            other.run(|tx| -> Result<(), Abort> {
                table.insert(tx, Parcel::new(1, 1))?;
                deliberate()
            })
        }),
        ("the drop of an effect that is not wanted", |_, tx| {
            let bomb = Bomb;
            tx.on_commit(move || drop(bomb));
            Err(Abort::NotFound)
        }),
        ("the drop of an effect that is not wanted, after the panic of an updater", |scene, tx| {
            let bomb = Bomb;
            tx.on_commit(move || drop(bomb));
            scene.parcels.update_with(tx, &BYSTANDER, Boom)
        }),
        ("the drop of an effect that is not wanted, after a panic", |_, tx| {
            let bomb = Bomb;
            tx.on_commit(move || drop(bomb));
            deliberate()
        }),
    ]
}

/// Returns an action that runs `what` only at place `number` between the operations of the script,
/// counted from zero. `passed` counts the places that have been passed.
fn at<'a, P: Protocol>(
    number: usize,
    passed: &'a Cell<usize>,
    what: impl Fn(&Tx<'_, P>) -> Result<(), Abort> + 'a,
) -> impl Fn(&Tx<'_, P>) -> Result<(), Abort> + 'a {
    move |tx| {
        let now = passed.replace(passed.get() + 1);
        if now == number { what(tx) } else { Ok(()) }
    }
}

/// Returns the number of places between the operations of the script.
fn places<P: Protocol>() -> usize {
    let (scene, passed) = (Scene::<P>::new(), Cell::new(0));
    let count: Between<'_, P> = &at(usize::MAX, &passed, |_| Ok(()));
    let committed = scene.db.run(|tx| {
        passed.set(0);
        scene.script(tx, count)
    });
    assert_eq!(committed, Ok(()));
    scene.assert_unharmed(&scene.rows(), "the script alone");
    passed.get()
}

protocol_tests!(all: a_panic_at_any_place_of_a_transaction_undoes_it);
fn a_panic_at_any_place_of_a_transaction_undoes_it<P: Protocol>() {
    let watchdog = Watchdog::new();
    let (scene, places) = (Scene::<P>::new(), places::<P>());
    assert!(places > 20);
    let (rows, mut sample) = (scene.rows(), Sample::one_in(4));
    for (attack, strike) in attacks::<P>() {
        for number in (0..places).filter(|_| sample.has_next()) {
            let step = format!("{attack}, before operation {number}, under {}", P::NAME);
            watchdog.step(step.as_str());
            let passed = Cell::new(0);
            let between = at(number, &passed, |tx| strike(&scene, tx));
            let mut session = scene.db.session().unwrap();
            demand_panic(&step, || {
                session.run(|tx| {
                    passed.set(0);
                    scene.script(tx, &between)
                })
            });
            // The session works like a new one, too.
            let stopped = session.run(|tx| scene.script(tx, &|_| Ok(())).and(Err(Abort::NotFound)));
            assert_eq!(stopped, Err::<(), _>(Abort::NotFound), "after {step}");
            drop(session);
            scene.assert_unharmed(&rows, &step);
        }
    }
    assert_eq!(scene.db.run(|tx| scene.script(tx, &|_| Ok(()))), Ok(()));
    let after = scene.rows();
    assert_ne!(after, rows);
    scene.assert_unharmed(&after, "the script");
}

protocol_tests!(all: the_panic_of_an_updater_takes_precedence_over_an_error);
fn the_panic_of_an_updater_takes_precedence_over_an_error<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let rows = scene.rows();
    let refused = || Parcel::WEIGHT.sub(1_000).at_least(0);
    let ends: [(&str, Attack<P>); 3] = [
        ("an error of the closure's own", |_, _| Err(Abort::NotFound)),
        ("what a read says", |scene, tx| {
            scene.parcels.read(tx, &BYSTANDER, Parcel::COUNT).map(drop)
        }),
        ("a scan", |scene, tx| scene.parcels.scan(tx, .., Whole).for_each(drop)),
    ];
    for (what, end) in ends {
        demand_panic(what, || {
            scene.db.run(|tx| {
                scene.parcels.update_with(tx, &BYSTANDER, Boom)?;
                scene.parcels.update(tx, &(1, 10), refused())?;
                end(&scene, tx)
            })
        });
        scene.assert_unharmed(&rows, what);
    }
}

protocol_tests!(overlapping: a_panic_of_a_doomed_attempt_is_never_seen);
fn a_panic_of_a_doomed_attempt_is_never_seen<P: Protocol>() {
    let watchdog = Watchdog::new();
    let (scene, places) = (Scene::<P>::new(), places::<P>());
    let other = RefCell::new(scene.db.session().unwrap());
    for number in 0..places {
        let step =
            format!("a panic of a doomed attempt, before operation {number}, under {}", P::NAME);
        watchdog.step(step.as_str());
        let (passed, attempts, has_changed) = (Cell::new(0), Cell::new(0), Cell::new(false));
        // The notes of two rows are always equal. But this attempt reads one note before both
        // change, and the other after. Garbage collection may make the read conflict
        // earlier. Then the change is made at the next place.
        let between = |tx: &Tx<'_, P>| {
            if passed.replace(passed.get() + 1) < number || has_changed.get() {
                return Ok(());
            }
            let before = scene.parcels.read(tx, &(1, 11), Parcel::NOTE)?;
            let changed = other.borrow_mut().run(|tx| {
                scene.parcels.update(tx, &(1, 11), Parcel::NOTE.add(1))?;
                scene.parcels.update(tx, &BYSTANDER, Parcel::NOTE.add(1))
            });
            assert_eq!(changed, Ok(()));
            has_changed.set(true);
            if scene.parcels.read(tx, &BYSTANDER, Parcel::NOTE)? == before {
                Ok(())
            } else {
                deliberate()
            }
        };
        let mut session = scene.db.session().unwrap();
        let stopped = session.run(|tx| {
            attempts.set(tx.attempt_number());
            scene.script(tx, &between).and(Err(Abort::NotFound))
        });
        assert_eq!(stopped, Err::<(), _>(Abort::NotFound), "{step}");
        // Protocols with versions read both notes as they were before the change.
        assert!(attempts.get() > 1 || P::Versions::WORDS > 0, "{step}");
        scene.assert_unharmed(&scene.rows(), &step);
    }
    let note = scene.db.run(|tx| scene.parcels.read(tx, &(1, 11), Parcel::NOTE));
    assert_eq!(note, Ok(places as u64));
}

protocol_tests!(all: a_panic_that_the_closure_catches_undoes_no_earlier_operation);
fn a_panic_that_the_closure_catches_undoes_no_earlier_operation<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let mut rows = scene.rows();
    // If a closure itself catches a panic, the operations before the panic keep their effect and
    // commit.
    let committed = scene.db.run(|tx| {
        scene.parcels.update(tx, &BYSTANDER, Parcel::COUNT.add(5))?;
        let fall = |body: &dyn Fn() -> Result<(), Abort>| {
            assert!(catch_unwind(AssertUnwindSafe(body)).is_err())
        };
        fall(&|| {
            scene.parcels.modify(tx, &BYSTANDER, (Parcel::NOTE, Parcel::CODE), |_| deliberate())
        });
        let rekey = |(note, number): &mut (_, _)| (*note, *number) = (99, 99);
        fall(&|| scene.parcels.modify(tx, &BYSTANDER, (Parcel::NOTE, Parcel::NUMBER), rekey));
        fall(&|| {
            let rows = (60..)
                .map(|number| if number < 62 { Parcel::new(1, number) } else { deliberate() });
            scene.parcels.insert_many(tx, rows)
        });
        fall(&|| scene.parcels.scan(tx, .., Whole).for_each(|_| deliberate()));
        scene.parcels.delete(tx, &(1, 61))?;
        scene.parcels.modify(tx, &(1, 60), Parcel::WEIGHT, |weight| *weight = 0)
    });
    assert_eq!(committed, Ok(()));
    rows.0
        .iter_mut()
        .find(|row| (row.district, row.number) == BYSTANDER)
        .expect("it is there")
        .count += 5;
    rows.0.push(Parcel { weight: 0, ..Parcel::new(1, 60) });
    scene.assert_unharmed(&rows, "caught panics");
}

protocol_tests!(all: an_effect_that_panics_undoes_no_commit);
fn an_effect_that_panics_undoes_no_commit<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    for kind in 0..2 {
        watchdog.step(format!("an effect that panics, {kind}"));
        let ran = Rc::new(Cell::new(0));
        let mut rows = scene.rows();
        demand_panic("an effect", || {
            scene.db.run(|tx| {
                scene.parcels.update(tx, &BYSTANDER, Parcel::NOTE.add(1))?;
                let (before, after) = (ran.clone(), ran.clone());
                tx.on_commit(move || before.set(before.get() + 1));
                if kind == 0 {
                    tx.on_commit(|| deliberate());
                } else {
                    let bomb = Bomb;
                    tx.on_commit(move || drop(bomb));
                }
                tx.on_commit(move || after.set(after.get() + 10));
                Ok(())
            })
        });
        // The transaction had committed before the panic. The effect registered later was dropped
        // without running.
        assert_eq!((ran.get(), Rc::strong_count(&ran)), (1, 1));
        rows.0
            .iter_mut()
            .find(|row| (row.district, row.number) == BYSTANDER)
            .expect("it is there")
            .note += 1;
        scene.assert_unharmed(&rows, "a panicking effect");
    }
}

protocol_tests!(overlapping: a_panic_in_the_callback_of_a_conflict_leaves_the_database_usable);
fn a_panic_in_the_callback_of_a_conflict_leaves_the_database_usable<P: Protocol>() {
    let watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let mut rows = scene.rows();
    let (mut session, mut other) = (scene.db.session().unwrap(), scene.db.session().unwrap());
    // After 33 conflicts the session has the token. Under policies that lock, each of the other
    // transactions first waits for the session's lock, and the short run leaves the many out.
    let locks = properties::<P>().name != P::NAME;
    let fatals: &[u64] = if is_short() && locks { &[1] } else { &[1, 33] };
    for &fatal in fatals {
        watchdog.step(format!("conflict {fatal}"));
        let told = Cell::new(0);
        let tell = |_: &Conflict| {
            told.set(told.get() + 1);
            if told.get() == fatal {
                deliberate();
            }
        };
        demand_panic("a report", || {
            session.with(RunOptions::new().on_conflict(&tell)).run(|tx| {
                let note = scene.parcels.read(tx, &BYSTANDER, Parcel::NOTE)?;
                // The other transaction runs on another thread. On this thread it might wait for
                // the transaction that encloses it.
                let parcels = &scene.parcels;
                let mut add =
                    || other.run(|tx| parcels.update(tx, &BYSTANDER, Parcel::NOTE.add(1)));
                std::thread::scope(|scope| {
                    scope.spawn(&mut add).join().expect("it does not panic")
                })?;
                scene.parcels.update(tx, &BYSTANDER, Parcel::NOTE.set(note + 10))
            })
        });
        assert_eq!(told.get(), fatal);
        let bystander = rows.0.iter_mut().find(|row| (row.district, row.number) == BYSTANDER);
        bystander.expect("it is there").note += fatal;
        scene.assert_unharmed(&rows, "a panicking report");
    }
}

protocol_tests!(overlapping: a_result_that_panics_when_dropped_leaves_the_database_usable);
fn a_result_that_panics_when_dropped_leaves_the_database_usable<P: Protocol>() {
    let _watchdog = Watchdog::new();
    let scene = Scene::<P>::new();
    let mut rows = scene.rows();
    let mut other = scene.db.session().unwrap();
    // The result of a failed attempt is dropped when the attempt has ended.
    demand_panic("the drop of a result", || {
        scene.db.run(|tx| {
            let note = scene.parcels.read(tx, &BYSTANDER, Parcel::NOTE)?;
            if tx.attempt_number() > 1 {
                return Ok(None);
            }
            scene.parcels.update(tx, &BYSTANDER, Parcel::NOTE.set(note + 10))?;
            other.run(|tx| scene.parcels.update(tx, &BYSTANDER, Parcel::NOTE.add(1)))?;
            Ok(Some(Bomb))
        })
    });
    drop(other);
    rows.0
        .iter_mut()
        .find(|row| (row.district, row.number) == BYSTANDER)
        .expect("it is there")
        .note += 1;
    scene.assert_unharmed(&rows, "a dropped result");
}

protocol_tests!(all: a_load_that_panics_keeps_its_committed_rows);
fn a_load_that_panics_keeps_its_committed_rows<P: Protocol>() {
    let watchdog = Watchdog::new();
    for workers in [1, 2] {
        watchdog.step(format!("a load by {workers}"));
        let scene = Scene::<P>::new();
        let rows = (0..).map(|number| {
            let row = Parcel { weight: 0, ..Parcel::new(7, number) };
            if number < share(3_000) { row } else { deliberate() }
        });
        let workers = std::num::NonZeroUsize::new(workers).expect("not zero");
        demand_panic("a load", || {
            scene.parcels.load(rows, crate::LoadOptions::new().workers(workers))
        });
        // The pieces of the load that were committed before the panic stay.
        scene.assert_unharmed(&scene.rows(), "a load");
        let panicking = |_: usize| deliberate();
        let rows = (0..).map(|number| Filed::from(Parcel { weight: 0, ..Parcel::new(8, number) }));
        let rows = rows.take(share(3_000));
        let options = crate::LoadOptions::new().workers(workers).progress(&panicking);
        demand_panic("a load's progress", || scene.filed.load(rows, options));
        scene.assert_unharmed(&scene.rows(), "a load's progress");
    }
}

#[test]
fn deliberate_panics_are_distinguished_from_failed_assertions() {
    let caught = catch_unwind(|| demand_panic("nothing", || 1));
    assert!(
        caught
            .expect_err("nothing panicked")
            .downcast_ref::<String>()
            .is_some_and(|text| text.contains("nothing"))
    );
    assert!(catch_unwind(|| deliberate()).expect_err("it panics").is::<Deliberate>());
}
