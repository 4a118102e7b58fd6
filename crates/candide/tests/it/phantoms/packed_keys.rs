//! Tests of scans of one part of a table beside inserts into the next part.

use crate::common::{Item, ONCE, Order, builder};
use candide::{Abort, Mvcc, Mvto, Occ, Prefix, Protocol, TableOptions, TicToc};

const CONFLICT: Result<(), Abort> = Err(Abort::AttemptsExhausted);

/// Returns whether one transaction can scan a district while another transaction inserts an order
/// into the next district.
fn districts_do_not_conflict<P: Protocol>(
    aware: bool,
    other: u32,
    reverse: bool,
    in_next: &[u32],
) -> bool {
    let db = builder::<P>().build().unwrap();
    let options = TableOptions::default().contention_aware_keys(aware);
    let orders = db.table_with::<Order>("orders", options).unwrap();
    let beside = db.table::<Item>("beside").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let order = |district, number| Order { warehouse: 1, district, number, lines: 3 };
    first
        .run(|tx| {
            beside.insert(tx, Item::new(0, 0))?;
            orders.insert_many(tx, (1..4).map(|number| order(1, number)))?;
            orders.insert_many(tx, in_next.iter().map(|&number| order(2, number)))
        })
        .unwrap();
    let outer = first.with(ONCE()).run(|tx| {
        let rows = match reverse {
            false => orders.scan(tx, Prefix((1, 1)), Order::LINES).count()?,
            true => orders.scan_rev(tx, Prefix((1, 1)), Order::LINES).count(),
        };
        assert_eq!(rows, 3);
        second.run(|tx| orders.insert(tx, order(2, other)))?;
        beside.update(tx, 0, Item::COUNT.add(1))
    });
    assert!(outer == Ok(()) || outer == CONFLICT, "{outer:?}");
    outer == Ok(())
}

/// A scan of the orders of one district conflicts with inserts into the next district only if the
/// keys' components share words.
#[test]
fn adjacent_districts_conflict_only_with_packed_keys() {
    for reverse in [false, true] {
        for in_next in [&[][..], &[7], &[7, 9], &[0, u32::MAX]] {
            for other in [1, 8, 1_000_000] {
                assert!(
                    districts_do_not_conflict::<Occ>(true, other, reverse, in_next),
                    "{in_next:?} {other}"
                );
                assert!(
                    districts_do_not_conflict::<TicToc>(true, other, reverse, in_next),
                    "{in_next:?} {other}"
                );
                assert!(
                    districts_do_not_conflict::<Mvcc>(true, other, reverse, in_next),
                    "{in_next:?} {other}"
                );
                assert!(
                    districts_do_not_conflict::<Mvto>(true, other, reverse, in_next),
                    "{in_next:?} {other}"
                );
                assert!(
                    !districts_do_not_conflict::<Occ>(false, other, reverse, in_next),
                    "{in_next:?} {other}"
                );
            }
        }
    }
}
