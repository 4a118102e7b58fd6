//! Tests of queues, vectors, priority queues and lists beside other transactions.

use super::boxed::Counted;
use super::threads::{THREADS, on_threads, within_time};
use crate::engine::{Properties, Protocol};
use crate::objects::{Boxed, TBox, TList, TPriorityQueue, TQueue, TVec};
use crate::protocols::{Mvcc, Occ, Recorded, TicToc};
use crate::sync::size::share;
use crate::sync::{AtomicU64, Ordering};
use crate::tests::random_transactions::Judge;
use crate::tests::threads::spawn;
use crate::tests::transactions::ONCE;
use crate::{Abort, Database, Error, Versioned};
use candide_check::Options;
use std::sync::Arc;

/// Two transactions push, each in the closure of the other one's only attempt.
fn pushes_do_not_conflict<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let queue = TQueue::<u64, P>::new(&db).unwrap();
    let vec = TVec::<u64, P>::new(&db).unwrap();
    let list = TList::<u64, P>::new(&db).unwrap();
    db.run(|tx| list.insert(tx, 7)).unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let pushed = first.with(ONCE()).run(|tx| {
        queue.push(tx, 1)?;
        vec.push(tx, 1)?;
        list.insert(tx, 7)?;
        let beside = second.with(ONCE()).run(|tx| {
            queue.push(tx, 2)?;
            vec.push(tx, 2)?;
            list.insert(tx, 7)
        });
        assert_eq!(beside, Ok(()), "{}", P::NAME);
        queue.push(tx, 3)?;
        vec.push(tx, 3)
    });
    assert_eq!(pushed, Ok(()), "{}", P::NAME);
    let shown = db.run(|tx| {
        let queued = queue.iter(tx)?.collect::<Result<Vec<_>, _>>()?;
        Ok((queued, vec.to_vec(tx)?, list.count(tx, 7)?))
    });
    assert_eq!(shown, Ok((vec![2, 1, 3], vec![2, 1, 3], 3)), "{}", P::NAME);
}

#[test]
fn transactions_that_push_do_not_conflict() {
    pushes_do_not_conflict::<Occ>();
    pushes_do_not_conflict::<TicToc>();
    pushes_do_not_conflict::<Mvcc>();
    pushes_do_not_conflict::<Recorded<Occ>>();
}

/// Under `Occ`, an operation with an index and a pop from a queue that is not empty observe no more
/// of an end than that.
#[test]
fn a_push_does_not_abort_a_pop_or_an_access_by_index() {
    let db = Database::new();
    let queue = TQueue::<u64>::new(&db).unwrap();
    let vec = TVec::<u64>::new(&db).unwrap();
    let push = |value| {
        db.run(|tx| {
            queue.push(tx, value)?;
            vec.push(tx, value)
        })
    };
    push(1).unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let popped = first.with(ONCE()).run(|tx| {
        let popped = queue.pop(tx)?;
        let got = (vec.get(tx, 0)?, vec.is_empty(tx)?);
        vec.set(tx, 0, 7)?;
        second.with(ONCE()).run(|tx| {
            queue.push(tx, 2)?;
            vec.push(tx, 2)
        })?;
        Ok((popped, got))
    });
    assert_eq!(popped, Ok((Some(1), (Some(1), false))));
    assert_eq!(db.run(|tx| Ok((queue.pop(tx)?, vec.to_vec(tx)?))), Ok((Some(2), vec![7, 2])));
    // What has found a queue empty, and what has read a length, conflicts.
    for reads in [0, 1] {
        let read = first.with(ONCE()).run(|tx| {
            match reads {
                0 => assert_eq!(queue.pop(tx)?, None),
                _ => drop(vec.len(tx)?),
            }
            second.run(|tx| {
                queue.push(tx, 3)?;
                vec.push(tx, 3)
            })?;
            vec.set(tx, 0, 8)
        });
        assert_eq!(read, Err(Abort::AttemptsExhausted), "{reads}");
        db.run(|tx| queue.clear(tx)).unwrap();
    }
}

