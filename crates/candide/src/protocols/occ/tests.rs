//! Tests of the views of attempts that are going to fail, under `occ`. For each step of the rule in
//! `view.rs`, an interleaving fails if that step is missing.

use crate::engine::Protocol;
use crate::protocols::{Mvcc, Occ, TicToc};
use crate::sync::{Point, with_hook};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::transactions::{CONFLICT, ONCE, run};
use crate::{Abort, Database, Session, Table, Tx};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Barrier};

/// A database with rows 0 to 3, a reader and a writer. The rows are of an earlier epoch than later
/// attempts.
struct Scene {
    db: Database<Occ>,
    items: Table<Item, Occ>,
    reader: Session<Occ>,
    writer: Session<Occ>,
}

fn scene_of(opaque: bool) -> Scene {
    let db = Database::<Occ>::builder().manual_epochs(1).opaque(opaque).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
    run(&mut writer, |tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    Scene { db, items, reader, writer }
}

fn scene() -> Scene {
    scene_of(true)
}

/// Sets the counts of rows in one transaction, with one update for each row.
fn set(session: &mut Session<Occ>, items: &Table<Item, Occ>, ids: &[u64], count: i64) {
    run(session, |tx| ids.iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(count))));
}

fn count(tx: &Tx<'_, Occ>, items: &Table<Item, Occ>, id: u64) -> Result<i64, Abort> {
    items.read(tx, &id, Item::COUNT)
}

/// Runs an attempt that must end in a conflict before its closure gets the result of `last`.
fn told_nothing<T>(
    reader: &mut Session<Occ>,
    mut before: impl FnMut(&Tx<'_, Occ>) -> Result<(), Abort>,
    mut last: impl FnMut(&Tx<'_, Occ>) -> Result<T, Abort>,
) {
    let mut told = false;
    let result = reader.with(ONCE()).run(|tx| {
        before(tx)?;
        last(tx)?;
        told = true;
        Ok(())
    });
    assert_eq!((result, told), (CONFLICT, false));
}

/// Returns a closure that reads row 0 and then lets the writer replace rows 0 and 1.
fn read_and_replaced<'a>(
    items: &'a Table<Item, Occ>,
    writer: &'a mut Session<Occ>,
) -> impl FnMut(&Tx<'_, Occ>) -> Result<(), Abort> + 'a {
    move |tx| {
        assert_eq!(count(tx, items, 0), Ok(0));
        set(writer, items, &[0, 1], 1);
        Ok(())
    }
}

#[test]
fn opacity_shows_a_closure_rows_of_one_time() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    told_nothing(&mut reader, read_and_replaced(&items, &mut writer), |tx| count(tx, &items, 1));
}

#[test]
fn without_opacity_a_closure_sees_rows_of_two_times_and_its_attempt_fails() {
    let Scene { db, items, mut reader, mut writer } = scene_of(false);
    let seen = Cell::new((0, 0));
    let result = reader.with(ONCE()).run(|tx| {
        let first = count(tx, &items, 0)?;
        set(&mut writer, &items, &[0, 1], 1);
        seen.set((first, count(tx, &items, 1)?));
        Ok(())
    });
    assert_eq!((result, seen.get()), (CONFLICT, (0, 1)));
    assert!(!db.properties().opaque && Database::new().properties().opaque);
    let versions = Database::<Mvcc>::builder().opaque(false).build().unwrap();
    assert!(versions.properties().opaque, "{} sees one moment anyway", Mvcc::NAME);
}

#[test]
fn an_absent_key_and_a_row_are_of_one_time() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let between = |tx: &Tx<'_, Occ>| {
        assert_eq!(items.get(tx, 9, Item::COUNT), Ok(None));
        run(&mut writer, |tx| {
            items.insert(tx, Item::new(9, 1))?;
            items.update(tx, 1, Item::COUNT.set(1))
        });
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| count(tx, &items, 1));
}

