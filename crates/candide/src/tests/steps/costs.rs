//! What transactions with steps cost.

use super::super::rows::Item;
use super::{Scene, multiply};
use crate::access::VISITS;
use crate::engine::Protocol;
use crate::{Abort, Table, Tx};

/// A transaction of a number of rounds.
type Play<P> = fn(&Table<Item, P>, &Tx<'_, P>, u64) -> Result<(), Abort>;

/// Returns the number of operations that a transaction visits.
fn visits<P: Protocol>(rounds: u64, play: Play<P>) -> u64 {
    let mut scene = Scene::<P>::new();
    let before = VISITS.get();
    assert_eq!(scene.run(|items, tx| play(items, tx, rounds)), Ok(()), "{}", P::NAME);
    VISITS.get() - before
}

protocol_tests!(all: steps_cost_as_much_as_there_are_operations);
fn steps_cost_as_much_as_there_are_operations<P: Protocol>() {
    let plays: [(&'static str, Play<P>); 4] = [
        ("reads of a row while another row waits for its step", |items, tx, rounds| {
            multiply(items, tx, 1, 2)?;
            (0..rounds).try_for_each(|_| {
                items.update(tx, 2, Item::COUNT.add(1))?;
                items.read(tx, 2, Item::COUNT).map(drop)
            })
        }),
        ("reads of a row that has had a step", |items, tx, rounds| {
            multiply(items, tx, 1, 2)?;
            multiply(items, tx, 2, 2)?.now(tx)?;
            (0..rounds).try_for_each(|_| {
                items.update(tx, 2, Item::COUNT.add(1))?;
                items.read(tx, 2, Item::COUNT).map(drop)
            })
        }),
        ("steps on one row that are asked for at the end", |items, tx, rounds| {
            let mut last = multiply(items, tx, 1, 1)?;
            for _ in 1..rounds {
                last = multiply(items, tx, 1, 1)?;
            }
            last.now(tx).map(drop)
        }),
        ("steps on one row that are asked for one by one", |items, tx, rounds| {
            (0..rounds).try_for_each(|_| multiply(items, tx, 1, 1)?.now(tx).map(drop))
        }),
    ];
    for (name, play) in plays {
        let [few, many] = [50, 200].map(|rounds| visits(rounds, play));
        assert!(many < 5 * few.max(50), "{}: {name}: {few} and {many}", P::NAME);
    }
}
