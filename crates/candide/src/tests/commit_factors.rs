//! Tests that each basis factor of commits changes which transactions abort.

use super::interleaving::acting;
use super::rows::Item;
use super::threads::spawn;
use super::transactions::run;
use super::two_sessions::once;
use super::waiting::{eventually, receive};
use crate::engine::{Absence, Protocol};
use crate::experiments::Factor;
use crate::index::Found;
use crate::protocols::{Mvcc, Occ, TicToc};
use crate::sync::{Point, with_hook};
use crate::{Abort, Database, Session, Table, Tx};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc;

const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

/// Rows x, y and z, which were inserted by one transaction, and two sessions.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    first: Session<P>,
    second: Session<P>,
}

fn scene<P: Protocol>(factor: Option<Factor>) -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).factors(factor).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| items.insert_many(tx, [X, Y, Z].map(|id| Item::new(id, 0))));
    Scene { db, items, first, second }
}

fn reads<P: Protocol>(items: &Table<Item, P>, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
    items.read(tx, &id, Item::COUNT).map(drop)
}

fn adds<P: Protocol>(items: &Table<Item, P>, tx: &Tx<'_, P>, id: u64) -> Result<(), Abort> {
    items.update(tx, &id, Item::COUNT.add(1))
}

fn rts(items: &Table<Item, TicToc>, id: u64) -> u64 {
    match items.core().index.find(&[id]) {
        Found::Record(record) => TicToc::rts(&(), items.core().layout.first_of(record)),
        Found::Nothing { .. } => panic!("row {id} exists"),
    }
}

impl Scene<TicToc> {
    /// Replaces row y by `times` transactions, each a tick later than the transaction before.
    /// Returns the length of a tick.
    fn age_y(&mut self, times: u64) -> u64 {
        let before = rts(&self.items, Y);
        (0..times).for_each(|_| run(&mut self.second, |tx| adds(&self.items, tx, Y)));
        (rts(&self.items, Y) - before) / times
    }
}

/// The largest difference of rts and wts in ticks under [`Factor::CompressedTimestamps`].
const DELTA_MAX: u64 = (1 << 15) - 1;

#[test]
fn a_reader_that_extends_a_compressed_version_too_far_dooms_the_earlier_readers() {
    for (distance, factor, ends) in [
        (DELTA_MAX, None, Ok(())),
        (DELTA_MAX, Some(Factor::CompressedTimestamps), Ok(())),
        (DELTA_MAX + 1, None, Ok(())),
        (DELTA_MAX + 1, Some(Factor::CompressedTimestamps), Err(Abort::ReadChanged)),
    ] {
        let mut scene = scene::<TicToc>(factor);
        let tick = scene.age_y(distance);
        let Scene { items, mut first, mut second, .. } = scene;
        let ended = once(&mut first, |tx| {
            reads(&items, tx, X)?;
            run(&mut second, |tx| {
                reads(&items, tx, X)?;
                reads(&items, tx, Y)
            });
            reads(&items, tx, Y)
        });
        assert_eq!(ended, ends, "{distance}, {factor:?}");
        // A writer that reads x now comes after the moved wts.
        let before = rts(&items, Z);
        run(&mut first, |tx| {
            reads(&items, tx, X)?;
            adds(&items, tx, Z)
        });
        let after = if ends.is_ok() { 1 } else { DELTA_MAX + 1 };
        assert_eq!(rts(&items, Z) - before, after * tick, "{distance}, {factor:?}");
    }
}

#[test]
fn a_reader_does_not_doom_itself_by_moving_a_compressed_version() {
    let mut scene = scene::<TicToc>(Some(Factor::CompressedTimestamps));
    let distance = 3 * DELTA_MAX;
    scene.age_y(distance);
    let Scene { items, mut first, .. } = scene;
    for repeats in [1, 100] {
        let ended = once(&mut first, |tx| {
            let id = if repeats == 1 { X } else { Z };
            reads(&items, tx, id)?;
            reads(&items, tx, id)?;
            // A long transaction extends its reads before it ends.
            (0..repeats).try_for_each(|_| reads(&items, tx, Y))
        });
        assert_eq!(ended, Ok(()), "{repeats}");
    }
}

