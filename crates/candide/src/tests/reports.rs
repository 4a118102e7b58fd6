//! Reports to the program: conflicts, limits, memory, and the sessions that hold memory back.

use super::parcels::Parcel;
use super::rows::Item;
use super::{ForProtocol, for_each};
use crate::engine::{Protocol, Versions};
use crate::protocols::Occ;
use crate::sync::{AtomicBool, Ordering};
use crate::{
    Abort, Bytes, Column, Conflict, Database, Group, OldestPin, Record, Refused, RunOptions,
    Session, Stats, TableOptions, Tx, Updater,
};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

fn unwrap<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

/// A row whose key is longer than a conflict keeps.
#[derive(Debug, Clone, Copy)]
struct Long {
    key: Bytes<40>,
    value: u64,
}

/// Returns a key of the words 1, 2, 3, 4, 5.
fn long_key() -> Bytes<40> {
    Bytes::new(std::array::from_fn(|byte| if byte % 8 == 7 { byte as u8 / 8 + 1 } else { 0 }))
}

/// Returns the bytes of the key's first words, as they are shown.
fn shown_bytes(words: usize) -> String {
    (1..=words).map(|word| format!(r"{}\x0{word}", r"\x00".repeat(7))).collect()
}

impl Long {
    const VALUE: crate::Column<Long, u64> = crate::schema::Column::new(0, 0, "value");
}

impl Record for Long {
    type Key = Bytes<40>;
    type Index = crate::Hashed;
    type Image = [u64; 1];
    const NAME: &'static str = "Long";
    const GROUPS: &'static [Group] = &[Group::new("all", 1)];

    fn key(&self) -> Self::Key {
        self.key
    }
    fn store(&self, words: &mut [u64]) {
        Self::VALUE.put(words, &self.value);
    }
    fn load(key: &Self::Key, words: &[u64]) -> Long {
        Long { key: *key, value: Self::VALUE.take(words) }
    }
}

#[test]
fn a_conflict_is_one_readable_line() {
    for splitting in [true, false] {
        let db = Database::<Occ>::builder().timestamp_splitting(splitting).build().unwrap();
        let (items, longs) =
            (db.table::<Item>("accounts").unwrap(), db.table::<Long>("longs").unwrap());
        let key = long_key();
        unwrap(db.run(|tx| {
            items.insert(tx, Item::new(7, 0))?;
            longs.insert(tx, Long { key, value: 0 })
        }));
        let mut session = db.session().unwrap();
        assert_eq!(session.last_conflict(), None);
        let mut line = |meet: &dyn Fn(&crate::Tx<'_, Occ>) -> Result<(), Abort>| {
            let result = session.run_with(RunOptions::new().attempts_max(1), meet);
            assert_eq!(result, Err(Abort::AttemptsExhausted));
            session.last_conflict().unwrap().to_string()
        };
        let read_changed = line(&|tx| {
            items.read(tx, &7, Item::OTHER)?;
            db.run(|tx| items.update(tx, &7, Item::OTHER.add(1)))?;
            items.update(tx, &7, Item::COUNT.add(1))
        });
        let group = if splitting { "cold" } else { "*" };
        assert_eq!(read_changed, format!("read_changed on accounts.{group}, key 7"));
        let existence = line(&|tx| {
            longs.update(tx, &key, Long::VALUE.add(1))?;
            db.run(|tx| longs.delete(tx, &key))
        });
        let group = if splitting { "all" } else { "*" };
        assert_eq!(
            existence,
            format!(r#"existence on longs.{group}, key b"{}".."#, shown_bytes(4))
        );
        let phantom = line(&|tx| {
            items.get(tx, &8, Item::COUNT)?;
            db.run(|tx| items.insert(tx, Item::new(8, 0)))?;
            items.update(tx, &7, Item::COUNT.add(1))
        });
        assert_eq!(phantom, "phantom on accounts, an absent key");
        let yielded = line(&|tx| {
            db.inner.engine.token.try_take(999);
            items.update(tx, &7, Item::COUNT.add(1))
        });
        assert_eq!(yielded, "yielded");
        db.inner.engine.token.release(999);
    }
}

#[test]
fn a_closure_sees_why_its_last_attempt_failed() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    unwrap(db.run(|tx| (0..2).try_for_each(|id| table.insert(tx, Item::new(id, 0)))));
    let mut session = db.session().unwrap();
    for _ in 0..2 {
        let mut seen = Vec::<Option<Conflict>>::new();
        unwrap(session.run(|tx| {
            seen.push(tx.last_conflict());
            // Adapts: locks the row that changed.
            match tx.last_conflict() {
                Some(conflict) if conflict.key == Some(vec![0]) => {
                    _ = table.read_for_update(tx, &0, Item::COUNT)?;
                }
                _ => drop(table.read(tx, &0, Item::COUNT)?),
            }
            match tx.attempt() {
                1 => db.run(|tx| table.update(tx, &0, Item::COUNT.add(1)))?,
                2 => {
                    table.read(tx, &1, Item::COUNT)?;
                    db.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))?;
                }
                _ => {}
            }
            // A conflict of this attempt does not replace the one before.
            assert_eq!(tx.last_conflict(), *seen.last().unwrap());
            table.update(tx, &0, Item::OTHER.add(1))
        }));
        let keys: Vec<_> = seen
            .iter()
            .map(|seen| seen.as_ref().and_then(|conflict| conflict.key.clone()))
            .collect();
        assert_eq!(keys, [None, Some(vec![0]), Some(vec![1])]);
        // The session keeps the conflict; the next transaction begins without one.
        assert_eq!(session.last_conflict().unwrap().key, Some(vec![1]));
    }
    assert_eq!(db.run(|tx| Ok::<_, Abort>(tx.last_conflict())), Ok(None));
}