protocol_tests!(all: the_late_rows_of_a_part_end_with_it);
/// Parts that are undone take back what they have pushed, and what they have settled.
fn the_late_rows_of_a_part_end_with_it<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let queue = TQueue::<u64, P>::new(&db).unwrap();
    let vec = TVec::<u64, P>::new(&db).unwrap();
    let shown = db.run(|tx| {
        queue.push(tx, 1)?;
        vec.push(tx, 1)?;
        let undone = tx.attempt(|tx| {
            queue.push(tx, 2)?;
            vec.push(tx, 2)?;
            assert_eq!((queue.pop(tx)?, vec.pop(tx)?), (Some(1), Some(2)));
            queue.push(tx, 3)?;
            vec.push(tx, 3)?;
            assert_eq!((queue.len(tx)?, vec.to_vec(tx)?), (2, vec![1, 3]));
            Err::<(), _>(Abort::Duplicate)
        });
        assert_eq!(undone, Err(Abort::Duplicate));
        tx.attempt(|tx| {
            queue.push(tx, 4)?;
            vec.push(tx, 4)
        })?;
        let undone = tx.attempt(|tx| {
            vec.set(tx, 1, 5)?;
            Err::<(), _>(Abort::Duplicate)
        });
        assert_eq!(undone, Err(Abort::Duplicate));
        queue.push(tx, 6)?;
        vec.push(tx, 6)
    });
    assert_eq!(shown, Ok(()), "{}", P::NAME);
    let shown = db.run(|tx| Ok((queue.iter(tx)?.collect::<Result<Vec<_>, _>>()?, vec.to_vec(tx)?)));
    assert_eq!(shown, Ok((vec![1, 4, 6], vec![1, 4, 6])), "{}", P::NAME);
}

protocol_tests!(
    erased: a_chosen_protocol_has_late_rows = the_late_rows_of_a_part_end_with_it()
);
protocol_tests!(all: many_values_of_one_transaction_have_consecutive_places);
fn many_values_of_one_transaction_have_consecutive_places<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let vec = TVec::<[u64; 3], P>::new(&db).unwrap();
    let queue = TQueue::<u64, P>::new(&db).unwrap();
    let count = 3_000;
    for round in 0..2 {
        db.run(|tx| {
            (0..count).try_for_each(|number| {
                vec.push(tx, [round, number, 7])?;
                queue.push(tx, number)
            })
        })
        .unwrap();
    }
    let all: Vec<_> =
        (0..2).flat_map(|round| (0..count).map(move |number| [round, number, 7])).collect();
    assert_eq!(db.run(|tx| vec.to_vec(tx)), Ok(all), "{}", P::NAME);
    let popped = db.run(|tx| (0..2 * count).map(|_| Ok(queue.pop(tx)?.unwrap())).collect());
    let numbers: Vec<u64> = (0..count).chain(0..count).collect();
    assert_eq!(popped, Ok(numbers), "{}", P::NAME);
    assert_eq!(db.run(|tx| queue.is_empty(tx)), Ok(true), "{}", P::NAME);
    db.run(|tx| vec.truncate(tx, 1)).unwrap();
    db.run(|tx| vec.push(tx, [9; 3])).unwrap();
    assert_eq!(db.run(|tx| vec.to_vec(tx)), Ok(vec![[0, 0, 7], [9; 3]]), "{}", P::NAME);
}

protocol_tests!(concurrent: values_leave_a_queue_once_and_in_the_order_of_each_thread);
/// Two threads push pairs, and two wait for values and take them.
fn values_leave_a_queue_once_and_in_the_order_of_each_thread<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let queue = TQueue::<u64, P>::new(&db).unwrap();
    let log = TVec::<u64, P>::new(&db).unwrap();
    let each = share(150);
    let taken = on_threads(|thread| {
        let mut taken = Vec::new();
        for number in 0..each {
            if thread % 2 == 0 {
                let value = (thread << 32) + 2 * number;
                within_time(&db, |tx| {
                    queue.push(tx, value)?;
                    log.push(tx, value)?;
                    queue.push(tx, value + 1)
                });
                continue;
            }
            for _ in 0..2 {
                taken.push(within_time(&db, |tx| match queue.pop(tx)? {
                    Some(value) => Ok(value),
                    None => tx.retry(),
                }));
            }
        }
        taken
    });
    let is_ascending = |values: &[u64], thread: u64| {
        values.iter().filter(|&&value| value >> 32 == thread).is_sorted()
    };
    for thread in [0, 2] {
        assert!(taken.iter().all(|taken| is_ascending(taken, thread)), "{}", P::NAME);
    }
    let mut all: Vec<u64> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    let pushed: Vec<u64> = [0, 2]
        .into_iter()
        .flat_map(|thread| (0..2 * each).map(move |n| (thread << 32) + n))
        .collect();
    assert_eq!(all, pushed, "{}", P::NAME);
    let log = db.run(|tx| log.to_vec(tx)).unwrap();
    assert_eq!(log.len() as u64, THREADS / 2 * each, "{}", P::NAME);
    assert!([0, 2].into_iter().all(|thread| is_ascending(&log, thread)), "{}", P::NAME);
    assert_eq!(db.run(|tx| queue.is_empty(tx)), Ok(true), "{}", P::NAME);
}

