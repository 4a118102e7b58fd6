//! Reads of what a step will change.

use super::super::rows::Item;
use super::{Scene, multiply, properties};
use crate::engine::Protocol;
use crate::{Abort, Later, Table, Tx, Whole};

/// Reads item 1 in every way; returns the names of those reads that have not been refused.
fn readable<P: Protocol>(items: &Table<Item, P>, tx: &Tx<'_, P>) -> Vec<&'static str> {
    let reads: [(&'static str, Result<(), Abort>); 9] = [
        ("get", items.get(tx, 1, Item::COUNT).map(drop)),
        ("read of all columns", items.read(tx, 1, Whole).map(drop)),
        ("read of another column of the group", items.read(tx, 1, Item::SMALL).map(drop)),
        ("get_for_update", items.get_for_update(tx, 1, Item::COUNT).map(drop)),
        ("modify", items.modify(tx, 1, Item::COUNT, |count| *count += 1)),
        ("iter", items.iter(tx, Item::COUNT).for_each(drop)),
        ("find", items.find(tx, 1).and_then(|row| row.read(Item::COUNT)).map(drop)),
        ("rows", items.iter(tx, Item::COUNT).take(4).try_for_each(|row| row.map(drop))),
        (
            "find_many",
            items.find_many(tx, &[1]).and_then(|rows| rows[0].read(Item::COUNT)).map(drop),
        ),
    ];
    let refused = |read: &Result<(), Abort>| *read == Err(Abort::NotYet);
    reads.into_iter().filter(|(_, read)| !refused(read)).map(|(name, _)| name).collect()
}

protocol_tests!(all: a_unit_with_a_step_cannot_be_read_but_its_row_exists);
fn a_unit_with_a_step_cannot_be_read_but_its_row_exists<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let has_groups = properties::<P>().name != "serial" && properties::<P>().name != "global-lock";
    let done = scene.run(|items, tx| {
        let other = items.defer(tx, 0, Item::OTHER, (), |other, ()| *other += 1)?;
        multiply(items, tx, 1, 3)?;
        assert_eq!(readable(items, tx), [""; 0], "{}", P::NAME);
        assert_eq!(items.contains(tx, 1), Ok(true), "{}", P::NAME);
        assert_eq!(items.len(tx), Err(Abort::NotYet), "{}", P::NAME);
        assert_eq!(items.insert(tx, Item::new(1, 5)), Err(Abort::Duplicate), "{}", P::NAME);
        let beside = [items.get(tx, 0, Item::COUNT), items.get(tx, 2, Item::COUNT)];
        let first = if has_groups { Ok(Some(0)) } else { Err(Abort::NotYet) };
        assert_eq!(beside, [first, Ok(Some(20))], "{}", P::NAME);
        items.put(tx, Item::new(1, 6))?;
        assert_eq!(readable(items, tx), [""; 0], "{}: replaced, but the step has not run", P::NAME);
        items.delete(tx, 1)?;
        assert_eq!(items.get(tx, 1, Whole), Ok(None), "{}", P::NAME);
        assert_eq!(items.contains(tx, 1), Ok(false), "{}", P::NAME);
        items.insert(tx, Item::new(1, 8))?;
        drop(other);
        Ok(())
    });
    assert_eq!(done, Ok(()), "{}", P::NAME);
    assert_eq!((scene.count(1), scene.item(0).unwrap().other), (Some(8), 101), "{}", P::NAME);
}

protocol_tests!(all: a_scan_made_before_a_step_shows_the_rows_before_it);
fn a_scan_made_before_a_step_shows_the_rows_before_it<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let counts = scene.run(|items, tx| {
        items.update(tx, 1, Item::COUNT.add(1))?;
        let scan = items.iter(tx, Item::COUNT);
        for id in 0..4 {
            multiply(items, tx, id, 2)?;
            items.update(tx, id, Item::COUNT.add(100))?;
        }
        let mut counts =
            scan.map(|row| row.map(|(_, count)| count)).collect::<Result<Vec<_>, Abort>>()?;
        counts.sort_unstable();
        Ok(counts)
    });
    assert_eq!(counts, Ok(vec![0, 11, 20, 30]), "{}", P::NAME);
    assert_eq!([0, 1].map(|id| scene.count(id)), [Some(100), Some(122)], "{}", P::NAME);
}