#[test]
fn a_conflict_names_the_key_however_the_table_keeps_it() {
    for aware in [true, false] {
        let db = Database::new();
        let options = TableOptions::default().contention_aware_keys(aware);
        let parcels = db.table_with::<Parcel>("parcels", options).unwrap();
        unwrap(db.run(|tx| parcels.insert(tx, Parcel::new(3, 500))));
        let mut session = db.session().unwrap();
        let met = session.run_with(RunOptions::new().attempts_max(1), |tx| {
            parcels.read(tx, &(3, 500), Parcel::NOTE)?;
            db.run(|tx| parcels.update(tx, &(3, 500), Parcel::NOTE.add(1)))?;
            parcels.update(tx, &(3, 500), Parcel::NOTE.add(1))
        });
        assert_eq!(met, Err(Abort::AttemptsExhausted));
        let conflict = session.last_conflict().unwrap();
        assert_eq!(
            (conflict.key, conflict.key_is_longer),
            (Some(vec![3, 500]), false),
            "aware {aware}"
        );
    }
}

#[test]
fn every_conflict_is_told_at_once_and_before_the_refusal() {
    for cached in [true, false] {
        let db = Database::new();
        let table = db.table::<Item>("rows").unwrap();
        unwrap(db.run(|tx| (0..3).try_for_each(|id| table.insert(tx, Item::new(id, 0)))));
        let (mut session, told) = (db.session().unwrap(), RefCell::new(Vec::new()));
        let tell = |conflict: &Conflict| {
            // Meanwhile no session is locked out, and this is not a part of the transaction.
            let mut other = db.session().unwrap();
            unwrap(other.run(|tx| table.update(tx, &0, Item::COUNT.add(1))));
            let nested = db.run(|_| Ok::<_, Abort>(()));
            assert_eq!(nested, if cached { Err(Abort::Nested) } else { Ok(()) });
            told.borrow_mut().push(conflict.key.clone().unwrap());
        };
        let options = RunOptions::new().attempts_max(3).on_conflict(&tell);
        let mut other = db.session().unwrap();
        let mut attempts = 0;
        let mut body = |tx: &crate::Tx<'_, Occ>| {
            // The callback was called for the attempts before.
            assert_eq!(told.borrow().len(), attempts);
            let id = attempts as u64;
            attempts += 1;
            table.read(tx, &id, Item::COUNT)?;
            other.run(|tx| table.update(tx, &id, Item::COUNT.add(1)))?;
            table.update(tx, &id, Item::OTHER.add(1))
        };
        let end = if cached {
            db.run_with(options, &mut body)
        } else {
            session.run_with(options, &mut body)
        };
        assert_eq!(end, Err(Abort::AttemptsExhausted));
        assert_eq!(told.take(), [[0], [1], [2]]);
        assert_eq!(unwrap(db.run(|tx| table.read(tx, &0, Item::COUNT))), 4);
        // Without a conflict the callback is not called.
        unwrap(db.run_with(options, |tx| table.update(tx, &1, Item::COUNT.add(1))));
        assert_eq!(told.take(), Vec::<Vec<u64>>::new());
    }
}

