//! What a transaction may tell of rows that it has not observed.

use super::frozen::split;
use super::*;

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

struct Seen(Result<(bool, i64), Abort>);

impl From<Abort> for Seen {
    fn from(abort: Abort) -> Seen {
        Seen(Err(abort))
    }
}

/// Row 0 exists if and only if the count of row 1 is one. A closure asks for the former by `ask`
/// beside a transaction that deletes the row, then reads the latter, and returns an error that says
/// what it has seen. Returns what it has seen if that is not from one moment.
fn seen_beside_a_delete(
    ask: impl Fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<bool, Abort>,
) -> Option<(bool, i64)> {
    let scene = split(TableOptions::default());
    scene.db.run(|tx| scene.table.update(tx, 1, Item::COUNT.set(1))).unwrap();
    let mut torn = None;
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
            let seen = (is_there, scene.table.read(tx, 1, Item::COUNT)?);
            torn = Some(seen).filter(|&seen| seen == (true, 0));
            Err::<(), Seen>(Seen(Ok(seen)))
        });
        drop(deleter);
        let seen = ended.map_err(|Seen(seen)| seen);
        assert_ne!(seen, Err(Ok((true, 0))), "the error tells of two moments");
    });
    torn
}

#[test]
fn an_error_of_the_closure_rests_on_one_moment_with_updates() {
    let update = |table: &Table<Item, Occ>, tx: &Tx<'_, Occ>| {
        table.update(tx, 0, Item::COUNT.set(5)).map(|()| true)
    };
    // That an update succeeds does not tell yet whether the row exists.
    assert_eq!(seen_beside_a_delete(update), Some((true, 0)));
}

#[test]
fn what_a_closure_reads_of_its_own_update_belongs_to_the_moment_of_its_reads() {
    let torn = seen_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::OTHER.set(5))?;
        Ok(table.get(tx, 0, Item::OTHER)?.is_some())
    });
    assert_eq!(torn, None);
}

#[test]
fn a_delete_of_an_own_update_belongs_to_the_moment_of_the_closures_reads() {
    let torn = seen_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::COUNT.set(5))?;
        table.delete_if_present(tx, 0)
    });
    assert_eq!(torn, None);
}

#[test]
fn a_duplicate_of_an_own_update_belongs_to_the_moment_of_the_closures_reads() {
    let torn = seen_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::COUNT.set(5))?;
        match table.insert(tx, Item::new(0, 1)) {
            Err(Abort::Duplicate) => Ok(true),
            inserted => inserted.map(|()| false),
        }
    });
    assert_eq!(torn, None);
}

#[test]
fn a_step_that_is_run_on_an_own_update_belongs_to_the_moment_of_the_closures_reads() {
    let torn = seen_beside_a_delete(|table, tx| {
        table.update(tx, 0, Item::OTHER.set(5))?;
        let other = table.defer(tx, 0, Item::OTHER, (), |other, ()| *other)?;
        Ok(other.now(tx)? == 5)
    });
    assert_eq!(torn, None);
}
