//! Tests of single reads: each read of one row is a transaction.

use crate::common::{Item, builder, database_with, properties, run, spawn};
use candide::{Abort, Protocol, Whole};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

protocol_tests!(concurrent: a_single_read_sees_earlier_commits);
fn a_single_read_sees_earlier_commits<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    let (mut reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
    run(&mut writer, |tx| items.insert(tx, Item::new(1, 0)));
    for round in 1..100 {
        run(&mut writer, |tx| items.update(tx, 1, Item::COUNT.add(1)));
        assert_eq!(items.get_now(&mut reader, &1, Item::COUNT), Ok(Some(round)), "{}", P::NAME);
    }
}

protocol_tests!(concurrent: a_single_read_refuses_a_foreign_table_and_sees_no_uncommitted_row);
fn a_single_read_refuses_a_foreign_table_and_sees_no_uncommitted_row<P: Protocol>() {
    let [db, other] = [(); 2].map(|()| builder::<P>().build().unwrap());
    let items = db.table::<Item>("items").unwrap();
    let (mut session, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let mut foreign = other.session().unwrap();
    run(&mut session, |tx| items.insert(tx, Item::new(1, 3)));
    assert_eq!(items.get_now(&mut foreign, &1, Item::COUNT), Err(Abort::ForeignTable));
    // The read runs inside another session's transaction, which has written and not committed.
    let within = session.run(|tx| {
        items.update(tx, 1, Item::COUNT.add(1))?;
        Ok(items.get_now(&mut inner, &1, Item::COUNT))
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

protocol_tests!(concurrent: columns_of_a_single_read_are_of_one_version);
fn columns_of_a_single_read_are_of_one_version<P: Protocol>() {
    let (db, items) = database_with::<Item, P>("items");
    db.run(|tx| items.insert(tx, Item { small: 0, other: 0, ..Item::new(1, 0) })).unwrap();
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            spawn(scope, || {
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
            session.run(|tx| items.update(tx, 1, columns)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reads.load(Ordering::Relaxed) >= 100, "{}: no session reads", P::NAME);
    });
}