#[test]
fn limits_on_retrying_at_their_edges() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    unwrap(db.run(|tx| table.insert(tx, Item::new(1, 0))));
    let mut session = db.session().unwrap();
    let now = Instant::now();
    let past = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    let far = now + Duration::from_secs(3_600);
    let none = RunOptions::new();
    // The attempts made, if each of them meets a conflict, or none does.
    let cases = [
        (none.attempts_max(0), 1, Abort::AttemptsExhausted),
        (none.attempts_max(1), 1, Abort::AttemptsExhausted),
        (none.attempts_max(2), 2, Abort::AttemptsExhausted),
        (none.deadline(past), 1, Abort::DeadlinePassed),
        (none.deadline(now), 1, Abort::DeadlinePassed),
        (none.deadline(past).attempts_max(5), 1, Abort::DeadlinePassed),
        (none.deadline(past).attempts_max(1), 1, Abort::AttemptsExhausted),
        (none.deadline(far).attempts_max(3), 3, Abort::AttemptsExhausted),
        // The later call counts.
        (
            none.attempts_max(7).attempts_max(2).deadline(past).deadline(far),
            2,
            Abort::AttemptsExhausted,
        ),
    ];
    for (options, attempts, refusal) in cases {
        let mut made = 0;
        let hopeless = session.run_with(options, |tx| {
            made = tx.attempt();
            table.read(tx, &1, Item::COUNT)?;
            db.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))?;
            table.update(tx, &1, Item::COUNT.add(1))
        });
        assert_eq!((hopeless, made), (Err(refusal), attempts), "{options:?}");
        assert_eq!(
            session.run_with(options, |tx| Ok::<_, Abort>(tx.attempt())),
            Ok(1),
            "{options:?}"
        );
    }
    // A deadline that passes inside the closure only prevents another attempt.
    let soon = || none.deadline(Instant::now() + Duration::from_millis(2));
    let sleep = || std::thread::sleep(Duration::from_millis(4));
    let late = session.run_with(soon(), |tx| {
        sleep();
        table.update(tx, &1, Item::COUNT.add(1))
    });
    assert_eq!(late, Ok(()));
    let mut made = 0;
    let late = session.run_with(soon(), |tx| {
        made = tx.attempt();
        table.read(tx, &1, Item::COUNT)?;
        db.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))?;
        sleep();
        table.update(tx, &1, Item::COUNT.add(1))
    });
    assert_eq!((late, made), (Err(Abort::DeadlinePassed), 1));
    // An error of the closure is returned even after the deadline.
    let late: Result<(), Abort> = session.run_with(none.deadline(past), |_| Err(Abort::NotFound));
    assert_eq!(late, Err(Abort::NotFound));
    // Giving way to the token counts as an attempt, and is not waited out beyond the limits.
    db.inner.engine.token.try_take(999);
    let mut blocked =
        |options| session.run_with(options, |tx| table.update(tx, &1, Item::COUNT.add(1)));
    assert_eq!(blocked(none.attempts_max(1)), Err(Abort::AttemptsExhausted));
    assert_eq!(blocked(none.deadline(past)), Err(Abort::DeadlinePassed));
    assert_eq!(blocked(none.deadline(far)), Ok(()), "nobody waits for the token for ever");
    db.inner.engine.token.release(999);
}