#[test]
fn an_accepted_update_and_a_row_are_of_one_time() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let between = |tx: &Tx<'_, Occ>| {
        items.update(tx, 0, Item::COUNT.add(1))?;
        run(&mut writer, |tx| {
            items.delete(tx, 0)?;
            items.update(tx, 1, Item::COUNT.set(1))
        });
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| count(tx, &items, 1));
    // The reverse case: the row can be updated now, but did not exist before.
    let Scene { db, items, mut reader, mut writer } = scene();
    run(&mut writer, |tx| items.delete(tx, 0));
    db.inner.engine.epochs.pass();
    let between = |tx: &Tx<'_, Occ>| {
        assert_eq!(count(tx, &items, 1), Ok(0));
        run(&mut writer, |tx| {
            items.put(tx, Item::new(0, 1))?;
            items.update(tx, 1, Item::COUNT.set(1))
        });
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| items.update(tx, 0, Item::COUNT.add(1)));
}

/// During a look, a commit deletes a row that the look has passed, and inserts again a row that the
/// look has not reached.
#[test]
fn rows_changed_and_restored_during_a_look_are_noticed() {
    let Scene { items, mut reader, mut writer, db } = scene();
    let other = RefCell::new(db.session().unwrap());
    let again = items.clone();
    let change = move || {
        run(&mut other.borrow_mut(), |tx| {
            again.put(tx, Item::new(1, 2))?;
            again.delete(tx, 0)
        });
    };
    let between = |tx: &Tx<'_, Occ>| {
        items.update(tx, 0, Item::COUNT.add(1))?;
        items.update(tx, 1, Item::COUNT.add(1))?;
        run(&mut writer, |tx| {
            items.delete(tx, 1)?;
            items.update(tx, 2, Item::COUNT.set(1))
        });
        Ok(())
    };
    acting(Point::Asked, change, || told_nothing(&mut reader, between, |tx| count(tx, &items, 2)));
}

#[test]
fn an_accepted_insert_and_a_row_are_of_one_time() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let between = |tx: &Tx<'_, Occ>| {
        items.insert(tx, Item::new(9, 5))?;
        run(&mut writer, |tx| {
            items.insert(tx, Item::new(9, 1))?;
            items.update(tx, 1, Item::COUNT.set(1))
        });
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| count(tx, &items, 1));
}

#[test]
fn a_row_held_for_update_and_one_read_before_are_of_one_time() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    told_nothing(&mut reader, read_and_replaced(&items, &mut writer), |tx| {
        items.read_for_update(tx, 1, Item::COUNT)
    });
    // After the conflict, the row is not held any more.
    set(&mut writer, &items, &[1], 2);
}

#[test]
fn own_writes_and_held_rows_cause_no_conflict() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let sums = reader.with(ONCE()).run(|tx| {
        items.update(tx, 0, Item::COUNT.add(1))?;
        items.insert(tx, Item::new(9, 5))?;
        let held = items.read_for_update(tx, 2, Item::COUNT)?;
        set(&mut writer, &items, &[1, 3], 1);
        Ok((held, count(tx, &items, 1)?, count(tx, &items, 0)?, count(tx, &items, 9)?))
    });
    assert_eq!(sums, Ok((0, 1, 1, 5)));
}

/// Runs a commit that sets the counts of rows 1 and 0 to 1, in a thread of its own. When only row 1
/// is installed, the commit waits at the first barrier and then at the second.
fn with_half_installed_commit<P: Protocol>(
    mut writer: Session<P>,
    items: &Table<Item, P>,
    barriers: [&Arc<Barrier>; 2],
) {
    let (items, [half, done]) = (items.clone(), barriers.map(Arc::clone));
    std::thread::spawn(move || {
        let mut installs = 0;
        let hook = move |point| {
            installs += u32::from(point == Point::Installing);
            if point == Point::Installing && installs == 2 {
                half.wait();
                done.wait();
            }
        };
        let both = |tx: &Tx<'_, P>| {
            [1, 0].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(1)))
        };
        with_hook(hook, || run(&mut writer, both));
    });
}

#[test]
fn a_half_installed_commit_is_noticed() {
    let Scene { items, mut reader, writer, .. } = scene();
    let (half, done) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let writer = RefCell::new(Some(writer));
    let between = |tx: &Tx<'_, Occ>| {
        assert_eq!(count(tx, &items, 0), Ok(0));
        with_half_installed_commit(writer.take().expect("once"), &items, [&half, &done]);
        half.wait();
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| count(tx, &items, 1));
    done.wait();
}

