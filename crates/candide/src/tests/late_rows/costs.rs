//! What transactions that append many rows cost.

use crate::access::VISITS;
use crate::engine::Protocol;
use crate::objects::{TQueue, TVec};
use crate::{Abort, Database, Tx};

/// A queue and two vectors.
struct Objects<P: Protocol> {
    queue: TQueue<u64, P>,
    vec: TVec<u64, P>,
    other: TVec<u64, P>,
}

/// A transaction of a number of rounds.
type Play<P> = fn(&Objects<P>, &Tx<'_, P>, usize) -> Result<(), Abort>;

/// Returns the number of operations that a transaction visits. At its begin, the queue and the
/// first vector have as many values as the transaction has rounds.
fn visits<P: Protocol>(rounds: usize, play: Play<P>) -> u64 {
    let db = Database::<P>::builder().build().unwrap();
    let objects = Objects {
        queue: TQueue::new(&db).unwrap(),
        vec: TVec::new(&db).unwrap(),
        other: TVec::new(&db).unwrap(),
    };
    for number in 0..rounds as u64 {
        db.run(|tx| {
            objects.queue.push(tx, number)?;
            objects.vec.push(tx, number)
        })
        .unwrap();
    }
    let mut session = db.session().unwrap();
    let before = VISITS.get();
    assert_eq!(session.run(|tx| play(&objects, tx, rounds)), Ok(()), "{}", P::NAME);
    VISITS.get() - before
}

/// Runs a part of a transaction, and undoes it.
fn undone<P: Protocol>(
    tx: &Tx<'_, P>,
    part: impl FnOnce(&Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    let undone = tx.attempt(|tx| part(tx).and(Err::<(), _>(Abort::Duplicate)));
    assert_eq!(undone, Err(Abort::Duplicate));
    Ok(())
}

protocol_tests!(all: a_transaction_visits_as_many_operations_as_it_has_appended_rows);
fn a_transaction_visits_as_many_operations_as_it_has_appended_rows<P: Protocol>() {
    let plays: [(&'static str, Play<P>); 8] = [
        ("pushes", |Objects { queue, vec, .. }, tx, rounds| {
            (0..rounds as u64).try_for_each(|value| {
                queue.push(tx, value)?;
                vec.push(tx, value)
            })
        }),
        ("pushes, then pops of values that were there", |Objects { queue, .. }, tx, rounds| {
            (0..rounds as u64).try_for_each(|value| queue.push(tx, value))?;
            (0..rounds).try_for_each(|_| {
                assert!(queue.peek(tx)?.is_some() && !queue.is_empty(tx)?);
                queue.pop(tx).map(drop)
            })
        }),
        ("pushes and pops of an empty queue in turn", |Objects { queue, .. }, tx, rounds| {
            queue.clear(tx)?;
            (0..rounds as u64).try_for_each(|value| {
                queue.push(tx, value)?;
                assert_eq!(queue.pop(tx)?, Some(value));
                Ok(())
            })
        }),
        ("pushes, each read at once", |Objects { vec, .. }, tx, rounds| {
            (0..rounds).try_for_each(|value| {
                vec.push(tx, value as u64)?;
                assert_eq!(vec.get(tx, rounds + value)?, Some(value as u64));
                Ok(())
            })
        }),
        ("pops of a vector, then pushes", |Objects { vec, .. }, tx, rounds| {
            (0..rounds).try_for_each(|_| vec.pop(tx).map(drop))?;
            (0..rounds as u64).try_for_each(|value| vec.push(tx, value))
        }),
        ("pops in parts that are undone, behind pushes", |Objects { queue, .. }, tx, rounds| {
            (0..rounds as u64).try_for_each(|value| queue.push(tx, value))?;
            (0..rounds).try_for_each(|_| undone(tx, |tx| queue.pop(tx).map(drop)))
        }),
        ("pushes in parts that are undone, behind pushes", |objects, tx, rounds| {
            let Objects { queue, .. } = objects;
            (0..rounds as u64).try_for_each(|value| queue.push(tx, value))?;
            (0..rounds as u64).try_for_each(|value| undone(tx, |tx| queue.push(tx, value)))
        }),
        ("reads of one vector behind pushes to another", |objects, tx, rounds| {
            let Objects { vec, other, .. } = objects;
            (0..rounds as u64).try_for_each(|value| vec.push(tx, value))?;
            (0..rounds).try_for_each(|index| {
                undone(tx, |tx| {
                    other.push(tx, 7)?;
                    assert_eq!(other.get(tx, 0)?, Some(7));
                    Ok(())
                })?;
                assert_eq!(other.get(tx, index)?, None);
                Ok(())
            })
        }),
    ];
    for (name, play) in plays {
        let [few, many] = [100, 1_000].map(|rounds| visits(rounds, play));
        assert!(many < 12 * few.max(100), "{}: {name}: {few} and {many}", P::NAME);
    }
}
