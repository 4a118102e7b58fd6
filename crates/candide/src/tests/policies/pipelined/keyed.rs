//! Rows whose keys follow from the results of steps.

use super::*;
use crate::tests::waiting::eventually;
use crate::{Later, RunOptions, Whole};

/// Counters, whose numbers become keys of orders; and lines of the orders.
struct Orders {
    db: Database<Occ>,
    counters: Table<Item, Occ>,
    orders: Table<Item, Occ>,
    lines: Table<Item, Occ>,
}

/// Makes three tables of these ranks, of which the first has rows 0..4.
fn orders(ranks: [u16; 3]) -> Orders {
    let builder = Database::<Occ>::builder().policy(Policy::Pipelined);
    let db = builder.manual_epochs(1).build().unwrap();
    let [counters, orders, lines] =
        ["counters", "orders", "lines"].map(|name| db.table::<Item>(name).unwrap());
    for (table, rank) in [&counters, &orders, &lines].into_iter().zip(ranks) {
        table.set_rank(rank).unwrap();
    }
    db.run(|tx| (0..4).try_for_each(|id| counters.insert(tx, Item::new(id, 0)))).unwrap();
    Orders { db, counters, orders, lines }
}

impl Orders {
    /// Counts, and inserts an order with that number and three lines.
    fn place(&self, tx: &Tx<'_, Occ>, counter: u64) -> Result<Later<u64>, Abort> {
        let number = self.counters.defer(tx, counter, Item::COUNT, (), move |count, ()| {
            *count += 1;
            counter * 10_000 + *count as u64
        })?;
        let row = number.map(move |&id| Item::new(id, counter as i64));
        self.orders.defer_insert_at(tx, &number.map(|&id| Some(id)), row)?;
        for line in 0..3 {
            let id = number.map(move |&id| id * 10 + line);
            let key = id.map(move |&id| (line < 2).then_some(id));
            self.lines.defer_insert_at(tx, &key, id.map(|&id| Item::new(id, 0)))?;
            self.counters.update(tx, (counter + 1 + line) % 4, Item::SMALL.set(line as u8))?;
        }
        Ok(number)
    }

    /// Returns the numbers of attempts that were not tame, and of conflicts.
    fn not_tame(&self) -> (u64, u64) {
        let stats = self.db.stats();
        let locks = stats.locks;
        let wild = locks.wild_reads + locks.wild_keys + locks.wild_others;
        let unchained = locks.unchained_holds + locks.unchained_late + locks.unchained_others;
        (wild + unchained, stats.total_aborts())
    }

    fn assert_free(&self) {
        for table in [&self.counters, &self.orders, &self.lines] {
            super::assert_free(table, "after all");
        }
    }
}

fn count_of(orders: &Orders, table: &Table<Item, Occ>, key: u64) -> Option<i64> {
    orders.db.run(|tx| table.get(tx, key, Item::COUNT)).unwrap()
}

/// Late keys above all ranks that the transaction has locked: it is tame.
#[test]
fn keys_that_come_late_leave_a_transaction_tame() {
    let orders = orders([1, 2, 3]);
    let number = orders.db.run_deferred(|tx| orders.place(tx, 2));
    assert_eq!(number, Ok(20_001));
    assert_eq!(orders.not_tame(), (0, 0));
    let row = orders.db.run(|tx| orders.orders.read(tx, 20_001, Whole));
    assert_eq!(row, Ok(Item::new(20_001, 2)));
    let lines = [200_010, 200_011, 200_012].map(|id| count_of(&orders, &orders.lines, id));
    assert_eq!(lines, [Some(0), Some(0), None]);
    // An update, and a delete, of rows whose keys follow from one another.
    let next = |count: &mut i64| {
        *count -= 1;
        20_000 + *count as u64 + 1
    };
    let before = orders.not_tame();
    let found = orders.db.run_deferred(|tx| {
        let number = orders.counters.defer(tx, 2, Item::COUNT, (), move |count, ()| next(count))?;
        let key = number.map(|&id| Some(id));
        let line = orders.orders.defer_at(tx, &key, Item::COUNT, (), |count, ()| {
            *count += 5;
            *count as u64 - 7
        })?;
        let line = (&number, &line);
        let id = line.0.zip(line.1).map(|(id, line)| line.map(|line| id * 10 + line));
        orders.lines.defer_delete_at(tx, &id)?;
        let none = orders.orders.defer_at(tx, &number.map(|_| None), Item::COUNT, (), |_, ()| 1)?;
        Ok((id, none))
    });
    assert_eq!(found, Ok((Some(200_010), None)));
    assert_eq!(orders.not_tame(), before);
    assert_eq!(count_of(&orders, &orders.orders, 20_001), Some(7));
    let lines = [200_010, 200_011].map(|id| count_of(&orders, &orders.lines, id));
    assert_eq!(lines, [None, Some(0)]);
    orders.assert_free();
}

