//! What a transaction may tell of rows that it has not observed.

use super::frozen::split;
use super::*;
use crate::locks::note_frozen;

#[test]
fn the_rows_of_a_permanent_table_go_with_the_table() {
    let left = |options: TableOptions| {
        let scene = split(options);
        scene.db.drop_table("rows").unwrap();
        let core = scene.table.core();
        let mut left = 0;
        core.index.for_each(&mut |record| {
            let first = core.layout.first_of(record);
            let tid = Tid(first.cell_word(0).load(Ordering::Relaxed));
            left += u32::from(!tid.has(Tid::ABSENT));
        });
        left
    };
    assert_eq!(left(TableOptions::default()), 0);
    assert_eq!(left(TableOptions::default().permanent()), 0);
}

/// As in a table from the files, which gets its restrictions when the program names it: it may have
/// records of rows that were deleted before. (Here `restrict` is done by hand.)
#[test]
fn a_row_that_is_inserted_again_is_not_read_before_its_commit_has_a_version() {
    let scene = split(TableOptions::default());
    scene.db.run(|tx| scene.table.delete(tx, 7)).unwrap();
    let core = scene.table.core();
    core.make_permanent();
    core.set_frozen(0b10);
    let locks = scene.db.inner.catalog.locks().unwrap();
    let units = core.layout.frozen_units(0b10, core.groups.len());
    locks.policies.freeze(core.number, units);
    core.index.for_each(&mut |record| {
        let cells = core.layout.cells(record);
        cells.filter(|at| locks.policies.is_frozen(*at)).for_each(note_frozen);
    });
    std::thread::scope(|scope| {
        let mut session = scene.db.session().unwrap();
        let mut inserter = None;
        let seen = session.with(ONCE()).run(|tx| {
            let x = scene.table.read(tx, 0, Item::COUNT)?;
            let insert = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
                table.update(tx, 0, Item::COUNT.set(1))?;
                table.insert(tx, Item::new(7, 1))
            };
            inserter = Some(spawn(scope, &scene, Point::Executed, insert).reached());
            let row = scene.table.get(tx, 7, Item::OTHER)?;
            Ok((x, row))
        });
        assert_eq!(inserter.unwrap().finish(), (Ok(()), 0));
        assert_ne!(seen, Ok((0, Some(100))), "the row was inserted together with a change of x");
    });
}

/// Row 0 exists if and only if the count of row 1 is one.
#[test]
fn what_a_closure_learns_from_its_own_update_goes_with_what_it_reads() {
    let scene = pipelined();
    scene.db.run(|tx| scene.table.update(tx, 1, Item::COUNT.set(1))).unwrap();
    std::thread::scope(|scope| {
        let delete = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            table.delete(tx, 0)?;
            table.update(tx, 1, Item::COUNT.set(0))
        };
        let mut deleter = Some(spawn(scope, &scene, Point::Evaluated, delete).reached());
        let mut session = scene.db.session().unwrap();
        let mut seen = Vec::new();
        let _ = session.with(ONCE()).run(|tx| {
            scene.table.update(tx, 0, Item::COUNT.add(1))?;
            let was_there = scene.table.delete_if_present(tx, 0)?;
            if let Some(deleter) = deleter.take() {
                assert_eq!(deleter.finish(), (Ok(()), 0));
            }
            seen.push((was_there, scene.table.read(tx, 1, Item::COUNT)?));
            Ok(())
        });
        drop(deleter);
        assert!(!seen.contains(&(true, 0)), "a view of two moments: {seen:?}");
    });
}

struct Seen(Result<(bool, i64), Abort>);

impl From<Abort> for Seen {
    fn from(abort: Abort) -> Seen {
        Seen(Err(abort))
    }
}

/// Row 0 exists if and only if the count of row 1 is one. The closure's error says what it has seen
/// of both, of which `ask` tells the former.
fn errors_beside_a_delete(ask: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<bool, Abort>) {
    let scene = split(TableOptions::default());
    scene.db.run(|tx| scene.table.update(tx, 1, Item::COUNT.set(1))).unwrap();
    std::thread::scope(|scope| {
        let delete = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
            table.delete(tx, 0)?;
            table.update(tx, 1, Item::COUNT.set(0))
        };
        let mut deleter = Some(spawn(scope, &scene, Point::Evaluated, delete).reached());
        let mut session = scene.db.session().unwrap();
        let ended = session.with(ONCE()).try_run(|tx| {
            let is_there = ask(&scene.table, tx)?;
            if let Some(deleter) = deleter.take() {
                assert_eq!(deleter.finish(), (Ok(()), 0));
            }
            Err::<(), Seen>(Seen(Ok((is_there, scene.table.read(tx, 1, Item::COUNT)?))))
        });
        drop(deleter);
        let seen = ended.map_err(|Seen(seen)| seen);
        assert_ne!(seen, Err(Ok((true, 0))), "the error tells of two moments");
    });
}

#[test]
fn an_error_of_the_closure_rests_on_one_moment_with_updates() {
    errors_beside_a_delete(|table, tx| table.update(tx, 0, Item::COUNT.set(5)).map(|()| true));
}

#[test]
fn an_error_of_the_closure_rests_on_one_moment_with_what_it_has_written() {
    errors_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::OTHER.set(5))?;
        Ok(table.get(tx, 0, Item::OTHER)?.is_some())
    });
}

#[test]
fn an_error_of_the_closure_rests_on_one_moment_with_deletes_of_what_it_has_written() {
    errors_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::COUNT.set(5))?;
        table.delete_if_present(tx, 0)
    });
}