protocol_tests!(concurrent: values_leave_a_priority_queue_once);
fn values_leave_a_priority_queue_once<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let queue = TPriorityQueue::<u8, u64, P>::new(&db).unwrap();
    let list = TList::<u8, P>::new(&db).unwrap();
    let each = share(100);
    let taken = on_threads(|thread| {
        let mut taken = Vec::new();
        for number in 0..each {
            let priority = (number % 5) as u8;
            if thread % 2 == 0 {
                within_time(&db, |tx| {
                    queue.push(tx, priority, (thread << 32) + number)?;
                    list.insert(tx, priority)
                });
                continue;
            }
            taken.push(within_time(&db, |tx| {
                let Some((priority, value)) = queue.pop(tx)? else { return tx.retry() };
                assert!(list.remove(tx, priority)?);
                Ok(value)
            }));
        }
        taken
    });
    let mut all: Vec<u64> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    let pushed: Vec<u64> =
        [0, 2].into_iter().flat_map(|thread| (0..each).map(move |n| (thread << 32) + n)).collect();
    assert_eq!(all, pushed, "{}", P::NAME);
    assert_eq!(db.run(|tx| Ok((queue.is_empty(tx)?, list.first(tx)?))), Ok((true, None)));
}

protocol_tests!(all: histories_of_queues_and_vectors_are_serializable);
fn histories_of_queues_and_vectors_are_serializable<P: Protocol>() {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let (queue, vec) = (TQueue::<u64, _>::new(&db).unwrap(), TVec::<u64, _>::new(&db).unwrap());
    let threads = if db.properties().one_session { 1 } else { THREADS };
    let rounds = share(150);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, queue, vec) = (&db, &queue, &vec);
            spawn(scope, move || {
                for round in 0..rounds {
                    let done = db.run(|tx| match (thread + round) % 4 {
                        0 => {
                            vec.push(tx, round)?;
                            queue.push(tx, round)
                        }
                        1 => match queue.pop(tx)? {
                            Some(value) => vec.push(tx, value),
                            None => queue.push(tx, 1),
                        },
                        2 => {
                            let first = vec.get(tx, 0)?;
                            queue.push(tx, first.unwrap_or(2))
                        }
                        _ if vec.has_len_within(tx, 5..)? => vec.pop(tx).map(drop),
                        _ => vec.push(tx, 3),
                    });
                    done.unwrap();
                }
            });
        }
    });
    let Properties { strict, opaque, .. } = db.properties();
    let options = Options { strict, opaque, ..Options::default() };
    let mut judge = Judge::new(options, P::NAME.to_owned());
    judge.hear(&db.take_history());
    assert!(judge.judge() >= threads * rounds);
}

protocol_tests!(versioned: snapshots_show_queues_and_vectors_as_they_were);
fn snapshots_show_queues_and_vectors_as_they_were<P: Versioned>() {
    let db = Database::<P>::builder().build().unwrap();
    let (queue, vec) = (TQueue::<u64, P>::new(&db).unwrap(), TVec::<u64, P>::new(&db).unwrap());
    let texts = TQueue::<Boxed<String>, P>::new(&db).unwrap();
    db.run(|tx| {
        for value in 0..4 {
            queue.push(tx, value)?;
            vec.push(tx, value)?;
            texts.push(tx, value.to_string())?;
        }
        Ok(())
    })
    .unwrap();
    let snapshot = db.snapshot();
    for round in 0..20 {
        db.run(|tx| {
            queue.pop(tx)?;
            vec.pop(tx)?;
            texts.pop(tx)?;
            queue.push(tx, round)?;
            vec.push(tx, round)?;
            texts.push(tx, "later".to_owned())
        })
        .unwrap();
    }
    let then = snapshot.run(|tx| {
        let queued = queue.iter(tx)?.collect::<Result<Vec<_>, _>>()?;
        let texts = texts.iter(tx)?.map(|text| text.cloned()).collect::<Result<Vec<_>, _>>()?;
        Ok((queued, vec.to_vec(tx)?, texts.concat(), queue.peek(tx)?))
    });
    let all = vec![0, 1, 2, 3];
    assert_eq!(then, Ok((all.clone(), all, "0123".to_owned(), Some(0))), "{}", P::NAME);
    assert_eq!(snapshot.run(|tx| queue.push(tx, 1)), Err(Abort::ReadOnly), "{}", P::NAME);
}