/// Asserts that validation notices another session's commit in progress on a row that the attempt
/// has also staged. The database is not opaque.
fn validation_notices_a_half_installed_commit<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).opaque(false).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
    run(&mut writer, |tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    let (half, done) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (writer, seen) = (RefCell::new(Some(writer)), Cell::new(None));
    let result = reader.with(ONCE()).run(|tx| {
        let first = items.read(tx, 0, Item::COUNT)?;
        items.update(tx, 0, Item::COUNT.add(1))?;
        with_half_installed_commit(writer.take().expect("once"), &items, [&half, &done]);
        half.wait();
        seen.set(Some((first, items.read(tx, 1, Item::COUNT))));
        tx.validate()
    });
    done.wait();
    assert_eq!((result, seen.get()), (CONFLICT, Some((0, Ok(1)))), "{}", P::NAME);
}

#[test]
fn validation_of_written_rows_notices_a_half_installed_commit() {
    validation_notices_a_half_installed_commit::<Occ>();
    validation_notices_a_half_installed_commit::<TicToc>();
}

#[test]
fn transactions_of_one_thread_alone_never_conflict() {
    const ROWS: u64 = 200;
    let db = Database::new();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (0..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    for round in 1..=200 {
        run(&mut session, |tx| {
            (0..ROWS).try_for_each(|id| items.update(tx, &id, Item::COUNT.set(round)))
        });
        run(&mut session, |tx| (0..ROWS).try_for_each(|id| count(tx, &items, id).map(drop)));
    }
}

/// The reader has read the cell that makes its view move. Then another commit changes this cell and
/// a third row. The commit's epoch has ended before the reader loads the epoch.
#[test]
fn moving_the_view_checks_its_cell_again() {
    let Scene { db, items, mut reader, mut writer } = scene();
    set(&mut writer, &items, &[1], 1);
    let (again, writer) = (items.clone(), RefCell::new(writer));
    let change = move || {
        set(&mut writer.borrow_mut(), &again, &[1, 2], 2);
        db.inner.engine.epochs.pass();
    };
    let see = |tx: &Tx<'_, Occ>| {
        let counts = (count(tx, &items, 0)?, count(tx, &items, 1)?, count(tx, &items, 2)?);
        Ok::<_, Abort>(counts)
    };
    let seen = acting(Point::Moving, change, || {
        let seen = Cell::new(None);
        let result = reader.with(ONCE()).run(|tx| {
            seen.set(Some(see(tx)?));
            Ok(())
        });
        (result, seen.get())
    });
    assert_eq!(seen, (Ok(()), Some((0, 2, 2))), "the cell is read again");
}

/// Between the look and the end of the view's move, another commit changes a third row and a row
/// that has been read. Then the commit's epoch ends.
#[test]
fn the_epoch_of_a_look_is_read_before_its_cells() {
    let Scene { db, items, mut reader, mut writer } = scene();
    set(&mut writer, &items, &[1], 1);
    let (again, writer) = (items.clone(), RefCell::new(writer));
    let change = move || {
        set(&mut writer.borrow_mut(), &again, &[0, 2], 2);
        db.inner.engine.epochs.pass();
    };
    let seen = acting(Point::Looked, change, || {
        let seen = Cell::new(None);
        let result = reader.with(ONCE()).run(|tx| {
            seen.set(Some([count(tx, &items, 0)?, count(tx, &items, 1)?, 0]));
            let third = count(tx, &items, 2)?;
            seen.set(seen.get().map(|[first, second, _]| [first, second, third]));
            Ok(())
        });
        (result, seen.get())
    });
    assert_eq!(seen, (CONFLICT, Some([0, 1, 0])), "the third row is not returned");
}

