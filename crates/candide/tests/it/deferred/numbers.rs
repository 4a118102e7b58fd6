//! Tests of operators on numbers that come later.

use super::{add, count, items};
use crate::common::ok;
use candide::{Abort, Later, Protocol};

#[test]
fn operators_take_values_and_laters_on_both_sides() {
    let (two, three) = (Later::ready(2), Later::ready(3));
    let sums = [
        &two + &three,
        &two + three.clone(),
        two.clone() + &three,
        two.clone() + three.clone(),
        &two + 3,
        two.clone() + 3,
        2 + &three,
        2 + three.clone(),
        two.wrapping_add(3),
        two.wrapping_add(&three),
        two.wrapping_add(three.clone()),
    ];
    assert!(sums.iter().all(|sum| sum.get() == Ok(5)), "{sums:?}");
    assert_eq!(
        [&two - 5, 5 - &two, -&two, -three.clone()].map(|it| it.get()),
        [-3, 3, -2, -3].map(Ok)
    );
    assert_eq!(
        [&two * &three, 4 * &two, two.wrapping_mul(8)].map(|it| it.get()),
        [6, 8, 16].map(Ok)
    );
    assert_eq!((Later::ready(1u8) - 2).get(), Err(Abort::Overflow));
    assert_eq!(Later::ready(1u8).wrapping_sub(2).get(), Ok(255));
    assert_eq!((-Later::ready(i8::MIN)).get(), Err(Abort::Overflow));
    assert_eq!((2 * Later::ready(u64::MAX)).get(), Err(Abort::Overflow));
    assert_eq!((Later::ready(u128::MAX) - 1 + 2).get(), Err(Abort::Overflow));
    let lost = Later::ready(i32::MAX) + 1;
    assert_eq!((lost.map(|sum| *sum > 0)).get(), Err(Abort::Overflow), "nothing comes of it");
}

protocol_tests!(all: a_result_out_of_range_fails_a_transaction_that_uses_it);
fn a_result_out_of_range_fails_a_transaction_that_uses_it<P: Protocol>() {
    let (db, items) = items::<P>();
    // The second sum is not used.
    let sum = db.run_deferred(|tx| {
        let sum = add(tx, &items, 1, 1)?;
        let _ = &sum + i64::MAX;
        Ok(sum)
    });
    assert_eq!(sum, Ok(11));
    assert_eq!(db.run_deferred(|tx| Ok(add(tx, &items, 1, 1)? + i64::MAX)), Err(Abort::Overflow));
    let as_input = db.run(|tx| {
        let sum = add(tx, &items, 1, 1)? + i64::MAX;
        // A closure cannot go on as if nothing had happened.
        let _ = items.defer(tx, 2, candide::Whole, &sum, |row, sum| row.count = *sum);
        let _ = items.defer(tx, 2, super::Item::COUNT, &sum, |count, sum| *count = *sum);
        Ok(())
    });
    assert_eq!(as_input, Err(Abort::Overflow));
    let as_condition = db.run(|tx| {
        let sum = add(tx, &items, 1, 1)? + i64::MAX;
        let _ = tx.require(&sum.map(|sum| *sum > 0));
        Ok(())
    });
    assert_eq!(as_condition, Err(Abort::Overflow));
    let asked_for = db.run(|tx| {
        let sum = add(tx, &items, 1, 1)? + i64::MAX;
        assert_eq!(sum.now(tx), Err(Abort::Overflow));
        Ok(())
    });
    assert_eq!(asked_for, Err(Abort::Overflow));
    let kept = ok(db.run(|tx| Ok(add(tx, &items, 3, 1)? + i64::MAX)));
    assert_eq!(kept.get(), Err(Abort::Overflow));
    assert_eq!((1..4).map(|id| count(&db, &items, id)).collect::<Vec<_>>(), [11, 20, 31]);
}
