//! Tests of the reports to the program: conflicts, limits, memory, and the sessions that keep
//! memory from being freed.

use super::rows::Item;
use crate::catalog::NAMES_READ;
use crate::engine::{Protocol, Versions};
use crate::protocols::Occ;
use crate::report::OldestPin;
use crate::schema::{RowReader, RowWriter};
use crate::{Abort, Bytes, Database, Group, Record, RunOptions, TableOptions};
use std::time::{Duration, Instant};

fn unwrap<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

/// A row whose key is longer than the part of a key that a conflict keeps.
#[derive(Debug, Clone, Copy)]
struct Long {
    key: Bytes<40>,
    value: u64,
}

/// Returns the key that consists of the words 1, 2, 3, 4, 5.
fn long_key() -> Bytes<40> {
    Bytes::new(std::array::from_fn(|byte| if byte % 8 == 7 { byte as u8 / 8 + 1 } else { 0 }))
}

/// Returns the bytes of the key's first `words` words, in the form in which a message shows them.
fn shown_bytes(words: usize) -> String {
    (1..=words).map(|word| format!(r"{}\x0{word}", r"\x00".repeat(7))).collect()
}

impl Long {
    const VALUE: crate::Column<Long, u64> = crate::Column::new(0, 0, "value");
}

impl Record for Long {
    type Key = Bytes<40>;
    type Index = crate::Hashed;
    type Image = [u64; 1];
    const META: crate::schema::Meta = crate::schema::Meta::new("Long", &[Group::new("all", 1)]);

    fn key(&self) -> Self::Key {
        self.key
    }
    fn store(&self, row: &mut RowWriter<'_>) {
        Self::VALUE.put(row, &self.value);
    }
    fn load(key: &Self::Key, row: &RowReader<'_>) -> Long {
        Long { key: *key, value: Self::VALUE.take(row) }
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
            let result = session.with(RunOptions::new().attempts_max(1)).run(meet);
            assert_eq!(result, Err(Abort::AttemptsExhausted));
            session.last_conflict().unwrap().to_string()
        };
        let read_changed = line(&|tx| {
            items.read(tx, 7, Item::OTHER)?;
            db.run(|tx| items.update(tx, 7, Item::OTHER.add(1)))?;
            items.update(tx, 7, Item::COUNT.add(1))
        });
        let group = if splitting { "cold" } else { "*" };
        assert_eq!(read_changed, format!("read_changed on accounts.{group}, key id: 7"));
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
            items.get(tx, 8, Item::COUNT)?;
            db.run(|tx| items.insert(tx, Item::new(8, 0)))?;
            items.update(tx, 7, Item::COUNT.add(1))
        });
        assert_eq!(phantom, "phantom on accounts, an absent key");
        let yielded = line(&|tx| {
            db.inner.engine.token.try_take(999);
            items.update(tx, 7, Item::COUNT.add(1))
        });
        assert_eq!(yielded, "yielded");
        db.inner.engine.token.release(999);
    }
}

#[test]
fn limits_on_attempts_and_time_hold_at_their_smallest_values() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    unwrap(db.run(|tx| table.insert(tx, Item::new(1, 0))));
    let mut session = db.session().unwrap();
    let now = Instant::now();
    let past = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    let far = now + Duration::from_secs(3_600);
    let none = RunOptions::new();
    // Each case has the options, the number of attempts made if every attempt meets a conflict, and
    // the final error.
    let cases = [
        (none.attempts_max(0), 1, Abort::AttemptsExhausted),
        (none.attempts_max(1), 1, Abort::AttemptsExhausted),
        (none.attempts_max(2), 2, Abort::AttemptsExhausted),
        (none.deadline(past), 1, Abort::DeadlinePassed),
        (none.deadline(now), 1, Abort::DeadlinePassed),
        (none.deadline(past).attempts_max(5), 1, Abort::DeadlinePassed),
        (none.deadline(past).attempts_max(1), 1, Abort::AttemptsExhausted),
        (none.deadline(far).attempts_max(3), 3, Abort::AttemptsExhausted),
        // Of two calls for the same limit, the later one counts.
        (
            none.attempts_max(7).attempts_max(2).deadline(past).deadline(far),
            2,
            Abort::AttemptsExhausted,
        ),
    ];
    for (options, attempts, refusal) in cases {
        let mut made = 0;
        let hopeless = session.with(options).run(|tx| {
            made = tx.attempt_number();
            table.read(tx, 1, Item::COUNT)?;
            db.run(|tx| table.update(tx, 1, Item::COUNT.add(1)))?;
            table.update(tx, 1, Item::COUNT.add(1))
        });
        assert_eq!((hopeless, made), (Err(refusal), attempts), "{options:?}");
        assert_eq!(session.with(options).run(|tx| Ok(tx.attempt_number())), Ok(1), "{options:?}");
    }
    // A deadline that passes inside the closure only prevents the next attempt.
    let soon = || none.deadline(Instant::now() + Duration::from_millis(2));
    let sleep = || std::thread::sleep(Duration::from_millis(4));
    let late = session.with(soon()).run(|tx| {
        sleep();
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!(late, Ok(()));
    let mut made = 0;
    let late = session.with(soon()).run(|tx| {
        made = tx.attempt_number();
        table.read(tx, 1, Item::COUNT)?;
        db.run(|tx| table.update(tx, 1, Item::COUNT.add(1)))?;
        sleep();
        table.update(tx, 1, Item::COUNT.add(1))
    });
    assert_eq!((late, made), (Err(Abort::DeadlinePassed), 1));
    // An error of the closure is returned even after the deadline.
    let late: Result<(), Abort> = session.with(none.deadline(past)).run(|_| Err(Abort::NotFound));
    assert_eq!(late, Err(Abort::NotFound));
    // An attempt that yields to the token counts as an attempt. The session does not wait for the
    // token beyond the limits.
    db.inner.engine.token.try_take(999);
    let mut blocked =
        |options| session.with(options).run(|tx| table.update(tx, 1, Item::COUNT.add(1)));
    assert_eq!(blocked(none.attempts_max(1)), Err(Abort::AttemptsExhausted));
    assert_eq!(blocked(none.deadline(past)), Err(Abort::DeadlinePassed));
    assert_eq!(blocked(none.deadline(far)), Ok(()), "no session waits for the token for ever");
    db.inner.engine.token.release(999);
}

protocol_tests!(all: health_names_the_session_that_delays_reclamation);
fn health_names_the_session_that_delays_reclamation<P: Protocol>() {
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
    unwrap(session.run(|tx| table.delete(tx, 1)));
    // The garbage is the record. Under protocols with separate versions, there is also one version
    // of each of the record's two units.
    let garbage = if P::Versions::SHORT_WORDS > 0 { 3 } else { 1 };
    assert_eq!(db.health().garbage, garbage);
    assert_eq!(db.memory().garbage, garbage);
    drop(session);
    assert_eq!((db.health().sessions, db.health().garbage), (0, garbage));
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
            Ok(())
        })
    }));
}