#[test]
fn a_row_is_inserted_where_its_absence_was_seen_for_longer_than_a_compressed_version_lasts() {
    let mut scene = scene::<TicToc>(Some(Factor::CompressedTimestamps));
    scene.age_y(2 * DELTA_MAX);
    let Scene { items, mut first, .. } = scene;
    let key = 4;
    run(&mut first, |tx| {
        assert_eq!(items.get(tx, &key, ())?, None);
        reads(&items, tx, Y)
    });
    let inserts = |tx: &Tx<'_, TicToc>| {
        assert_eq!(items.get(tx, &key, ())?, None);
        items.insert(tx, Item::new(key, 0))
    };
    assert_eq!(once(&mut first, inserts), Ok(()));
}

#[test]
fn a_commit_that_must_fail_aborts_preemptively_before_it_locks() {
    for (factor, another) in [
        (None, Err(Abort::Locked)), //
        (Some(Factor::PreemptiveAborts), Ok(())),
    ] {
        let Scene { db, items, mut first, mut second } = scene::<TicToc>(factor);
        // While the first has locked y, another transaction that wants y aborts.
        let (ended, commits) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
        let (meets, is_commit, rows) = (ended.clone(), commits.clone(), items.clone());
        let mut third = db.session().unwrap();
        let hook = move |point| {
            if point == Point::Locked && is_commit.take() {
                meets.set(Some(once(&mut third, |tx| adds(&rows, tx, Y))));
            }
        };
        let doomed = with_hook(hook, || {
            once(&mut first, |tx| {
                reads(&items, tx, X)?;
                run(&mut second, |tx| adds(&items, tx, X));
                adds(&items, tx, Y)?;
                commits.set(true);
                Ok(())
            })
        });
        assert_eq!(doomed, Err(Abort::ReadChanged), "{factor:?}");
        let met = ended.get().unwrap_or_else(|| once(&mut second, |tx| adds(&items, tx, Y)));
        assert_eq!(met, another, "{factor:?}");
    }
}

#[test]
fn a_commit_whose_read_is_being_replaced_aborts_preemptively() {
    for (factor, locks) in [(None, true), (Some(Factor::PreemptiveAborts), false)] {
        let Scene { items, mut first, mut second, .. } = scene::<TicToc>(factor);
        let ((begin, begun), (lock, locked)) = (mpsc::channel(), mpsc::channel());
        let (end, ended) = mpsc::channel::<()>();
        let has_locked = Rc::new(Cell::new(false));
        std::thread::scope(|scope| {
            let items = &items;
            spawn(scope, move || {
                receive("the read of x", &begun);
                let stop = move || {
                    lock.send(()).unwrap();
                    receive("the end of the reader", &ended);
                };
                acting(Point::Locked, stop, || run(&mut second, |tx| adds(items, tx, X)));
            });
            let locking = has_locked.clone();
            let hook = move |point| locking.set(locking.get() || point == Point::Locked);
            let doomed = with_hook(hook, || {
                once(&mut first, |tx| {
                    reads(items, tx, X)?;
                    begin.send(()).unwrap();
                    receive("the lock on x", &locked);
                    adds(items, tx, Y)
                })
            });
            end.send(()).unwrap();
            assert_eq!(doomed, Err(Abort::ReadChanged), "{factor:?}");
        });
        assert_eq!(has_locked.get(), locks, "{factor:?}");
    }
}

#[test]
fn a_commit_before_the_one_that_replaced_its_read_does_not_abort_preemptively() {
    let Scene { items, mut first, mut second, .. } =
        scene::<TicToc>(Some(Factor::PreemptiveAborts));
    // Row x is then later than y.
    run(&mut second, |tx| adds(&items, tx, X));
    let ended = once(&mut first, |tx| {
        reads(&items, tx, X)?;
        run(&mut second, |tx| adds(&items, tx, X));
        adds(&items, tx, Y)
    });
    assert_eq!(ended, Ok(()));
}

