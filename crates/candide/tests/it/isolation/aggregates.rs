//! Tests of counts, sums and folds of the rows of tables, indexes and scans.

use crate::common::{Filed, Parcel, database_with, ok};
use candide::{Abort, Database, IndexOptions, Prefix, Protocol, Record, Whole};

protocol_tests!(all: rows_are_counted_and_summed_as_the_transaction_sees_them);
fn rows_are_counted_and_summed_as_the_transaction_sees_them<P: Protocol>() {
    let (db, parcels) = database_with::<Parcel, P>("parcels");
    let filed = db.table::<Filed>("filed").unwrap();
    let by_code = parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    let by_colour =
        parcels.create_index("by_colour", Parcel::COLOUR, IndexOptions::hashed()).unwrap();
    ok(db.run(|tx| {
        assert!(parcels.is_empty(tx)? && filed.is_empty(tx)?);
        assert_eq!((parcels.len(tx)?, parcels.sum(tx, Parcel::WEIGHT)?), (0, 0));
        parcels.insert_many(tx, (0..50).map(|number| Parcel::new(1, number)))?;
        filed.insert_many(tx, (0..50).map(|number| Parcel::new(1, number).into()))?;
        Ok(())
    }));
    ok(db.run(|tx| {
        // Own writes count, wherever they are asked for.
        parcels.delete(tx, (1, 3))?;
        parcels.insert(tx, Parcel { weight: -7, ..Parcel::new(2, 1) })?;
        parcels.update(tx, (1, 4), Parcel::WEIGHT.add(5))?;
        filed.delete(tx, (1, 3))?;
        assert_eq!((parcels.len(tx)?, filed.len(tx)?), (50, 49));
        assert!(!parcels.is_empty(tx)? && !filed.is_empty(tx)?);
        assert_eq!((parcels.count(tx, ..)?, parcels.count(tx, (1, 2)..(1, 5))?), (50, 2));
        assert_eq!(parcels.count(tx, Prefix((2,)))?, 1);
        assert_eq!(parcels.sum(tx, Parcel::WEIGHT)?, 49 * 10 + 5 - 7);
        assert_eq!(parcels.scan(tx, (1, 2)..(1, 5), Parcel::WEIGHT).sum()?, 25);
        assert_eq!(filed.sum(tx, Filed::SHELF)?, 49u64);
        assert_eq!(by_code.count(tx, 1_000..1_010)?, 9);
        assert_eq!(by_code.scan(tx, 1_000..1_010, Parcel::WEIGHT).sum()?, 95);
        assert_eq!(by_colour.rows(tx, 1, Parcel::NOTE).count()?, 50);
        assert_eq!(by_colour.rows(tx, 2, Parcel::NOTE).count()?, 0);
        assert!(by_code.contains(tx, 1_004)? && !by_code.contains(tx, 1_003)?);
        assert!(parcels.contains(tx, (2, 1))? && !parcels.contains(tx, (1, 3))?);
        Ok(())
    }));
}

protocol_tests!(all: a_fold_visits_each_row_once);
fn a_fold_visits_each_row_once<P: Protocol>() {
    let (db, parcels) = database_with::<Parcel, P>("parcels");
    let filed = db.table::<Filed>("filed").unwrap();
    ok(db.run(|tx| parcels.insert_many(tx, (0..40).map(|number| Parcel::new(1, number)))));
    ok(db.run(|tx| filed.insert_many(tx, (0..40).map(|number| Parcel::new(1, number).into()))));
    let by_code = parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    ok(db.run(|tx| {
        let numbers = |mut seen: Vec<u16>, (key, ()): ((u8, u16), ())| {
            seen.push(key.1);
            seen
        };
        assert!(parcels.fold(tx, (), Vec::new(), numbers)?.into_iter().eq(0..40));
        assert!(
            parcels
                .scan(tx, (1, 5)..(1, 9), ())
                .fold(Vec::new(), numbers)?
                .iter()
                .eq(&[5, 6, 7, 8])
        );
        assert!(by_code.scan(tx, 1_005..1_007, ()).fold(Vec::new(), numbers)? == [5, 6]);
        let mut total = 0;
        parcels.for_each(tx, Parcel::WEIGHT, |(_, weight)| total += weight)?;
        filed.for_each(tx, Whole, |(_, row)| total += row.weight)?;
        by_code.scan(tx, .., Parcel::WEIGHT).for_each(|(_, weight)| total += weight)?;
        assert_eq!(total, 3 * 400);
        assert_eq!(parcels.scan(tx, (1, 30).., ()).first()?, Some(((1, 30), ())));
        assert_eq!(parcels.scan(tx, ..(1, 30), ()).last()?, Some(((1, 29), ())));
        assert_eq!(parcels.scan(tx, Prefix((2,)), ()).last()?, None);
        assert_eq!(by_code.scan(tx, .., Parcel::CODE).first()?, Some(((1, 0), 1_000)));
        assert_eq!(by_code.scan(tx, .., Parcel::CODE).last()?, Some(((1, 39), 1_039)));
        Ok(())
    }));
}