/// A late key below, or at, a rank that the transaction has locked: the next attempt computes the
/// key in the closure.
#[test]
fn keys_that_come_too_late_are_computed_in_the_closure() {
    for ranks in [[2, 1, 3], [1, 1, 2], [1, 3, 0]] {
        let orders = orders(ranks);
        let number = orders.db.run_deferred(|tx| orders.place(tx, 2));
        assert_eq!(number, Ok(20_001));
        assert_eq!(orders.not_tame(), (2, 1), "{ranks:?}");
        assert_eq!(count_of(&orders, &orders.orders, 20_001), Some(2));
        assert_eq!(count_of(&orders, &orders.counters, 2), Some(1));
        orders.assert_free();
    }
}

/// A rank changes when the commit has sorted its late keys, and its desk does not show it yet. If
/// it went on by the old ranks, it and another commit could wait for one another.
#[test]
fn a_commit_whose_ranks_change_before_its_desk_shows_it_begins_again() {
    let orders = orders([1, 2, 3]);
    let (table, mut is_first) = (orders.orders.clone(), true);
    let hook = move |point| {
        if point == Point::Prepared && std::mem::take(&mut is_first) {
            table.set_rank(9).unwrap();
        }
    };
    let number = with_hook(hook, || orders.db.run_deferred(|tx| orders.place(tx, 2)));
    assert_eq!(number, Ok(20_001));
    assert_eq!(orders.not_tame(), (2, 1), "the next attempt computes the keys in the closure");
    assert_eq!(count_of(&orders, &orders.orders, 20_001), Some(2));
    orders.assert_free();
}

/// What a commit cannot do with a late key ends as the closure's operation would have.
#[test]
fn outcomes_of_late_keys_are_those_of_known_keys() {
    let orders = orders([1, 2, 3]);
    orders.db.run(|tx| orders.orders.insert(tx, Item::new(20_001, 7))).unwrap();
    let few = RunOptions::new().attempts_max(20);
    let placed = orders.db.with(few).run_deferred(|tx| orders.place(tx, 2));
    assert_eq!(placed, Err(Abort::Duplicate));
    assert_eq!(count_of(&orders, &orders.counters, 2), Some(0), "nothing has been executed");
    let key = |tx: &Tx<'_, Occ>| {
        let id = orders.counters.defer(tx, 1, Item::COUNT, (), |count, ()| {
            *count += 1;
            *count as u64
        })?;
        Ok::<_, Abort>(id.map(|&id| Some(id)))
    };
    let missing = orders.db.run_deferred(|tx| {
        orders.orders.defer_at(tx, &key(tx)?, Item::COUNT, (), |count, ()| *count += 1)
    });
    assert_eq!(missing, Err(Abort::NotFound));
    let missing = orders.db.run(|tx| orders.orders.defer_delete_at(tx, &key(tx)?));
    assert_eq!(missing, Err(Abort::NotFound));
    // A guard and a panic behind the late key.
    let guarded = orders.db.run_deferred(|tx| {
        let number = orders.place(tx, 3)?;
        tx.require(&number.map(|_| false))?;
        Ok(number)
    });
    assert_eq!(guarded, Err(Abort::Guard));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        orders.db.run_deferred(|tx| {
            let number = orders.place(tx, 3)?;
            Ok(number.map(|_| -> u64 { std::panic::resume_unwind(Box::new(7_u8)) }))
        })
    }));
    assert!(panicked.is_err());
    assert_eq!([1, 3].map(|key| count_of(&orders, &orders.counters, key)), [Some(0); 2]);
    assert_eq!(count_of(&orders, &orders.orders, 30_001), None);
    // The same row twice.
    let twice = orders.db.run_deferred(|tx| {
        let key = key(tx)?;
        let row = key.map(|key| Item::new(key.unwrap(), 1));
        orders.orders.defer_insert_at(tx, &key, row)?;
        orders.orders.defer_at(tx, &key, Item::COUNT, (), |count, ()| {
            *count += 1;
            *count
        })
    });
    assert_eq!(twice, Ok(Some(2)));
    assert_eq!(count_of(&orders, &orders.orders, 1), Some(2));
    orders.assert_free();
}