struct Healthy;

impl ForProtocol for Healthy {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().manual_epochs(100).build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        let pass = |count: u32| (0..count).for_each(|_| db.inner.engine.epochs.pass());
        pass(1);
        let health = db.health();
        assert_eq!(
            (health.epoch_lag_ms, health.oldest_pin, health.garbage, health.sessions),
            (0, None, 0, 0)
        );
        let mut session = db.session().unwrap();
        let number = session.number();
        unwrap(session.run(|tx| {
            pass(5);
            let health = db.health();
            assert_eq!((health.epoch_lag_ms, health.sessions), (5, 1));
            assert_eq!(health.oldest_pin, Some(OldestPin { age_ms: 5, session: number }));
            table.insert(tx, Item::new(1, 0))
        }));
        assert_eq!(db.health().oldest_pin, None);
        assert!(db.health().reserved_bytes > 0);
        assert_eq!(db.health().reserved_bytes, db.memory().reserved_bytes);
        // The bound has not changed since the last pass.
        assert_eq!(db.health().epoch_lag_ms, 5);
        pass(1);
        assert_eq!(db.health().epoch_lag_ms, 0);
        unwrap(session.run(|tx| table.delete(tx, &1)));
        // The record, and, under protocols with separate versions, one of each of its two units.
        let garbage = if P::Versions::SHORT_WORDS > 0 { 3 } else { 1 };
        assert_eq!(db.health().garbage, garbage);
        assert_eq!(db.memory().garbage, garbage);
        drop(session);
        assert_eq!((db.health().sessions, db.health().garbage), (0, garbage));
    }
}

#[test]
fn health_tells_who_holds_memory_back() {
    for_each(&Healthy);
}

#[test]
fn the_oldest_of_several_pins_is_named() {
    let db = Database::<Occ>::builder().manual_epochs(100).build().unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let numbers = (first.number(), second.number());
    assert_ne!(numbers.0, numbers.1);
    unwrap(first.run(|_| {
        db.inner.engine.epochs.pass();
        db.inner.engine.epochs.pass();
        second.run(|_| {
            db.inner.engine.epochs.pass();
            assert_eq!(db.health().oldest_pin, Some(OldestPin { age_ms: 3, session: numbers.0 }));
            Ok::<_, Abort>(())
        })
    }));
}

struct TablesTellWhatTheyTake;

impl ForProtocol for TablesTellWhatTheyTake {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        assert_eq!(db.tables(), []);
        let small = db.table::<Item>("small").unwrap();
        let large =
            db.table_with::<Item>("large", TableOptions::default().capacity(100_000)).unwrap();
        unwrap(db.run(|tx| (0..5_000).try_for_each(|id| large.insert(tx, Item::new(id, 0)))));
        assert_eq!(db.tables()[1].version_bytes, 0, "each row has one version");
        unwrap(db.run(|tx| large.update(tx, &1, Item::COUNT.add(1))));
        let tables = db.tables();
        assert_eq!(tables[1].version_bytes > 0, P::Versions::WORDS > 0);
        let names: Vec<_> = tables.iter().map(|table| &*table.name).collect();
        assert_eq!(names, ["small", "large"]);
        for (table, described) in
            [(small.memory_bytes(), &tables[0]), (large.memory_bytes(), &tables[1])]
        {
            assert_eq!(
                table,
                described.record_bytes + described.version_bytes + described.index_bytes
            );
        }
        assert_eq!(tables[0].record_bytes, 0);
        assert!(
            tables[1].record_bytes >= 5_000 * 4 * 8 && tables[1].index_bytes >= 100_000 * 8,
            "{tables:?}"
        );
        let sum: usize = [small.memory_bytes(), large.memory_bytes()].iter().sum();
        assert!(sum <= db.health().reserved_bytes);
    }
}