#[derive(Debug, PartialEq)]
enum Refusal {
    Heavy(u16),
    Engine(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Refusal {
        Refusal::Engine(abort)
    }
}

protocol_tests!(all: a_closure_over_rows_may_fail_with_an_error_of_its_own);
fn a_closure_over_rows_may_fail_with_an_error_of_its_own<P: Protocol>() {
    let (db, parcels) = database_with::<Parcel, P>("parcels");
    let by_code = parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    ok(db.run(|tx| parcels.insert_many(tx, (0..40).map(|number| Parcel::new(1, number)))));
    ok(db.run(|tx| {
        let mut seen = 0;
        let mut each = |((_, number), weight): ((u8, u16), i64)| {
            seen += weight;
            if number == 20 { Err(Refusal::Heavy(number)) } else { Ok(()) }
        };
        let mut scan = parcels.scan(tx, .., Parcel::WEIGHT);
        assert_eq!(scan.try_for_each(&mut each), Err(Refusal::Heavy(20)));
        // The scan continues behind the row that was refused.
        assert_eq!(scan.try_for_each(&mut each), Ok(()));
        let refused = by_code.scan(tx, 1_020.., Parcel::WEIGHT).try_for_each(&mut each);
        assert_eq!(refused, Err(Refusal::Heavy(20)));
        assert_eq!(seen, 410);
        Ok(())
    }));
}

#[test]
fn a_doomed_transaction_counts_nothing() {
    let [db, other] = [(); 2].map(|()| Database::new());
    let [parcels, foreign] = [&db, &other].map(|db| db.table::<Parcel>("parcels").unwrap());
    ok(db.run(|tx| parcels.insert_many(tx, (0..10).map(|number| Parcel::new(1, number)))));
    ok(db.run(|tx| {
        assert_eq!(foreign.len(tx), Err(Abort::ForeignTable));
        assert_eq!(foreign.is_empty(tx), Err(Abort::ForeignTable));
        assert_eq!(foreign.contains(tx, (1, 1)), Err(Abort::ForeignTable));
        assert_eq!(foreign.scan(tx, .., ()).count(), Err(Abort::ForeignTable));
        assert_eq!(foreign.scan(tx, .., Parcel::WEIGHT).sum(), Err(Abort::ForeignTable));
        assert_eq!(foreign.fold(tx, (), 0, |sum, _| sum + 1), Err(Abort::ForeignTable));
        assert_eq!(foreign.for_each(tx, (), drop), Err(Abort::ForeignTable));
        assert_eq!(foreign.scan(tx, .., ()).last(), Err(Abort::ForeignTable));
        assert_eq!(parcels.len(tx)?, 10);
        Ok(())
    }));
}

/// A row with a column of each kind of number.
#[derive(Debug, Clone, Copy, Record)]
#[record(ordered)]
struct Sizes {
    #[key]
    id: u32,
    large: u64,
    small: i8,
    least: i64,
    size: usize,
}

/// A sum overflows if the result does, whatever the order of the rows and however small the
/// column's type.
#[test]
fn a_sum_overflows_only_if_its_result_does() {
    let db = Database::new();
    let sizes = db.table::<Sizes>("sizes").unwrap();
    let row = |id, large, least| Sizes { id, large, small: i8::MIN, least, size: usize::MAX };
    ok(db.run(|tx| {
        sizes.insert(tx, row(1, u64::MAX - 5, i64::MAX))?;
        sizes.insert(tx, row(2, 5, i64::MAX))?;
        sizes.insert(tx, row(3, 0, i64::MIN))?;
        assert_eq!(sizes.sum(tx, Sizes::LARGE)?, u64::MAX);
        assert_eq!(sizes.sum(tx, Sizes::SMALL)?, -3 * 128);
        assert_eq!(sizes.sum(tx, Sizes::LEAST)?, i64::MAX - 1);
        assert_eq!(sizes.scan(tx, ..3, Sizes::LEAST).sum(), Err(Abort::Overflow));
        assert_eq!(sizes.sum(tx, Sizes::SIZE), Err(Abort::Overflow));
        sizes.insert(tx, row(4, 1, i64::MIN))?;
        assert_eq!(sizes.sum(tx, Sizes::LARGE), Err(Abort::Overflow));
        // An overflow is an outcome of the operation; the transaction can continue.
        assert_eq!(sizes.sum(tx, Sizes::LEAST)?, -2);
        sizes.delete(tx, 4)
    }));
    assert_eq!(db.run(|tx| sizes.sum(tx, Sizes::SIZE)), Err(Abort::Overflow));
}
