//! Tests that histories of many threads are serializable in the way that their protocol promises.
//! The histories contain every kind of operation on rows.
//!
//! `CANDIDE_STRESS=n` makes the tests n times as long.

use super::properties;
use super::random_transactions::{Judge, Mix};
use super::rows::{Item, OfCount};
use super::threads::spawn;
use super::transactions::run;
use crate::engine::{Absence, Properties, Protocol};
use crate::experiments::Factor;
use crate::index::Found;
use crate::protocols::recorded::Event;
use crate::protocols::{Occ, Recorded, TicToc};
use crate::record::Tid;
use crate::schema::Refused;
use crate::sync::size::{is_short, share, stress};
use crate::sync::{AtomicU64, Duration, Ordering, Random};
use crate::{Abort, Database, RunOptions, Session};
use candide_check::Options;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The number of keys. The number is greater than the number of threads and of cores.
const KEYS: u64 = 8;

protocol_tests!(all: random_histories_satisfy_the_guarantees_of_protocols);
protocol_tests!(
    by_the_clock: random_histories_are_what_protocols_promise_by_the_clock
        = random_histories_with_and_without_splitting()
);
fn random_histories_satisfy_the_guarantees_of_protocols<P: Protocol>() {
    // The test of erased protocols has the other setting.
    random_histories::<P>(3_000, if is_short() { &SPLITTING[..1] } else { &SPLITTING });
}

fn random_histories_with_and_without_splitting<P: Protocol>() {
    random_histories::<P>(3_000, &SPLITTING);
}

/// The settings without timestamp splitting, and with it.
const SPLITTING: [(bool, Option<Factor>); 2] = [(false, None), (true, None)];

protocol_tests!(erased: random_histories_of_erased_protocols_satisfy_their_guarantees);
/// The recorder wraps a type-erased protocol, as in the command.
fn random_histories_of_erased_protocols_satisfy_their_guarantees<P: Protocol>() {
    random_histories::<P>(3_000, &[(true, None)]);
}

protocol_tests!(all: random_histories_with_extreme_options_satisfy_guarantees);
fn random_histories_with_extreme_options_satisfy_guarantees<P: Protocol>() {
    let available = Factor::ALL.into_iter().filter(|factor| factor.is_available());
    // In a short run, each protocol is tested with every other factor, and some protocols with the
    // factors between these.
    let name = properties::<P>().name.bytes().map(usize::from).sum::<usize>();
    let is_kept = |place: usize| !is_short() || (place + name).is_multiple_of(2);
    let kept = available.enumerate().filter(|(place, _)| is_kept(*place));
    let settings: Vec<_> = kept.map(|(_, factor)| (true, Some(factor))).collect();
    random_histories::<P>(300, &settings);
}

#[test]
fn jumps_of_the_clock_keep_histories_of_compressed_timestamps_serializable() {
    /// 20,000 ticks. A compressed version lasts for 32,767 at most.
    const LEAP: u64 = 20_000 << 12;
    const LEASE_MAX: u64 = 32_767 << 12;
    let moved = AtomicU64::new(0);
    // If a key has no record, makes it seem that a transaction of a later time has missed the key.
    // A row that is inserted there has later timestamps than the others. If the key has a record,
    // looks whether a compressed wts would have moved.
    let leap = |mix: &Mix<TicToc>, session: &mut Session<Recorded<TicToc>>, random: &mut Random| {
        let (core, key) = (mix.items.core(), random.below(KEYS));
        run(session, |_| {
            match core.index.find(&[key]) {
                Found::Nothing { node, .. } => {
                    let time = TicToc::node_rts(&(), node) + LEAP;
                    TicToc::raise_node_rts(&(), node, time);
                }
                Found::Record(record) => {
                    let at = core.layout.first_of(record);
                    // An install raises wts first.
                    let wts = at.cell_word(1).load(Ordering::Acquire);
                    let tid = Tid(at.cell_word(0).load(Ordering::Acquire));
                    let lease = tid.version().saturating_sub(wts);
                    let is_long = lease > LEASE_MAX && !tid.has(Tid::ABSENT);
                    moved.fetch_add(is_long.into(), Ordering::Relaxed);
                }
            }
            Ok(())
        });
    };
    let setting = (true, Some(Factor::CompressedTimestamps));
    random_histories_between(1_000, setting, leap);
    assert!(moved.load(Ordering::Relaxed) > 0, "no version was extended beyond its lease");
}

