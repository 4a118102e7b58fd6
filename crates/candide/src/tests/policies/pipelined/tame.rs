//! What tame transactions do beside chains: no wait and no conflict that the commit can do without.

use super::*;
use crate::locks::{CallWish, Lock};
use crate::sync::with_patience;
use crate::tests::rows::OfCount;
use crate::tests::waiting::eventually;

/// A row is deleted in a chain. Whether it is there is known only when the chain goes on.
#[test]
fn a_validation_does_not_judge_rows_in_chains() {
    let scene = pipelined();
    std::thread::scope(|scope| {
        let mut session = scene.db.session().unwrap();
        let mut deleter = None;
        let mut validated = Vec::new();
        let update = |tx: &Tx<'_, Occ>| {
            scene.table.update(tx, 0, Item::COUNT.add(1))?;
            if tx.attempt_number() == 1 {
                let delete = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.delete(tx, 0);
                let stopped = spawn(scope, &scene, Point::Executed, delete).reached();
                validated.push(tx.validate());
                deleter = Some(stopped);
            }
            if let Some(stopped) = deleter.take() {
                assert_eq!(stopped.finish().0, Ok(()));
            }
            Ok(())
        };
        assert_eq!(session.run(update), Err(Abort::NotFound));
        assert_eq!(validated, [Ok(())]);
    });
    assert_free(&scene.table, "after the delete");
}

/// A put of a row that was deleted waits until no commit has its record locked, and ends the chain.
#[test]
fn an_insert_of_a_deleted_row_wants_the_chain_to_end() {
    let scene = pipelined();
    scene.db.run(|tx| scene.table.delete(tx, 0)).unwrap();
    let at = cell(&scene.table, 0);
    std::thread::scope(|scope| {
        let insert = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| table.insert(tx, Item::new(0, 3));
        let first = spawn(scope, &scene, Point::Locked, insert);
        // The first insert is staged while no session has the record locked; the flag that it has
        // set is taken back.
        let first = first.reached();
        at.cell_word(0).fetch_and(!Tid::REQUEUE, Ordering::Relaxed);
        let second = scope.spawn(|| {
            let mut session = scene.db.session().unwrap();
            with_patience(|| session.run(|tx| scene.table.put(tx, Item::new(0, 5))))
        });
        eventually("the second one sleeps", || scene.sleeps_at(at.address()));
        assert!(Lock::of(&at).word().is_wanted(), "the chain has to end");
        assert_eq!(first.finish(), (Ok(()), 0));
        assert_eq!(second.join().unwrap(), Ok(()));
    });
    assert_eq!(count(&scene, 0), Some(5));
    assert_free(&scene.table, "after both");
}

#[test]
fn a_wish_for_the_end_of_a_chain_ends_in_a_panic() {
    let scene = pipelined();
    let at = cell(&scene.table, 0);
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let wish = CallWish::of(&scene.db.inner.engine.common, at);
            wish.express();
            assert!(Lock::of(&at).word().is_wanted());
            std::panic::resume_unwind(Box::new(7_u8));
        }));
        assert!(panicked.is_err());
        assert!(!Lock::of(&at).word().is_wanted());
        assert_eq!(first.finish(), (Ok(()), 0));
    });
    assert_free(&scene.table, "after the panic");
}

/// A closure that returns an error runs no step, so the row of a step is not looked at. That of an
/// updater is.
#[test]
fn an_error_of_the_closure_does_not_wait_for_the_row_of_a_step() {
    let scene = super::frozen::frozen();
    std::thread::scope(|scope| {
        let first = spawn(scope, &scene, Point::Executed, add(0, 1)).reached();
        let mut session = scene.db.session().unwrap();
        let with_step = session.with(ONCE()).try_run(|tx| {
            scene.table.defer(tx, 0, Item::COUNT, (), |count, ()| *count += 1)?;
            Err::<(), Abort>(Abort::NoIndex)
        });
        assert_eq!(with_step, Err(Abort::NoIndex));
        let with_updater = session.with(ONCE()).try_run(|tx| {
            scene.table.update_with(
                tx,
                0,
                OfCount(|count: &mut i64| {
                    *count += 1;
                    Ok(())
                }),
            )?;
            Err::<(), Abort>(Abort::NoIndex)
        });
        assert_eq!(with_updater, Err(Abort::AttemptsExhausted));
        assert_eq!(first.finish(), (Ok(()), 0));
    });
    assert_free(&scene.table, "after the error");
}
