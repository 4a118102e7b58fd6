//! Steps before and behind other operations on the same row.

use super::super::rows::{Item, OfCount};
use super::{Scene, multiply};
use crate::engine::Protocol;
use crate::schema::Refused;
use crate::{Abort, Table, Tx};

fn plus_one(count: &mut i64) -> Result<(), Refused> {
    *count += 1;
    Ok(())
}

type Play<P> = fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Returns scripts on item 1, whose count is 10, with the count that each leaves; `None` if it
/// leaves no row.
fn scripts<P: Protocol>() -> Vec<(&'static str, Play<P>, Option<i64>)> {
    vec![
        ("step", |items, tx| multiply(items, tx, 1, 3).map(drop), Some(30)),
        (
            "update, step, update",
            |items, tx| {
                items.update(tx, 1, Item::COUNT.add(1))?;
                multiply(items, tx, 1, 3)?;
                items.update(tx, 1, Item::COUNT.sub(2))
            },
            Some(31),
        ),
        (
            "updater, step, updater, step",
            |items, tx| {
                items.update_with(tx, 1, OfCount(plus_one))?;
                multiply(items, tx, 1, 2)?;
                items.update_with(tx, 1, OfCount(plus_one))?;
                multiply(items, tx, 1, 10).map(drop)
            },
            Some(230),
        ),
        (
            "put, step",
            |items, tx| {
                items.put(tx, Item::new(1, 7))?;
                multiply(items, tx, 1, 3).map(drop)
            },
            Some(21),
        ),
        (
            "step, put",
            |items, tx| {
                multiply(items, tx, 1, 3)?;
                items.put(tx, Item::new(1, 7))
            },
            Some(7),
        ),
        (
            "step, delete",
            |items, tx| {
                multiply(items, tx, 1, 3)?;
                items.delete(tx, 1)
            },
            None,
        ),
        (
            "delete, insert, step",
            |items, tx| {
                items.delete(tx, 1)?;
                items.insert(tx, Item::new(1, 4))?;
                multiply(items, tx, 1, 3).map(drop)
            },
            Some(12),
        ),
        (
            "step, delete, insert, step",
            |items, tx| {
                multiply(items, tx, 1, 3)?;
                items.delete(tx, 1)?;
                items.insert(tx, Item::new(1, 4))?;
                multiply(items, tx, 1, 5).map(drop)
            },
            Some(20),
        ),
        (
            "step of the other group",
            |items, tx| {
                items.update(tx, 1, Item::COUNT.add(1))?;
                items.defer(tx, 1, Item::OTHER, (), |other, ()| *other = 1)?;
                multiply(items, tx, 1, 2).map(drop)
            },
            Some(22),
        ),
    ]
}

protocol_tests!(all: operations_and_steps_apply_in_the_order_of_the_program);
fn operations_and_steps_apply_in_the_order_of_the_program<P: Protocol>() {
    for (name, play, left) in scripts::<P>() {
        let mut scene = Scene::<P>::new();
        assert_eq!(scene.run(play), Ok(()), "{}: {name}", P::NAME);
        assert_eq!(scene.count(1), left, "{}: {name}", P::NAME);
        let others = [0, 2, 3].map(|id| scene.count(id));
        assert_eq!(others, [Some(0), Some(20), Some(30)], "{}: {name}", P::NAME);
    }
}

protocol_tests!(all: a_step_on_a_new_row_changes_the_inserted_row);
fn a_step_on_a_new_row_changes_the_inserted_row<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let done = scene.run(|items, tx| {
        items.insert(tx, Item::new(9, 5))?;
        multiply(items, tx, 9, 3).map(drop)
    });
    assert_eq!((done, scene.count(9)), (Ok(()), Some(15)), "{}", P::NAME);
}

protocol_tests!(all: a_step_on_a_missing_row_is_refused);
fn a_step_on_a_missing_row_is_refused<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let refused = scene.run(|items, tx| {
        items.delete(tx, 2)?;
        let refused = [2, 77].map(|id| multiply(items, tx, id, 3).map(drop));
        multiply(items, tx, 1, 2)?;
        Ok(refused)
    });
    assert_eq!(refused, Ok([Err(Abort::NotFound); 2]), "{}", P::NAME);
    assert_eq!((scene.count(1), scene.count(2)), (Some(20), None), "{}", P::NAME);
}

protocol_tests!(all: a_step_uses_results_of_earlier_steps_on_other_rows);
/// Row 3 comes first, so that evaluation by rows would give each step's input too late.
fn a_step_uses_results_of_earlier_steps_on_other_rows<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let done = scene.run(|items, tx| {
        items.update(tx, 3, Item::COUNT.add(1))?;
        let first = multiply(items, tx, 1, 2)?;
        let add = |id, input: &crate::Later<i64>| {
            items.defer(tx, id, Item::COUNT, input, |count, input| {
                *count += input;
                *count
            })
        };
        let second = add(3, &first)?;
        let third = add(1, &second)?;
        items.update(tx, 1, Item::COUNT.add(1_000))?;
        add(3, &third).map(drop)
    });
    assert_eq!(done, Ok(()), "{}", P::NAME);
    // 1: 10, 20, 20 + 51 = 71, 1071. 3: 30, 31, 31 + 20 = 51, 51 + 71 = 122.
    assert_eq!((scene.count(1), scene.count(3)), (Some(1_071), Some(122)), "{}", P::NAME);
}
