//! Tests of read-only transactions that see the past (`Builder::read_only_past`).

use super::random_transactions::{Judge, Mix};
use super::rows::Item;
use super::snapshots::{Chained, Items, ok};
use super::threads::spawn;
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::sync::{Duration, Point, Random, with_hook};
use crate::{Abort, Database, Error, RunOptions, Session};
use candide_check::{Checker, Options, Verdict};

/// An age that no view of a test reaches.
const LONG: Duration = Duration::from_secs(1);

/// Makes a database with rows 0..4, whose counts are 0. Explicit calls move its epochs.
fn by_hand<P: Protocol>(age: Duration) -> (Database<P>, Items<P>, [Session<P>; 2]) {
    let db = Database::<P>::builder().manual_epochs(10).read_only_past(age).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut sessions = [(); 2].map(|()| db.session().unwrap());
    ok(sessions[0].run(|tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0)))));
    (db, items, sessions)
}

/// Adds 1 to the counts of rows 0 and 1.
fn add<P: Protocol>(session: &mut Session<P>, items: &Items<P>) {
    ok(session.run(|tx| (0..2).try_for_each(|id| items.update(tx, id, Item::COUNT.add(1)))));
}

/// Returns the counts of rows 0 and 1, as a read-only transaction sees them.
fn seen<P: Protocol>(session: &mut Session<P>, items: &Items<P>) -> [i64; 2] {
    ok(session
        .read_view(|tx| Ok([items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?])))
}

protocol_tests!(versioned: a_read_only_transaction_sees_the_view_until_it_is_renewed);
fn a_read_only_transaction_sees_the_view_until_it_is_renewed<P: Chained>() {
    let (db, items, [mut first, mut second]) = by_hand::<P>(LONG);
    assert_eq!(seen(&mut first, &items), [0, 0], "{}", P::NAME);
    add(&mut first, &items);
    ok(second.run(|tx| items.insert(tx, Item::new(9, 0))));
    ok(second.run(|tx| items.delete(tx, 3)));
    // The view is of the present epoch, so it is not renewed: also the session that has committed
    // does not see its own commit.
    assert_eq!(seen(&mut first, &items), [0, 0], "{}", P::NAME);
    assert_eq!(ok(first.read_view(|tx| items.get(tx, 9, Item::COUNT))), None);
    assert_eq!(ok(first.read_view(|tx| items.get(tx, 3, Item::COUNT))), Some(0));
    // Others see the present.
    assert_eq!(ok(second.run(|tx| items.read(tx, 0, Item::COUNT))), 1);
    assert_eq!(ok(db.snapshot().run(|tx| items.read(tx, 0, Item::COUNT))), 1);
    db.inner.engine.epochs.pass();
    assert_eq!(seen(&mut second, &items), [1, 1], "{}", P::NAME);
    assert_eq!(ok(first.read_view(|tx| items.get(tx, 3, Item::COUNT))), None);
}

protocol_tests!(versioned: writes_in_the_past_are_refused);
fn writes_in_the_past_are_refused<P: Chained>() {
    let (_db, items, [mut first, mut second]) = by_hand::<P>(LONG);
    assert_eq!(seen(&mut second, &items), [0, 0]);
    add(&mut second, &items);
    let reading = RunOptions::new().read_only();
    let refused =
        |result: Result<(), Abort>| assert_eq!(result, Err(Abort::ReadOnly), "{}", P::NAME);
    refused(first.with(reading).run(|tx| items.update(tx, 0, Item::COUNT.add(1))));
    refused(first.with(reading).run(|tx| items.insert(tx, Item::new(8, 0))));
    refused(first.with(reading).run(|tx| items.delete(tx, 0)));
    refused(first.with(reading).run(|tx| items.read_for_update(tx, 0, Item::COUNT).map(drop)));
}

protocol_tests!(versioned: a_view_waits_for_the_commits_up_to_its_time);
/// A reader comes amid a commit, of which it must see nothing.
fn a_view_waits_for_the_commits_up_to_its_time<P: Chained>() {
    let (db, items, [mut writer, mut reader]) = by_hand::<P>(LONG);
    assert_eq!(seen(&mut reader, &items), [0, 0]);
    let mut installing = 0;
    let (epochs, table) = (db.inner.engine.epochs.clone(), items.clone());
    let hook = move |point| {
        installing += u32::from(point == Point::Installing);
        // The first of the two rows is written.
        if point == Point::Installing && installing == 2 {
            for _ in 0..3 {
                epochs.pass();
                let count = reader.read_view(|tx| table.read(tx, 0, Item::COUNT));
                assert_eq!(count, Ok(0), "{}", P::NAME);
            }
            installing = 100;
        }
    };
    ok(with_hook(hook, || {
        writer.run(|tx| {
            let counts = [items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?];
            (0..2).try_for_each(|id| items.update(tx, id, Item::COUNT.set(counts[id as usize] + 1)))
        })
    }));
    db.inner.engine.epochs.pass();
    assert_eq!(seen(&mut writer, &items), [1, 1], "{}", P::NAME);
}