protocol_tests!(all: an_undone_part_leaves_its_rows_readable);
fn an_undone_part_leaves_its_rows_readable<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let done = scene.run(|items, tx| {
        let kept = multiply(items, tx, 2, 2)?;
        let undone = tx.attempt(|tx| {
            multiply(items, tx, 1, 3)?;
            let with: Later<i64> = multiply(items, tx, 2, 5)?;
            items.defer(tx, 1, Item::COUNT, &with, |count, with| *count += with)?;
            assert_eq!(items.get(tx, 1, Item::COUNT), Err(Abort::NotYet), "{}", P::NAME);
            Err::<(), _>(Abort::Guard)
        });
        assert_eq!(undone, Err(Abort::Guard), "{}", P::NAME);
        assert_eq!(items.get(tx, 1, Item::COUNT), Ok(Some(10)), "{}", P::NAME);
        assert_eq!(items.get(tx, 2, Item::COUNT), Err(Abort::NotYet), "{}", P::NAME);
        kept.now(tx)
    });
    assert_eq!((done, scene.count(1), scene.count(2)), (Ok(40), Some(10), Some(40)), "{}", P::NAME);
}

protocol_tests!(all: a_part_leaves_units_with_steps_to_the_commit);
/// The update behind the step fails at the commit; without the step it fails at the end of the
/// part.
fn a_part_leaves_units_with_steps_to_the_commit<P: Protocol>() {
    for has_step in [true, false] {
        let mut scene = Scene::<P>::new();
        let mut ended = None;
        let done = scene.run(|items, tx| {
            ended = Some(tx.attempt(|tx| {
                if has_step {
                    multiply(items, tx, 1, 2)?;
                }
                items.update(tx, 1, Item::COUNT.sub(21).at_least(0))
            }));
            Ok(())
        });
        let failed = Err(Abort::Guard);
        let expected = if has_step { (Some(Ok(())), failed) } else { (Some(failed), Ok(())) };
        assert_eq!((ended, done), expected, "{}: {has_step}", P::NAME);
        assert_eq!(scene.count(1), Some(10), "{}: {has_step}", P::NAME);
    }
}

protocol_tests!(all: steps_of_undone_parts_leave_the_others_of_their_row);
/// Steps on one row that wait, or have run, before, in and behind parts that are undone.
fn steps_of_undone_parts_leave_the_others_of_their_row<P: Protocol>() {
    for [first, asks_inside, second] in [0b000, 0b001, 0b010, 0b011, 0b100, 0b101, 0b110, 0b111]
        .map(|bits: u8| [1, 2, 4].map(|bit| bits & bit != 0))
    {
        let mut scene = Scene::<P>::new();
        let done = scene.run(|items, tx| {
            let ask = |later: &Later<i64>, asks: bool, value| {
                assert!(!asks || later.now(tx) == Ok(value), "{}", P::NAME);
            };
            ask(&multiply(items, tx, 1, 2)?, first, 20);
            for _ in 0..2 {
                let undone = tx.attempt(|tx| {
                    multiply(items, tx, 1, 3)?;
                    ask(&multiply(items, tx, 1, 5)?, asks_inside, 300);
                    items.update(tx, 1, Item::COUNT.add(1))?;
                    Err::<(), _>(Abort::NotFound)
                });
                assert_eq!(undone, Err(Abort::NotFound), "{}", P::NAME);
                let readable = if first || asks_inside { Ok(20) } else { Err(Abort::NotYet) };
                assert_eq!(items.read(tx, 1, Item::COUNT), readable, "{}", P::NAME);
            }
            items.update(tx, 1, Item::COUNT.add(1))?;
            let third = multiply(items, tx, 1, 7)?;
            ask(&third, second, 147);
            multiply(items, tx, 1, 2)
        });
        let case = format!("{}: {first}, {asks_inside}, {second}", P::NAME);
        assert_eq!(done.map(drop), Ok(()), "{case}");
        assert_eq!(scene.count(1), Some(294), "{case}");
    }
}