/// Runs a commit that finds a row locked. The lock is released when the commit sleeps for it, or
/// has ended. Returns the commit's result, and whether it slept.
fn meets_a_locked_row<P: Protocol>(scene: &mut Scene<P>) -> (Result<(), Abort>, bool) {
    let Scene { db, items, first, second } = scene;
    let ((stage, staged), (lock, locked), (end, ended)) =
        (mpsc::channel(), mpsc::channel(), mpsc::channel());
    let slept = Rc::new(Cell::new(false));
    let result = std::thread::scope(|scope| {
        let items = &*items;
        let waiter = spawn(scope, move || {
            let result = once(second, |tx| {
                adds(items, tx, X)?;
                stage.send(()).unwrap();
                receive("the lock on x", &locked);
                Ok(())
            });
            let _ = end.send(());
            result
        });
        let (sleeps, db) = (slept.clone(), db.clone());
        let stop = move || {
            lock.send(()).unwrap();
            eventually("a sleeper, or the end of the other commit", || {
                sleeps.set(sleeps.get() || db.inner.engine.parking.has_sleepers());
                sleeps.get() || ended.try_recv().is_ok()
            });
        };
        receive("the other's write", &staged);
        acting(Point::Locked, stop, || run(first, |tx| adds(items, tx, X)));
        waiter.join().unwrap()
    });
    (result, slept.get())
}

fn commit_waits_unless_the_factor_forbids_it<P: Protocol>() {
    // If the processor is busy, a sleep may end before the lock is released. So the test repeats
    // rounds.
    let mut waiting = scene::<P>(None);
    let is_served = (0..10_000).any(|_| meets_a_locked_row(&mut waiting) == (Ok(()), true));
    assert!(is_served, "{}", P::NAME);

    let mut impatient = scene::<P>(Some(Factor::NoWait));
    assert_eq!(meets_a_locked_row(&mut impatient), (Err(Abort::Locked), false), "{}", P::NAME);
}

#[test]
fn commits_do_not_wait_for_locked_rows_without_that_factor() {
    commit_waits_unless_the_factor_forbids_it::<Occ>();
    commit_waits_unless_the_factor_forbids_it::<TicToc>();
    commit_waits_unless_the_factor_forbids_it::<Mvcc>();
}

/// Returns the key of the row that a commit tries to lock first, of the rows x, y and z, which it
/// writes in the opposite order.
fn locked_first<P: Protocol>(factor: Option<Factor>, inserted: [u64; 3]) -> u64 {
    let factors = factor.into_iter().chain([Factor::NoWait]);
    let db = Database::<P>::builder().manual_epochs(1).factors(factors).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| items.insert_many(tx, inserted.map(|id| Item::new(id, 0))));
    run(&mut second, |holder| {
        for id in inserted {
            items.read_for_update(holder, id, Item::COUNT)?;
        }
        let refused = once(&mut first, |tx| {
            [Z, Y, X].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(1)))
        });
        assert_eq!(refused, Err(Abort::Locked), "{}", P::NAME);
        Ok(())
    });
    first.last_conflict().unwrap().key.unwrap()[0]
}

#[test]
fn commits_lock_in_the_order_of_keys_under_that_factor() {
    fn check<P: Protocol>() {
        for inserted in [[X, Y, Z], [Z, Y, X]] {
            let first = locked_first::<P>(Some(Factor::SortedKeys), inserted);
            assert_eq!(first, X, "{}: {inserted:?}", P::NAME);
            assert_eq!(locked_first::<P>(None, inserted), Z, "{}: {inserted:?}", P::NAME);
        }
    }
    check::<Occ>();
    check::<TicToc>();
    check::<Mvcc>();
}