/// A closure that reads after an operation with a late key could miss its own row.
#[test]
fn a_closure_reads_the_rows_that_it_has_inserted_under_late_keys() {
    let orders = orders([1, 2, 3]);
    let read = |tx: &Tx<'_, Occ>| {
        orders.place(tx, 2)?;
        orders.orders.get(tx, 20_001, Item::COUNT)
    };
    assert_eq!(orders.db.run(read), Ok(Some(2)));
    let refused = orders.db.try_run(|tx| {
        orders.place(tx, 2)?;
        match orders.orders.get(tx, 20_002, Item::COUNT)? {
            Some(_) => Err::<(), Refusal>(Refusal("found".to_string())),
            None => Err(Refusal("missed".to_string())),
        }
    });
    assert_eq!(refused.map_err(|Refusal(text)| text), Err("found".to_string()));
    orders.assert_free();
}

struct Refusal(String);

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Refusal {
        Refusal(abort.to_string())
    }
}

/// A transaction of which a late key is still to come keeps its successor behind it in the tables
/// of late keys.
#[test]
fn a_successor_waits_for_late_keys_at_the_gate_of_their_tables() {
    let orders = orders([1, 2, 3]);
    std::thread::scope(|scope| {
        let orders = &orders;
        let ((say, reached), (go, stopped)) = (channel(), channel::<()>());
        let first = scope.spawn(move || {
            let mut session = orders.db.session().unwrap();
            let mut is_first = true;
            let hook = move |point| {
                if point == Point::Locked && std::mem::take(&mut is_first) {
                    say.send(()).unwrap();
                    let _ = stopped.recv();
                }
            };
            with_hook(hook, || session.run_deferred(|tx| orders.place(tx, 2)))
        });
        receive("all known rows are locked", &reached);
        let second = scope.spawn(move || {
            let mut session = orders.db.session().unwrap();
            session.run(|tx| {
                orders.counters.update(tx, 2, Item::COUNT.add(1))?;
                orders.orders.insert(tx, Item::new(20_001, 9))
            })
        });
        let waits = || !orders.db.inner.engine.parking.waited_for().is_empty();
        eventually("the second one waits", || second.is_finished() || waits());
        let record = orders.orders.core().index.find(&[20_001]);
        let crate::index::Found::Record(record) = record else { panic!("it is linked") };
        let at = orders.orders.core().layout.first_of(record);
        if at.cell_word(1).load(Ordering::Relaxed) != 0 {
            // They would wait for one another.
            end_process("the second one has locked what the first one locks before it");
        }
        drop(go);
        assert_eq!(first.join().unwrap(), Ok(20_001));
        assert_eq!(second.join().unwrap(), Err(Abort::Duplicate));
    });
    assert_eq!(count_of(&orders, &orders.counters, 2), Some(1));
    orders.assert_free();
}

/// More threads than cores place orders: no attempt meets a conflict, and no number is lost.
#[test]
fn orders_with_late_keys_meet_no_conflict() {
    const ROUNDS: i64 = 60;
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from) as i64 + 1;
    let orders = orders([1, 2, 3]);
    std::thread::scope(|scope| {
        for number in 0..threads {
            let orders = &orders;
            scope.spawn(move || {
                let mut session = orders.db.session().unwrap();
                for round in 0..ROUNDS {
                    let counter = (number * 7 + round) as u64 % 2;
                    session.run_deferred(|tx| orders.place(tx, counter)).unwrap();
                }
            });
        }
    });
    assert_eq!(orders.not_tame(), (0, 0), "{:?}", orders.db.stats());
    let counts = [0, 1].map(|key| count_of(&orders, &orders.counters, key).unwrap());
    assert_eq!(counts.iter().sum::<i64>(), threads * ROUNDS);
    for (counter, count) in (0..).zip(counts) {
        for id in (1..=count as u64).map(|number| counter * 10_000 + number) {
            assert_eq!(count_of(&orders, &orders.orders, id), Some(counter as i64));
            assert_eq!(count_of(&orders, &orders.lines, id * 10 + 1), Some(0));
        }
        assert_eq!(count_of(&orders, &orders.orders, counter * 10_000 + count as u64 + 1), None);
    }
    orders.assert_free();
}
