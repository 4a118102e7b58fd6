//! Reads of one row, each a transaction by itself.

use super::rows::Item;
use super::steps::run;
use super::{ForProtocol, for_each, for_each_concurrent, properties};
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::protocols::{Mvcc, Occ, Serial, TicToc};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::{Abort, Database, Session, Table, TableOptions, Whole};

type Items<P> = Table<Item, P>;

/// Returns the row as single reads return it: by its groups, by its key alone, and as a whole.
fn now<P: Protocol>(items: &Items<P>, session: &mut Session<P>, id: u64) -> Option<Item> {
    let before = session.stats();
    let whole = items.get_now(session, &id, Whole).unwrap();
    assert_eq!(
        items.get_now(session, &id, (Item::COUNT, Item::SMALL)),
        Ok(whole.map(|row| (row.count, row.small)))
    );
    assert_eq!(items.get_now(session, &id, Item::OTHER), Ok(whole.map(|row| row.other)));
    assert_eq!(items.get_now(session, &id, ()), Ok(whole.map(|_| ())));
    let after = session.stats();
    assert_eq!((after.commits, after.retries), (before.commits + 4, before.retries), "{}", P::NAME);
    whole
}

struct ByTheTransaction(TableOptions);

impl ForProtocol for ByTheTransaction {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
        let items = db.table_with::<Item>("items", self.0).unwrap();
        let mut session = db.session().unwrap();
        assert_eq!(now(&items, &mut session, 1), None, "no record");
        run(&mut session, |tx| items.insert(tx, Item::new(1, 10)));
        assert_eq!(
            (now(&items, &mut session, 1), now(&items, &mut session, 2)),
            (Some(Item::new(1, 10)), None)
        );
        run(&mut session, |tx| items.update(tx, &1, (Item::COUNT.add(1), Item::OTHER.set(5))));
        assert_eq!(now(&items, &mut session, 1), Some(Item { other: 5, ..Item::new(1, 11) }));
        run(&mut session, |tx| items.delete(tx, &1));
        assert_eq!(now(&items, &mut session, 1), None, "an absent record");
        run(&mut session, |tx| items.insert(tx, Item::new(1, 12)));
        assert_eq!(now(&items, &mut session, 1), Some(Item::new(1, 12)));
        assert_eq!(db.health().oldest_pin, None, "nothing is held back");
    }
}

#[test]
fn a_read_by_itself_is_what_a_transaction_reads() {
    let ordered = TableOptions::default().ordered();
    for options in [TableOptions::default(), ordered, ordered.contention_aware_keys(false)] {
        for_each(&ByTheTransaction(options));
        ByTheTransaction(options).run::<Recorded<Occ>>();
        ByTheTransaction(options).run::<Recorded<Serial>>();
    }
}

struct Latest;

impl ForProtocol for Latest {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let (mut reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
        run(&mut writer, |tx| items.insert(tx, Item::new(1, 0)));
        for round in 1..100 {
            run(&mut writer, |tx| items.update(tx, &1, Item::COUNT.add(1)));
            assert_eq!(items.get_now(&mut reader, &1, Item::COUNT), Ok(Some(round)), "{}", P::NAME);
        }
    }
}

#[test]
fn what_was_committed_before_is_read() {
    for_each_concurrent(&Latest);
}

struct Strangers;

impl ForProtocol for Strangers {
    fn run<P: Protocol>(&self) {
        let [db, other] = [(); 2].map(|()| Database::<P>::builder().build().unwrap());
        let items = db.table::<Item>("items").unwrap();
        let (mut session, mut inner) = (db.session().unwrap(), db.session().unwrap());
        let mut foreign = other.session().unwrap();
        run(&mut session, |tx| items.insert(tx, Item::new(1, 3)));
        assert_eq!(items.get_now(&mut foreign, &1, Item::COUNT), Err(Abort::ForeignTable));
        // In another's transaction, which has written and not committed.
        let within = session.run(|tx| {
            items.update(tx, &1, Item::COUNT.add(1))?;
            Ok::<_, Abort>(items.get_now(&mut inner, &1, Item::COUNT))
        });
        let waits_for_itself = properties::<P>().name == "global-lock";
        assert_eq!(
            within,
            Ok(if waits_for_itself { Err(Abort::Nested) } else { Ok(Some(3)) }),
            "{}",
            P::NAME
        );
        assert_eq!(items.get_now(&mut inner, &1, Item::COUNT), Ok(Some(4)));
    }
}

#[test]
fn a_foreign_table_is_refused_and_what_is_not_committed_is_not_read() {
    for_each_concurrent(&Strangers);
}

struct Torn;

impl ForProtocol for Torn {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        db.run(|tx| items.insert(tx, Item { small: 0, other: 0, ..Item::new(1, 0) })).unwrap();
        let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut session = db.session().unwrap();
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let (count, small) = items
                            .get_now(&mut session, &1, (Item::COUNT, Item::SMALL))
                            .unwrap()
                            .unwrap();
                        assert_eq!(small, count as u8, "{}", P::NAME);
                        assert!(!P::STRICT || count >= last, "{}: {count} after {last}", P::NAME);
                        last = count;
                        let row = items.get_now(&mut session, &1, Whole).unwrap().unwrap();
                        assert_eq!(
                            (row.small, row.other),
                            (row.count as u8, row.count as u64),
                            "{}",
                            P::NAME
                        );
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut session = db.session().unwrap();
            let mut count = 0_i64;
            while count < 10_000 || reads.load(Ordering::Relaxed) < 100 && count < 10_000_000 {
                count += 1;
                let columns = (
                    Item::COUNT.set(count),
                    Item::SMALL.set(count as u8),
                    Item::OTHER.set(count as u64),
                );
                session.run(|tx| items.update(tx, &1, columns)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            assert!(reads.load(Ordering::Relaxed) >= 100, "{}: nobody reads", P::NAME);
        });
    }
}

#[test]
fn columns_read_by_themselves_belong_together() {
    for_each_concurrent(&Torn);
}

/// Asserts that a session that makes only single reads still collects its earlier garbage.
fn garbage_does_not_wait_under<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| (1..4).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    run(&mut session, |tx| items.delete(tx, &1));
    assert!(db.memory().garbage > 0, "{}", P::NAME);
    for _ in 0..8 {
        db.inner.engine.epochs.pass();
        assert_eq!(items.get_now(&mut session, &2, Item::COUNT), Ok(Some(0)));
    }
    assert_eq!(db.memory().garbage, 0, "{}", P::NAME);
}

#[test]
fn garbage_does_not_wait_for_a_transaction() {
    garbage_does_not_wait_under::<Occ>();
    garbage_does_not_wait_under::<TicToc>();
    garbage_does_not_wait_under::<Mvcc>();
}