#[test]
fn tables_tell_what_they_take() {
    for_each(&TablesTellWhatTheyTake);
}

#[test]
fn a_row_is_shown_by_its_table_and_key() {
    let db = Database::new();
    let (items, longs) = (db.table::<Item>("rows").unwrap(), db.table::<Long>("longs").unwrap());
    unwrap(db.run(|tx| {
        let row = items.find(tx, &7)?;
        assert_eq!(
            (format!("{row:?}"), row.to_string()),
            (r#"Row { table: "rows", key: 7 }"#.into(), "rows[7]".into())
        );
        assert_eq!(
            longs.find(tx, &long_key())?.to_string(),
            format!(r#"longs[b"{}"]"#, shown_bytes(5))
        );
        Ok(())
    }));
}

struct ShownInALine;

impl ForProtocol for ShownInALine {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let items = db.table::<Item>("rows").unwrap();
        let mut session = db.session().unwrap();
        unwrap(session.run(|tx| items.insert(tx, Item::new(1, 0))));
        let shown = [format!("{db:?}"), format!("{session:?}"), format!("{items:?}")];
        let name = db.properties().name;
        assert!(
            shown[0].starts_with(&format!(
                r#"Database {{ protocol: "{name}", tables: 1, sessions: 1, "#
            )),
            "{shown:?}"
        );
        let number = session.number();
        assert_eq!(
            shown[1],
            format!(r#"Session {{ protocol: "{name}", number: {number}, commits: 1, .. }}"#)
        );
        assert_eq!(shown[2], r#"Table { name: "rows", row: "Item", .. }"#);
        assert!(shown.iter().all(|text| text.len() < 100 && !text.contains('\n')), "{shown:?}");
    }
}

#[test]
fn databases_sessions_and_tables_are_shown_in_a_line() {
    for_each(&ShownInALine);
}

/// Runs a transaction that ends in an abort, and returns the counts of the causes.
fn causes(
    session: &mut Session<Occ>,
    expected: Abort,
    body: &dyn Fn(&Tx<'_, Occ>) -> Result<(), Abort>,
) -> Stats {
    let before = session.stats();
    let ended = session.run_with(RunOptions::new().attempts_max(2), body);
    assert_eq!(ended, Err(expected));
    let mut after = session.stats();
    after.aborts.iter_mut().zip(before.aborts).for_each(|(count, before)| *count -= before);
    Stats {
        commits: after.commits - before.commits,
        user_errors: after.user_errors - before.user_errors,
        retries: after.retries - before.retries,
        ..after
    }
}

#[test]
fn attempts_are_counted_by_what_they_ended_in() {
    let db = Database::<Occ>::builder().build().unwrap();
    let (items, foreign) =
        (db.table::<Item>("items").unwrap(), Database::<Occ>::builder().build().unwrap());
    let foreign = foreign.table::<Item>("items").unwrap();
    unwrap(db.run(|tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    let mut session = db.session().unwrap();
    let counts =
        |stats: &Stats| stats.abort_reasons().filter(|(_, count)| *count > 0).collect::<Vec<_>>();

    // Conflicts: two attempts, and one refusal to make a third.
    type Body<'a> = &'a dyn Fn(&Tx<'_, Occ>) -> Result<(), Abort>;
    let read_changed: Body<'_> = &|tx| {
        items.read(tx, &1, Item::OTHER)?;
        db.run(|tx| items.update(tx, &1, Item::OTHER.add(1)))?;
        items.update(tx, &2, Item::COUNT.add(1))
    };
    let phantom: Body<'_> = &|tx| {
        let absent = 100 + db.stats().commits;
        items.get(tx, &absent, ())?;
        db.run(|tx| items.insert(tx, Item::new(absent, 0)))?;
        items.update(tx, &2, Item::COUNT.add(1))
    };
    for (cause, body) in [(Abort::ReadChanged, read_changed), (Abort::Phantom, phantom)] {
        let stats = causes(&mut session, Abort::AttemptsExhausted, body);
        assert_eq!(counts(&stats), [(cause.name(), 2), (Abort::AttemptsExhausted.name(), 1)]);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (2, 1, 0, 0)
        );
    }
    let locked = |session: &mut Session<Occ>, expected| {
        causes(session, expected, &|tx| items.update(tx, &1, Item::COUNT.add(1)))
    };
    let mut holder = db.session().unwrap();
    unwrap(holder.run(|tx| {
        items.read_for_update(tx, &1, Item::COUNT)?;
        let other = || locked(&mut session, Abort::AttemptsExhausted);
        let stats = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        assert_eq!(
            counts(&stats),
            [(Abort::Locked.name(), 2), (Abort::AttemptsExhausted.name(), 1)]
        );
        // On the holder's thread it would wait for itself.
        let stats = locked(&mut session, Abort::Nested);
        assert_eq!(counts(&stats), [(Abort::Locked.name(), 1), (Abort::Nested.name(), 1)]);
        Ok(())
    }));

    // Outcomes of updates are found by the engine; any other abort that a closure returns counts as
    // its own error.
    let guard: Body<'_> = &|tx| items.update(tx, &1, Item::COUNT.sub(1).at_least(0));
    let overflow: Body<'_> = &|tx| items.update(tx, &1, Item::OTHER.sub(1_000));
    for (cause, body) in [(Abort::Guard, guard), (Abort::Overflow, overflow)] {
        let stats = causes(&mut session, cause, body);
        assert_eq!(counts(&stats), [(cause.name(), 1)]);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (0, 0, 0, 0)
        );
    }
    let duplicate: Body<'_> = &|tx| items.insert(tx, Item::new(1, 0));
    let absent: Body<'_> = &|tx| items.read(tx, &9_999, ());
    let elsewhere: Body<'_> = &|tx| foreign.read(tx, &1, ());
    for (cause, body) in
        [(Abort::Duplicate, duplicate), (Abort::NotFound, absent), (Abort::ForeignTable, elsewhere)]
    {
        let stats = causes(&mut session, cause, body);
        assert_eq!(counts(&stats), []);
        assert_eq!(
            (stats.total_aborts(), stats.retries, stats.commits, stats.user_errors),
            (0, 0, 0, 1)
        );
    }
}

#[test]
fn counts_of_a_session_that_ends_are_neither_lost_nor_doubled() {
    const ROUNDS: u64 = 2_000;
    let db = Database::<Occ>::builder().build().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let mut session = db.session().unwrap();
                unwrap(session.run(|_| Ok(())));
            }
            done.store(true, Ordering::Release);
        });
        let mut last = 0;
        while !done.load(Ordering::Acquire) {
            let commits = db.stats().commits;
            assert!(last <= commits && commits <= ROUNDS, "{commits} after {last}");
            last = commits;
        }
    });
    assert_eq!(db.stats().commits, ROUNDS);
}

#[test]
fn the_panic_of_an_updater_is_counted() {
    #[derive(Clone, Copy)]
    struct Boom;

    impl Updater<Item> for Boom {
        type Target = Column<Item, i64>;

        fn target(&self) -> Self::Target {
            Item::COUNT
        }

        fn apply(&self, _: &mut i64) -> Result<(), Refused> {
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }

    let db = Database::<Occ>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    unwrap(session.run(|tx| items.insert(tx, Item::new(1, 0))));
    let ended =
        catch_unwind(AssertUnwindSafe(|| session.run(|tx| items.update_with(tx, &1, Boom))));
    assert!(ended.is_err());
    assert_eq!((session.stats().commits, session.stats().user_errors), (1, 1));
}