protocol_tests!(all: boxed_values_of_queues_and_vectors_are_dropped_once);
fn boxed_values_of_queues_and_vectors_are_dropped_once<P: Protocol>() {
    let living = Arc::new(AtomicU64::new(0));
    let db = Database::<P>::builder().build().unwrap();
    let queue = TQueue::<Boxed<Counted>, P>::new(&db).unwrap();
    let vec = TVec::<Boxed<Counted>, P>::new(&db).unwrap();
    let sorted = TPriorityQueue::<u64, Boxed<Counted>, P>::new(&db).unwrap();
    let new = |number| Counted::new(number, &living);
    for round in 0..10 {
        db.run(|tx| {
            queue.push(tx, new(round))?;
            vec.push(tx, new(round))?;
            sorted.push(tx, 100 - round, new(round))?;
            queue.push(tx, new(round + 100))
        })
        .unwrap();
        let undone = db.run(|tx| {
            queue.push(tx, new(round))?;
            vec.push(tx, new(round))?;
            let undone = tx.attempt(|tx| {
                vec.push(tx, new(7))?;
                assert_eq!(vec.pop(tx)?.map(|value| value.number), Some(7));
                Err::<(), _>(Abort::Duplicate)
            });
            assert_eq!(undone, Err(Abort::Duplicate));
            Err::<(), _>(Abort::Guard)
        });
        assert_eq!(undone, Err(Abort::Guard), "{}", P::NAME);
    }
    let shown = db.run(|tx| {
        let first = queue.pop(tx)?.map(|value| value.number);
        let last = vec.pop(tx)?.map(|value| value.number);
        let least = sorted.pop(tx)?.map(|(priority, value)| (priority, value.number));
        vec.set(tx, 0, new(50))?;
        Ok((first, last, least, vec.get(tx, 0)?.map(|value| value.number)))
    });
    assert_eq!(shown, Ok((Some(0), Some(9), Some((91, 9)), Some(50))), "{}", P::NAME);
    drop((queue, vec, sorted, db));
    assert_eq!(living.load(Ordering::Relaxed), 0, "{}", P::NAME);
}

