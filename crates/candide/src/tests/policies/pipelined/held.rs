//! A thread that is held in a pipeline, beside the log: what becomes durable meanwhile, and what a
//! crash leaves then.

use super::*;
use crate::log::Round;
use crate::tests::log::{Logged, Replay};

/// Makes a database with durable rows 0..8.
fn logged() -> (Logged<Occ>, Scene) {
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined).timestamp_splitting(false);
    let logged = Logged::new(builder.manual_epochs(1));
    let table = logged.db.table::<Item>("rows").unwrap();
    logged.db.run(|tx| (0..8).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    logged.settle();
    let scene = Scene { db: logged.db.clone(), table };
    (logged, scene)
}

/// Changes rows 0 and 1.
fn both(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.update(tx, 0, Item::COUNT.add(1))?;
    table.update(tx, 1, Item::COUNT.add(1))
}

/// Another commit becomes durable while the thread is held outside of its turn to log. If the
/// process is killed then, that commit is there, and neither the held one nor its successor.
#[test]
fn a_thread_held_outside_of_its_turn_delays_no_durable_commit() {
    use Point::{Evaluated, Executed, InOrder, Locked, Relaxed};
    for point in [Locked, Relaxed, Evaluated, Executed, InOrder] {
        let (logged, scene) = logged();
        let loaded = Replay::of(&logged).rows;
        std::thread::scope(|scope| {
            let held = spawn(scope, &scene, point, both).reached();
            let successor = spawn_free(scope, &scene, add(0, 10));
            eventually("the successor waits", || scene.asleep_beside(&[]) == 1);
            let mut session = scene.db.session().unwrap();
            let update = |tx: &Tx<'_, Occ>| scene.table.update(tx, 2, Item::COUNT.add(5));
            assert_eq!(session.with(ONCE()).run(update), Ok(()), "{point:?}");
            scene.db.inner.engine.epochs.pass();
            assert_eq!(logged.round(), Round::Written, "{point:?}");
            assert!(logged.durable() >= session.rests_on(), "{point:?}");
            let left = Replay::of(&logged).rows;
            let changed = left.iter().filter(|(key, words)| loaded[*key] != **words);
            let changed: Vec<_> = changed.map(|((_, key), _)| key[0]).collect();
            assert_eq!((left.len(), changed), (8, vec![2]), "{point:?}");
            assert!(!successor.is_finished(), "{point:?}");
            assert_eq!(held.finish(), (Ok(()), 0), "{point:?}");
            assert_eq!(successor.finish(), (Ok(()), 0), "{point:?}");
        });
        logged.settle();
        Replay::of(&logged).assert_is(&logged);
        let counts = [0, 1, 2].map(|key| count(&scene, key));
        assert_eq!(counts, [Some(11), Some(1), Some(5)], "{point:?}");
    }
}

/// The thread has its turn, so the log waits. If the process is killed then, nothing is there that
/// was not durable before; if the thread goes on, nothing is lost.
#[test]
fn a_thread_held_in_its_turn_loses_nothing() {
    let (logged, scene) = logged();
    let loaded = Replay::of(&logged).rows;
    std::thread::scope(|scope| {
        let held = spawn(scope, &scene, Point::Closing, both).reached();
        assert!(!logged.log.is_free(), "the thread has no turn");
        assert_eq!(Replay::of(&logged).rows, loaded);
        assert_eq!(held.finish(), (Ok(()), 0));
    });
    logged.settle();
    let left = Replay::of(&logged);
    left.assert_is(&logged);
    assert_ne!(left.rows, loaded);
    assert_eq!([0, 1].map(|key| count(&scene, key)), [Some(1), Some(1)]);
}

/// [`Database::health`] tells the session of a thread that is held, and for how long it has been.
#[test]
fn health_tells_the_age_of_a_held_pipeline() {
    let scene = pipelined();
    let session = scene.db.session().unwrap();
    std::thread::scope(|scope| {
        let held = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let is_old = || {
            scene.db.inner.engine.epochs.pass();
            let pin = scene.db.health().oldest_pin.expect("the held thread is pinned");
            assert_ne!(pin.session, session.number());
            pin.age_ms >= 5
        };
        eventually("the pin is old", is_old);
        assert_eq!(held.finish(), (Ok(()), 0));
    });
    assert!(scene.db.health().oldest_pin.is_none());
}