#[test]
fn the_number_of_looks_for_rows_of_one_epoch_is_bounded() {
    const ROWS: u64 = 2_000;
    let Scene { db, items, mut reader, mut writer } = scene();
    run(&mut writer, |tx| (4..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    let looks = Rc::new(Cell::new(0));
    let counting = looks.clone();
    let sum = with_hook(
        move |point| counting.set(counting.get() + u32::from(point == Point::Looked)),
        || {
            run(&mut reader, |tx| {
                (0..ROWS).map(|id| count(tx, &items, id)).sum::<Result<i64, Abort>>()
            })
        },
    );
    assert_eq!(sum, 0);
    // The looks at rows 4 to 15 examine 126 observations. At the next one there is a tick.
    assert_eq!(looks.get(), 13);
    assert_eq!(db.health().epochs_asked, 1);
}

/// Runs transactions, and returns the number of looks of their views.
fn looks_of(run: impl FnOnce()) -> u32 {
    let looks = Rc::new(Cell::new(0));
    let counting = looks.clone();
    with_hook(move |point| counting.set(counting.get() + u32::from(point == Point::Looked)), run);
    looks.get()
}

#[test]
fn a_version_that_the_session_has_met_needs_no_look() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let own = looks_of(|| {
        set(&mut reader, &items, &[0, 1], 1);
        run(&mut reader, |tx| items.delete(tx, 2));
        run(&mut reader, |tx| {
            items.update(tx, 0, Item::COUNT.add(1))?;
            assert_eq!((count(tx, &items, 0), count(tx, &items, 1)), (Ok(2), Ok(1)));
            assert_eq!(items.get(tx, 2, Item::COUNT), Ok(None));
            Ok(())
        });
    });
    assert_eq!(own, 0, "the session has installed them");
    set(&mut writer, &items, &[1, 3], 5);
    let others = [(); 2].map(|()| {
        looks_of(|| {
            run(&mut reader, |tx| {
                assert_eq!((count(tx, &items, 1), count(tx, &items, 3)), (Ok(5), Ok(5)));
                items.update(tx, 1, Item::COUNT.add(0))
            });
        })
    });
    assert_eq!(others, [1, 0], "each row but the first is looked at once, on its first read");
}

#[test]
fn a_version_that_was_met_in_one_row_is_not_met_in_another() {
    let Scene { db, items, mut reader, mut writer } = scene();
    let mut other = db.session().unwrap();
    // The versions of this commit and of the next one are equal: both are the first of the epoch.
    set(&mut writer, &items, &[0], 1);
    let between = |tx: &Tx<'_, Occ>| {
        assert_eq!((count(tx, &items, 0), count(tx, &items, 1)), (Ok(1), Ok(0)));
        set(&mut other, &items, &[1, 2], 1);
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| count(tx, &items, 2));
}

#[test]
fn a_version_that_a_row_never_had_is_not_met() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    set(&mut reader, &items, &[3], 1);
    // This transaction has the second version of the epoch. Row 9 never gets this version, since
    // the row is absent before and after.
    run(&mut reader, |tx| {
        items.insert(tx, Item::new(9, 1))?;
        items.delete(tx, 9)
    });
    let between = |tx: &Tx<'_, Occ>| {
        assert_eq!(count(tx, &items, 1), Ok(0));
        run(&mut writer, |tx| items.insert(tx, Item::new(9, 2)));
        run(&mut writer, |tx| {
            items.delete(tx, 9)?;
            items.update(tx, 1, Item::COUNT.set(1))
        });
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| items.get(tx, 9, Item::COUNT));
}

#[test]
fn explicit_validation_tells_whether_all_reads_are_current() {
    let Scene { items, mut reader, mut writer, .. } = scene();
    let between = |tx: &Tx<'_, Occ>| {
        count(tx, &items, 0)?;
        items.update(tx, 2, Item::COUNT.add(1))?;
        assert_eq!(tx.validate(), Ok(()));
        set(&mut writer, &items, &[0], 1);
        Ok(())
    };
    told_nothing(&mut reader, between, |tx| tx.validate());
    let deleted = |tx: &Tx<'_, Occ>| {
        items.update(tx, 2, Item::COUNT.add(1))?;
        run(&mut writer, |tx| items.delete(tx, 2));
        Ok(())
    };
    told_nothing(&mut reader, deleted, |tx| tx.validate());
}
