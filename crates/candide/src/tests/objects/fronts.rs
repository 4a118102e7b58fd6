//! Searches for the first and the last value, in transactions that take values from there.

use super::super::transactions::ONCE;
use crate::access::VISITS;
use crate::engine::Protocol;
use crate::objects::{TBox, TList, TPriorityQueue};
use crate::{Abort, Database, Tx};

/// A priority queue and a list.
struct Sorted<P: Protocol> {
    db: Database<P>,
    queue: TPriorityQueue<u64, u64, P>,
    list: TList<u64, P>,
}

impl<P: Protocol> Sorted<P> {
    /// Both have these values, none of them twice.
    fn with(values: impl Iterator<Item = u64> + Clone) -> Sorted<P> {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let queue = TPriorityQueue::new(&db).unwrap();
        let list = TList::new(&db).unwrap();
        db.run(|tx| {
            values.clone().try_for_each(|value| {
                queue.push(tx, value, value)?;
                list.insert(tx, value)
            })
        })
        .unwrap();
        Sorted { db, queue, list }
    }

    fn pop(&self, tx: &Tx<'_, P>) -> Result<Option<u64>, Abort> {
        Ok(self.queue.pop(tx)?.map(|(priority, _)| priority))
    }
}

/// A transaction of a number of rounds.
type Play<P> = fn(&Sorted<P>, &Tx<'_, P>, u64) -> Result<(), Abort>;

protocol_tests!(all: a_transaction_does_not_go_over_all_that_it_has_popped_again);
fn a_transaction_does_not_go_over_all_that_it_has_popped_again<P: Protocol>() {
    let plays: [(&'static str, Play<P>); 4] = [
        ("pops of a queue", |sorted, tx, rounds| {
            for round in 0..rounds {
                assert_eq!(sorted.pop(tx)?, Some(round));
            }
            assert!(sorted.queue.is_empty(tx)?);
            Ok(())
        }),
        ("pops of a queue, each before a push of a larger priority", |sorted, tx, rounds| {
            for round in 0..rounds {
                assert_eq!(sorted.pop(tx)?, Some(round));
                sorted.queue.push(tx, round + rounds, 7)?;
            }
            Ok(())
        }),
        ("pops of a queue, each behind a push of a smaller priority", |sorted, tx, rounds| {
            for _ in 0..rounds / 2 {
                sorted.pop(tx)?;
            }
            for priority in (0..rounds / 2).rev() {
                sorted.queue.push(tx, priority, 7)?;
                assert_eq!(sorted.pop(tx)?, Some(priority));
            }
            Ok(())
        }),
        ("pops of a list from both ends", |sorted, tx, rounds| {
            for round in 0..rounds / 2 {
                assert_eq!(sorted.list.pop_first(tx)?, Some(round));
                assert_eq!(sorted.list.pop_last(tx)?, Some(rounds - 1 - round));
            }
            for _ in 0..rounds / 2 {
                assert_eq!((sorted.list.pop_first(tx)?, sorted.list.pop_last(tx)?), (None, None));
            }
            Ok(())
        }),
    ];
    for (name, play) in plays {
        let [few, many] = [100, 1_000].map(|rounds| {
            let sorted = Sorted::<P>::with(0..rounds);
            let mut session = sorted.db.session().unwrap();
            let before = VISITS.get();
            let played = session.run(|tx| play(&sorted, tx, rounds));
            assert_eq!(played, Ok(()), "{}: {name}", P::NAME);
            VISITS.get() - before
        });
        assert!(many < 12 * few.max(100), "{}: {name}: {few} and {many}", P::NAME);
    }
}

protocol_tests!(all: values_in_front_of_those_that_were_popped_are_found);
fn values_in_front_of_those_that_were_popped_are_found<P: Protocol>() {
    let sorted = Sorted::<P>::with(10..16);
    let Sorted { db, queue, list } = &sorted;
    let played = db.run(|tx| {
        assert_eq!((sorted.pop(tx)?, sorted.pop(tx)?), (Some(10), Some(11)));
        assert_eq!((list.pop_first(tx)?, list.pop_last(tx)?), (Some(10), Some(15)));
        // What a part has taken is there again when the part is undone.
        let undone = tx.attempt(|tx| {
            queue.push(tx, 3, 3)?;
            assert_eq!((sorted.pop(tx)?, sorted.pop(tx)?), (Some(3), Some(12)));
            assert_eq!((list.pop_first(tx)?, list.pop_last(tx)?), (Some(11), Some(14)));
            list.insert(tx, 2)?;
            list.insert(tx, 20)?;
            assert_eq!((list.first(tx)?, list.last(tx)?), (Some(2), Some(20)));
            Err::<(), _>(Abort::Duplicate)
        });
        assert_eq!(undone, Err(Abort::Duplicate));
        assert_eq!((list.first(tx)?, list.last(tx)?), (Some(11), Some(14)));
        assert_eq!(queue.peek(tx)?.map(|(priority, _)| priority), Some(12));
        // What was taken is inserted again, and so is a value further out.
        queue.push(tx, 11, 0)?;
        queue.push(tx, 10, 0)?;
        queue.push(tx, 11, 0)?;
        for value in [10, 10, 9, 15, 16] {
            list.insert(tx, value)?;
        }
        for priority in [10, 11, 11, 12] {
            assert_eq!(sorted.pop(tx)?, Some(priority));
        }
        for (first, last) in [(9, 16), (10, 15), (10, 14), (11, 13), (12, 0)] {
            assert_eq!(list.pop_first(tx)?, Some(first));
            assert_eq!(list.pop_last(tx)?, (last > 0).then_some(last));
        }
        assert_eq!((list.first(tx)?, list.last(tx)?), (None, None));
        // An element that is removed otherwise, and comes again.
        list.insert(tx, 12)?;
        assert!(list.remove(tx, 12)? && !list.remove(tx, 12)?);
        list.insert(tx, 12)
    });
    assert_eq!(played, Ok(()), "{}", P::NAME);
    let left = db.run(|tx| Ok((sorted.pop(tx)?, list.iter(tx).collect::<Result<Vec<_>, _>>()?)));
    assert_eq!(left, Ok((Some(13), vec![12])), "{}", P::NAME);
}

protocol_tests!(overlapping: a_pop_behind_other_pops_observes_that_nothing_is_in_front);
/// Between two pops of a transaction, another one pushes a smaller priority: it has read what the
/// first one then changes, so it comes before it, and the first one has missed its value.
fn a_pop_behind_other_pops_observes_that_nothing_is_in_front<P: Protocol>() {
    let sorted = Sorted::<P>::with(10..16);
    let changed = TBox::<u64, P>::new(&sorted.db, 0).unwrap();
    let (mut mine, mut others) = (sorted.db.session().unwrap(), sorted.db.session().unwrap());
    let mut inner = Err(Abort::NotYet);
    let outer = mine.with(ONCE()).run(|tx| {
        let popped = (sorted.pop(tx)?, sorted.list.pop_last(tx)?);
        assert_eq!(popped, (Some(10), Some(15)));
        inner = others.with(ONCE()).run(|tx| {
            sorted.queue.push(tx, 3, 3)?;
            sorted.list.insert(tx, 30)?;
            changed.get(tx)
        });
        let popped = (sorted.pop(tx)?, sorted.list.pop_last(tx)?);
        changed.set(tx, 1)?;
        Ok(popped)
    });
    match outer {
        Ok(popped) => assert!(inner.is_err(), "{}: {popped:?} and {inner:?}", P::NAME),
        Err(abort) => assert_eq!(abort, Abort::AttemptsExhausted, "{}", P::NAME),
    }
}