protocol_tests!(all: names_find_queues_vectors_and_lists_again);
fn names_find_queues_vectors_and_lists_again<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    for round in 0..3 {
        let queue = TQueue::<u64, P>::named(&db, "queue").unwrap();
        let texts = TQueue::<Boxed<String>, P>::named(&db, "texts").unwrap();
        let vec = TVec::<i8, P>::named(&db, "vec").unwrap();
        let sorted = TPriorityQueue::<(u8, bool), u64, P>::named(&db, "sorted").unwrap();
        let list = TList::<u64, P>::named(&db, "list").unwrap();
        let shown = db.run(|tx| {
            queue.push(tx, round)?;
            texts.push(tx, round.to_string())?;
            vec.push(tx, round as i8)?;
            sorted.push(tx, (3 - round as u8, true), round)?;
            list.insert(tx, 7)?;
            let counts = [queue.len(tx)?, texts.len(tx)?, vec.len(tx)?, sorted.iter(tx).count()];
            Ok((counts, list.count(tx, 7)?, texts.peek(tx)?.cloned()))
        });
        let count = round as usize + 1;
        assert_eq!(shown, Ok(([count; 4], round + 1, Some("0".to_owned()))), "{}", P::NAME);
    }
    let refused = TQueue::<i64, P>::named(&db, "queue").map(drop);
    let Err(Error::ObjectType { wanted, existing, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!([wanted, existing], ["TQueue<i64>", "TQueue<u64>"], "{}", P::NAME);
    assert!(TVec::<u64, P>::named(&db, "queue").is_err());
    assert!(TList::<u64, P>::named(&db, "sorted").is_err());
}

#[test]
fn a_sequence_belongs_to_its_database_and_is_not_written_by_readers() {
    let (db, other) = (Database::new(), Database::new());
    let (queue, vec) = (TQueue::<u64>::new(&db).unwrap(), TVec::<u64>::new(&db).unwrap());
    assert_eq!(other.run(|tx| queue.push(tx, 1)), Err(Abort::ForeignTable));
    assert_eq!(other.run(|tx| queue.pop(tx)), Err(Abort::ForeignTable));
    assert_eq!(other.run(|tx| vec.push(tx, 1)), Err(Abort::ForeignTable));
    assert_eq!(db.read_view(|tx| queue.push(tx, 1)), Err(Abort::ReadOnly));
    assert_eq!(db.read_view(|tx| vec.pop(tx)), Ok(None));
    let made = db.run(|_| Ok(TQueue::<u64>::new(&db).map(drop)));
    assert_eq!(made, Ok(Err(Error::Transaction(Abort::Nested))));
    // Memory is refused, and nothing is pushed.
    let small = Database::builder().memory_limit(4 << 20).build().unwrap();
    let queue = TQueue::<[u64; 64]>::new(&small).unwrap();
    let mut pushed = 0;
    let refusal = loop {
        match small.run(|tx| (0..10).try_for_each(|_| queue.push(tx, [7; 64]))) {
            Ok(()) => pushed += 10,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, Abort::MemoryLimit);
    assert_eq!(small.run(|tx| queue.len(tx)), Ok(pushed));
}

#[test]
fn named_queues_of_boxed_values_do_not_keep_the_database_open() {
    let db = Database::new();
    let queue = TQueue::<Boxed<String>>::named(&db, "queue").unwrap();
    let vec = TVec::<Boxed<String>>::named(&db, "vec").unwrap();
    db.close().unwrap();
    drop((queue, vec));
}

#[test]
fn a_value_that_a_vector_or_queue_refuses_is_dropped_after_the_transaction() {
    let living = Arc::new(AtomicU64::new(0));
    let (db, other) = (Database::new(), Database::new());
    let queue = TQueue::<Boxed<Counted>>::new(&db).unwrap();
    let vec = TVec::<Boxed<Counted>>::new(&db).unwrap();
    let new = |number| Counted::new(number, &living);
    let kept = db.run(|tx| {
        assert_eq!(vec.set(tx, 9, new(1)), Err(Abort::OutOfBounds));
        assert_eq!(vec.replace(tx, 9, new(2)).map(drop), Err(Abort::OutOfBounds));
        Ok(living.load(Ordering::Relaxed))
    });
    assert_eq!((kept, living.load(Ordering::Relaxed)), (Ok(2), 0));
    let kept = other.run(|tx| {
        assert_eq!(queue.push(tx, new(3)), Err(Abort::ForeignTable));
        Ok(living.load(Ordering::Relaxed))
    });
    assert_eq!((kept, living.load(Ordering::Relaxed)), (Ok(1), 0));
}

/// A commit without memory for its late rows has not validated what the closure has read.
#[test]
fn memory_is_not_refused_to_an_attempt_that_has_seen_two_moments() {
    let db = Database::<TicToc>::builder().memory_limit(4 << 20).build().unwrap();
    let queue = TQueue::<[u64; 64], TicToc>::new(&db).unwrap();
    let boxes = [(); 2].map(|()| TBox::new(&db, 0).unwrap());
    let mut inner = db.session().unwrap();
    let mut attempts = 0;
    let pushed = db.run(|tx| {
        attempts += 1;
        let first = boxes[0].get(tx)?;
        if attempts == 1 {
            inner.run(|tx| boxes.iter().try_for_each(|one| one.set(tx, 1))).unwrap();
        }
        // The two numbers are always the same.
        if first != boxes[1].get(tx)? {
            (0..20_000).try_for_each(|_| queue.push(tx, [7; 64]))?;
        }
        Ok(())
    });
    assert_eq!((pushed, attempts), (Ok(()), 2));
}