protocol_tests!(all: sizes_of_tables_are_reported);
fn sizes_of_tables_are_reported<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    assert_eq!(db.tables(), []);
    let small = db.table::<Item>("small").unwrap();
    let large = db.table_with::<Item>("large", TableOptions::default().capacity(100_000)).unwrap();
    unwrap(db.run(|tx| (0..5_000).try_for_each(|id| large.insert(tx, Item::new(id, 0)))));
    assert_eq!(db.tables()[1].version_bytes, 0, "each row has one version");
    unwrap(db.run(|tx| large.update(tx, 1, Item::COUNT.add(1))));
    let tables = db.tables();
    assert_eq!(tables[1].version_bytes > 0, P::Versions::WORDS > 0);
    let names: Vec<_> = tables.iter().map(|table| &*table.name).collect();
    assert_eq!(names, ["small", "large"]);
    for (table, described) in
        [(small.memory_bytes(), &tables[0]), (large.memory_bytes(), &tables[1])]
    {
        assert_eq!(table, described.record_bytes + described.version_bytes + described.index_bytes);
    }
    assert_eq!(tables[0].record_bytes, 0);
    assert!(
        tables[1].record_bytes >= 5_000 * 4 * 8 && tables[1].index_bytes >= 100_000 * 8,
        "{tables:?}"
    );
    let sum: usize = [small.memory_bytes(), large.memory_bytes()].iter().sum();
    assert!(sum <= db.health().reserved_bytes);
}

#[test]
fn a_row_is_shown_by_its_table_and_key() {
    let db = Database::new();
    let (items, longs) = (db.table::<Item>("rows").unwrap(), db.table::<Long>("longs").unwrap());
    unwrap(db.run(|tx| {
        let row = items.find(tx, 7)?;
        assert_eq!(
            (format!("{row:?}"), row.to_string()),
            (r#"Row { table: "rows", id: 7 }"#.into(), "rows[7]".into())
        );
        assert_eq!(
            longs.find(tx, &long_key())?.to_string(),
            format!(r#"longs[b"{}"]"#, shown_bytes(5))
        );
        Ok(())
    }));
}

protocol_tests!(all: databases_sessions_and_tables_are_displayed_in_one_line);
fn databases_sessions_and_tables_are_displayed_in_one_line<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    unwrap(session.run(|tx| items.insert(tx, Item::new(1, 0))));
    let shown = [format!("{db:?}"), format!("{session:?}"), format!("{items:?}")];
    let name = db.properties().name;
    assert!(
        shown[0]
            .starts_with(&format!(r#"Database {{ protocol: "{name}", tables: 1, sessions: 1, "#)),
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

/// A database with many tables makes the next one as fast as the first: it reads no other name.
#[test]
fn making_a_table_does_not_read_the_names_of_others() {
    let db = Database::new();
    let reads = |name: &str| {
        let before = NAMES_READ.get();
        db.table::<Item>(name).unwrap();
        NAMES_READ.get() - before
    };
    let first = reads("first");
    for number in 0..100 {
        assert_eq!(reads(&format!("table {number}")), first);
    }
    assert_eq!(reads("last"), first);
}
