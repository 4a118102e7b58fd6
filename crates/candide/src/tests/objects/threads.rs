//! Tests of objects that many threads use at once.

use crate::engine::{Properties, Protocol};
use crate::objects::{TArray, TBox, TCounter, TMap, TOrderedMap, TSet};
use crate::protocols::Recorded;
use crate::sync::size::{is_short, share};
use crate::sync::{Duration, Instant};
use crate::tests::random_transactions::Judge;
use crate::tests::threads::spawn;
use crate::{Abort, Database, RunOptions, Tx};
use candide_check::Options;
use std::collections::BTreeSet;

pub(super) const THREADS: u64 = 4;

/// The time after which a transaction that waits counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(60);

fn rounds() -> u64 {
    share(300)
}

/// Runs `body` on all threads, with the number of the thread; returns what it returns.
pub(super) fn on_threads<T: Send>(body: impl Fn(u64) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> =
            (0..THREADS).map(|number| spawn(scope, move || body(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs a transaction that may wait, within [`LOST_AFTER`].
pub(super) fn within_time<T, P: Protocol>(
    db: &Database<P>,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
) -> T {
    let mut session = db.session().unwrap();
    let deadline = Instant::now() + LOST_AFTER;
    session.with(RunOptions::new().deadline(deadline)).run(body).unwrap()
}

protocol_tests!(concurrent: no_addition_of_a_thread_is_lost);
fn no_addition_of_a_thread_is_lost<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let (counter, array) = (TCounter::new(&db).unwrap(), TArray::new(&db, 3, |_| 0i64).unwrap());
    let (map, value) = (TMap::<u64, i64, P>::new(&db).unwrap(), TBox::new(&db, 0i64).unwrap());
    on_threads(|thread| {
        for round in 0..rounds() {
            let added = db.run(|tx| {
                counter.add(tx, 1)?;
                array.add(tx, (thread + round) as usize % 3, 1)?;
                map.add(tx, round % 5, 1)?;
                value.modify(tx, |value| *value += 1)
            });
            added.unwrap();
        }
    });
    let all = (THREADS * rounds()) as i64;
    let sums = db.run(|tx| {
        let in_map = map.iter(tx).sum()?;
        Ok([counter.get(tx)?, array.to_vec(tx)?.iter().sum(), in_map, value.get(tx)?])
    });
    assert_eq!(sums, Ok([all; 4]), "{}", P::NAME);
}

protocol_tests!(concurrent: a_counter_that_is_taken_from_if_large_enough_never_goes_below_zero);
/// Threads take from two counters, of which at least one must stay above zero.
fn a_counter_that_is_taken_from_if_large_enough_never_goes_below_zero<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let [left, right] = [(); 2].map(|()| TCounter::new(&db).unwrap());
    db.run(|tx| {
        left.set(tx, 2)?;
        right.set(tx, 2)
    })
    .unwrap();
    on_threads(|thread| {
        for round in 0..rounds() {
            let of = if (thread + round) % 2 == 0 { &left } else { &right };
            let turn = db.run(|tx| {
                if round % 3 == 2 {
                    return of.add(tx, 1);
                }
                let both = left.at_least(tx, 1)? && right.at_least(tx, 1)?;
                if both { of.sub(tx, 1) } else { Ok(()) }
            });
            turn.unwrap();
            let now = db.run(|tx| Ok((left.get(tx)?, right.get(tx)?))).unwrap();
            assert!(now.0 >= 0 && now.1 >= 0 && now.0 + now.1 > 0, "{}: {now:?}", P::NAME);
        }
    });
}

protocol_tests!(concurrent: no_ticket_is_given_away_twice);
fn no_ticket_is_given_away_twice<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let (next, given) = (TBox::new(&db, 0u64).unwrap(), TSet::<u64, P>::new(&db).unwrap());
    let tickets = on_threads(|_| {
        let draw = |_| {
            let drawn = db.run(|tx| {
                let ticket = next.get_for_update(tx)?;
                next.set(tx, ticket + 1)?;
                Ok((ticket, given.insert(tx, ticket)?))
            });
            drawn.unwrap()
        };
        (0..rounds()).map(draw).collect::<Vec<_>>()
    });
    let tickets: Vec<_> = tickets.into_iter().flatten().collect();
    assert!(tickets.iter().all(|(_, is_new)| *is_new), "{}", P::NAME);
    let distinct: BTreeSet<u64> = tickets.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(distinct.len() as u64, THREADS * rounds(), "{}", P::NAME);
}

protocol_tests!(concurrent: takers_wait_for_entries_of_an_ordered_map);
/// Two threads put entries, at most three at a time, and two take the first.
fn takers_wait_for_entries_of_an_ordered_map<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let (jobs, free) = (TOrderedMap::<u64, u64, P>::new(&db).unwrap(), TCounter::new(&db).unwrap());
    db.run(|tx| free.set(tx, 3)).unwrap();
    let each = if is_short() { 40 } else { 200 };
    let taken = on_threads(|thread| {
        let mut taken = Vec::new();
        for number in 0..each {
            let key = thread * each + number;
            if thread % 2 == 0 {
                within_time(&db, |tx| {
                    tx.check(free.at_least(tx, 1)?)?;
                    free.sub(tx, 1)?;
                    jobs.put(tx, key, key)
                });
            } else {
                taken.push(within_time(&db, |tx| {
                    let Some((key, value)) = jobs.pop_first(tx)? else { return tx.retry() };
                    assert_eq!(key, value);
                    free.add(tx, 1)?;
                    Ok(key)
                }));
            }
        }
        taken
    });
    let distinct: BTreeSet<u64> = taken.iter().flatten().copied().collect();
    assert_eq!(distinct.len() as u64, THREADS / 2 * each, "{}", P::NAME);
    assert_eq!(db.run(|tx| Ok((free.get(tx)?, jobs.first(tx)?))), Ok((3, None)), "{}", P::NAME);
}

protocol_tests!(all: histories_of_objects_are_serializable);
fn histories_of_objects_are_serializable<P: Protocol>() {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let (map, counter) = (TMap::<u64, i64, _>::new(&db).unwrap(), TCounter::new(&db).unwrap());
    let threads = if db.properties().one_session { 1 } else { THREADS };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, map, counter) = (&db, &map, &counter);
            spawn(scope, move || {
                for round in 0..rounds() {
                    let (key, other) = ((thread + round) % 4, round % 3);
                    let moved = db.run(|tx| {
                        if counter.at_least(tx, 5)? {
                            counter.sub(tx, 5)?;
                            map.delete(tx, key)?;
                        }
                        counter.add(tx, 1)?;
                        let value = map.get_or_insert(tx, other, 1)?;
                        map.add(tx, key, value % 7)
                    });
                    moved.unwrap();
                }
            });
        }
    });
    let Properties { strict, opaque, .. } = db.properties();
    let options = Options { strict, opaque, ..Options::default() };
    let mut judge = Judge::new(options, P::NAME.to_owned());
    judge.hear(&db.take_history());
    assert!(judge.judge() >= threads * rounds());
}