/// Records and judges `steps` transactions of each thread, for each setting: with timestamp
/// splitting on or off, and with a basis factor switched or none.
fn random_histories<P: Protocol>(steps: u64, settings: &[(bool, Option<Factor>)]) {
    settings
        .iter()
        .for_each(|&setting| random_histories_between::<P>(steps, setting, |_, _, _| ()));
}

/// Does the same as [`random_histories`], for one setting. Calls `between` before each transaction.
fn random_histories_between<P: Protocol>(
    steps: u64,
    (splitting, factor): (bool, Option<Factor>),
    between: impl Fn(&Mix<P>, &mut Session<Recorded<P>>, &mut Random) + Sync,
) {
    let Properties { name, strict, opaque, one_session, .. } = properties::<P>();
    let threads = if one_session { 1 } else { 6 };
    let steps = share(steps) * stress();
    let builder = Database::<Recorded<P>>::builder().timestamp_splitting(splitting).factors(factor);
    let db = builder.build().unwrap();
    let mix = Mix::new(db, KEYS);
    let options = Options { strict, opaque, horizon: 1 << 20 };
    let mut judge = Judge::new(options, format!("{name}, splitting {splitting}, {factor:?}"));
    std::thread::scope(|scope| {
        let work = |thread| {
            let (mix, between) = (&mix, &between);
            let mut session = mix.db.session().unwrap();
            spawn(scope, move || {
                let mut random = Random::seeded(thread << 1 | u64::from(splitting));
                for _ in 0..steps {
                    between(mix, &mut session, &mut random);
                    mix.step(&mut session, &mut random, 5);
                }
            })
        };
        let workers: Vec<_> = (0..threads).map(work).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&mix.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    judge.hear(&mix.db.take_history());
    let judged = judge.judge();
    assert!(judged >= threads * steps, "{judged} transactions were judged");
}

protocol_tests!(versioned: long_reports_are_recorded_as_of_their_beginning);
/// A long read-only transaction is registered like a snapshot. Then a key is inserted and deleted,
/// and its record is unlinked while the reader runs. The reader finds no record, and must read this
/// as the key's absence before the insert.
fn long_reports_are_recorded_as_of_their_beginning<P: Protocol>() {
    const OTHER: u64 = 1;
    const PASSING: u64 = 2;
    let db = Database::<Recorded<P>>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
    run(&mut writer, |tx| items.insert(tx, Item::new(OTHER, 1)));
    let is_linked = || matches!(items.core().index.find(&[PASSING]), Found::Record(_));
    let seen = reader.with(RunOptions::new().read_only()).run(|tx| {
        // The number of operations and epochs is large enough for the transaction to be registered.
        for _ in 0..20 {
            db.inner.engine.epochs.pass();
            (0..10).try_for_each(|_| items.get(tx, &OTHER, Item::OTHER).map(drop))?;
        }
        run(&mut writer, |tx| {
            items.insert(tx, Item::new(PASSING, 1))?;
            items.update(tx, &OTHER, Item::COUNT.set(2))
        });
        run(&mut writer, |tx| items.delete(tx, &PASSING));
        assert!(is_linked());
        for _ in 0..10 {
            db.inner.engine.epochs.pass();
            run(&mut writer, |_| Ok(()));
        }
        assert!(!is_linked(), "{}: the record is held back", P::NAME);
        Ok((items.get(tx, &OTHER, Item::COUNT)?, items.get(tx, &PASSING, Item::COUNT)?))
    });
    assert_eq!(seen, Ok((Some(1), None)));
    let mut judge =
        Judge::new(Options { strict: true, opaque: true, horizon: 0 }, P::NAME.to_string());
    judge.hear(&db.take_history());
    judge.judge();
}

/// Reads by the fast path are recorded like other reads, in their right place.
#[test]
fn single_reads_are_recorded() {
    let db = Database::<Recorded<Occ>>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (1..3).try_for_each(|id| items.insert(tx, Item::new(id, 7))));
    db.take_history();
    run(&mut session, |tx| {
        assert_eq!(items.get(tx, 3, Item::COUNT)?, None);
        let Found::Record(record) = items.core().index.find(&[1]) else { panic!("it is there") };
        let first = items.core().layout.first_of(record);
        let at_once = tx.state.borrow_mut().read_at_once(first, |_| {});
        assert_eq!(
            at_once,
            Some(true),
            "histories are of another way than the one that users take"
        );
        assert_eq!(items.get(tx, 2, Item::COUNT)?, Some(7));
        items.update(tx, 1, Item::COUNT.add(1))
    });
    let Event::Transaction(transaction) = &db.take_history().events[0] else {
        panic!("nothing was deleted")
    };
    let read: Vec<_> = transaction
        .reads
        .iter()
        .map(|read| (read.key[0], read.version.is_some(), read.present))
        .collect();
    assert_eq!(read, [(3, false, false), (1, true, true), (2, true, true)]);
}

/// The payload of the panic of [`breaks`].
#[derive(Debug)]
pub(super) struct Deliberate;

/// Panics.
pub(super) fn breaks(_: &mut i64) -> Result<(), Refused> {
    resume_unwind(Box::new(Deliberate))
}

protocol_tests!(all: attempts_that_end_in_an_updater_s_panic_are_recorded);
protocol_tests!(
    erased: attempts_that_end_in_an_updater_s_panic_are_recorded_under_erased_protocols
        = attempts_that_end_in_an_updater_s_panic_are_recorded()
);
/// The panic of an updater replaces the closure's error. The reads on which the panic rests are
/// recorded.
fn attempts_that_end_in_an_updater_s_panic_are_recorded<P: Protocol>() {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (0..2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    let before = db.take_history();
    let broken = || {
        session.run(|tx| {
            items.get(tx, 1, Item::COUNT)?;
            items.update_with(tx, 0, OfCount(breaks))?;
            Err::<(), _>(Abort::NotFound)
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(broken)).expect_err("the updater's panic");
    assert!(panic.is::<Deliberate>(), "{}", P::NAME);
    let after = db.take_history();
    assert_eq!(after.events.len(), 1, "{}: the attempt is not in the history", P::NAME);
    assert!(
        after.complete_before > before.complete_before,
        "{}: an attempt runs for ever",
        P::NAME
    );
    let Event::Transaction(transaction) = &after.events[0] else { panic!("nothing was deleted") };
    assert!(transaction.committed && transaction.writes.is_empty(), "{}", P::NAME);
    assert!(transaction.reads.iter().any(|read| read.key[0] == 1), "{}", P::NAME);
}

protocol_tests!(all: raw_iteration_is_not_recorded_as_a_transaction);
protocol_tests!(
    erased: raw_iteration_is_recorded_as_no_transaction_under_erased_protocols
        = raw_iteration_is_not_recorded_as_a_transaction()
);
/// For each row, raw iteration makes an attempt that belongs to no transaction.
fn raw_iteration_is_not_recorded_as_a_transaction<P: Protocol>() {
    let db = Database::<Recorded<P>>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (0..3).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    let before = db.take_history();
    assert_eq!(items.for_each_quiescent(|_| {}), Ok(3), "{}", P::NAME);
    assert_eq!(items.export(&mut Vec::new()).unwrap(), 3, "{}", P::NAME);
    let after = db.take_history();
    assert_eq!(after.events, [], "{}", P::NAME);
    assert!(
        after.complete_before > before.complete_before,
        "{}: an attempt runs for ever",
        P::NAME
    );
    assert_eq!((db.stats().commits, db.stats().total_aborts()), (1, 0), "{}", P::NAME);
    run(&mut session, |tx| items.get(tx, 1, Item::COUNT).map(drop));
    assert_eq!(db.take_history().events.len(), 1, "{}: the next transaction", P::NAME);
}