protocol_tests!(versioned: a_reader_in_the_past_keeps_what_it_sees);
/// While a reader runs, the view is renewed and everything is collected that may be.
fn a_reader_in_the_past_keeps_what_it_sees<P: Chained>() {
    let (db, items, [mut first, mut second]) = by_hand::<P>(LONG);
    assert_eq!(seen(&mut second, &items), [0, 0]);
    add(&mut second, &items);
    let both = ok(first.read_view(|tx| {
        let before = items.read(tx, 0, Item::COUNT)?;
        for _ in 0..20 {
            add(&mut second, &items);
            db.inner.engine.epochs.pass();
            assert!(seen(&mut second, &items)[0] > 0);
        }
        Ok((before, items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?))
    }));
    assert_eq!(both, (0, 0, 0), "{}", P::NAME);
    assert_eq!(ok(first.run(|tx| items.read(tx, 0, Item::COUNT))), 21);
}

protocol_tests!(versioned: a_view_that_is_too_old_is_not_joined);
/// A transaction that runs for long keeps the view from being renewed.
fn a_view_that_is_too_old_is_not_joined<P: Chained>() {
    let (db, items, [mut first, mut second]) = by_hand::<P>(Duration::from_millis(5));
    assert_eq!(seen(&mut second, &items), [0, 0]);
    let mut third = db.session().unwrap();
    let counts = ok(first.run(|tx| {
        items.read(tx, 3, Item::COUNT)?;
        add(&mut third, &items);
        Ok([(); 8].map(|()| {
            let seen = seen(&mut second, &items);
            db.inner.engine.epochs.pass();
            seen[0]
        }))
    }));
    assert_eq!(counts, [0, 0, 0, 0, 0, 1, 1, 1], "{}", P::NAME);
}

protocol_tests!(versioned: random_histories_in_the_past_are_serializable);
fn random_histories_in_the_past_are_serializable<P: Chained>() {
    let builder = Database::<Recorded<P>>::builder().read_only_past(Duration::from_millis(20));
    let mix = Mix::new(builder.build().unwrap(), 8);
    let options = Options { strict: false, opaque: P::OPAQUE, horizon: 1 << 20 };
    let mut judge = Judge::new(options, format!("{} in the past", P::NAME));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|thread| {
                let mix = &mix;
                spawn(scope, move || {
                    let (mut session, mut random) =
                        (mix.db.session().unwrap(), Random::seeded(thread));
                    (0..2_000).for_each(|_| mix.step(&mut session, &mut random, 5));
                })
            })
            .collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            judge.hear(&mix.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    judge.hear(&mix.db.take_history());
    assert!(judge.judge() > 6 * 1_000);
}

protocol_tests!(versioned: a_reader_in_the_past_is_serializable_and_not_strictly);
/// A reader misses a commit that had ended before it began.
fn a_reader_in_the_past_is_serializable_and_not_strictly<P: Chained>() {
    let (db, items, [mut first, mut second]) = by_hand::<Recorded<P>>(LONG);
    assert_eq!(seen(&mut first, &items), [0, 0]);
    add(&mut second, &items);
    assert_eq!(seen(&mut first, &items), [0, 0], "{}", P::NAME);
    let history = db.take_history();
    for strict in [false, true] {
        let mut checker = Checker::new(Options { strict, opaque: P::OPAQUE, horizon: 1 << 20 });
        history.events.iter().for_each(|event| checker.feed(event));
        let verdict = checker.finish().verdict;
        assert_eq!(matches!(verdict, Verdict::Serializable), !strict, "{}: {verdict:?}", P::NAME);
    }
}

protocol_tests!(all: only_protocols_with_versions_have_a_past);
fn only_protocols_with_versions_have_a_past<P: Protocol>() {
    let built = Database::<P>::builder().read_only_past(LONG).build();
    let properties = super::properties::<P>();
    match built {
        Ok(db) => assert!(
            properties.version_words > 0 && !db.inner.engine.properties.strict,
            "{}",
            properties.name
        ),
        Err(error) => {
            assert_eq!(properties.version_words, 0, "{}", properties.name);
            assert!(matches!(error, Error::NoPast { protocol } if protocol == properties.name));
        }
    }
    assert!(Database::<P>::builder().read_only_past(Duration::from_micros(1)).build().is_ok());
}
