//! Tests of scans that are taken from both ends: each row is returned once, and the transaction has
//! observed the rows passed from either end, and none between.

use super::indexed_rows::{Filed, Parcel};
use super::phantoms::{
    Act, Scene, both_transactions_commit, drain, insert, insert_fails_validation,
    insert_fails_validation_by_index, insert_passes_validation, scene,
};
use super::rows::Item;
use super::snapshots::{Chained, collect, ok};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::{Abort, Database, IndexOptions, Prefix, Tx, Whole};
use std::collections::VecDeque;

type Row<V> = Result<((u8, u16), V), Abort>;

/// Takes up to `count` rows from each end alternately, the first one from the beginning.
fn take_both<V>(
    scan: &mut impl DoubleEndedIterator<Item = Row<V>>,
    count: usize,
) -> Result<(), Abort> {
    for _ in 0..count {
        scan.next().transpose()?;
        scan.next_back().transpose()?;
    }
    Ok(())
}

protocol_tests!(overlapping: rows_between_the_ends_of_a_scan_are_not_observed);
fn rows_between_the_ends_of_a_scan_are_not_observed<P: Protocol>() {
    let tens = || (1..200).map(|number| 10 * number);
    let both: Act<P> = |parcels, tx| take_both(&mut parcels.scan(tx, Prefix((1,)), Whole), 3);
    // The order in which the ends are taken makes no difference.
    let last_first: Act<P> = |parcels, tx| {
        let mut scan = parcels.scan(tx, .., ());
        drain(scan.by_ref().rev().take(3))?;
        drain(scan.by_ref().take(3))
    };
    let in_the_middle: Act<P> = |parcels, tx| {
        insert(parcels, tx, 1_005)?;
        parcels.delete(tx, (1, 900))?;
        parcels.update(tx, (1, 1_100), Parcel::WEIGHT.add(1))
    };
    for look in [both, last_first] {
        insert_passes_validation::<P>(tens(), look, in_the_middle);
    }
    let from_the_end: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).rev().take(3));
    insert_passes_validation::<P>(tens(), from_the_end, |parcels, tx| insert(parcels, tx, 5));
    let never_asked: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).rev().take(0));
    insert_passes_validation::<P>(tens(), never_asked, |parcels, tx| insert(parcels, tx, 5));
}

protocol_tests!(overlapping: rows_visited_from_either_end_of_a_scan_are_observed);
fn rows_visited_from_either_end_of_a_scan_are_observed<P: Protocol>() {
    let tens: Vec<u16> = (1..200).map(|number| 10 * number).collect();
    let both: Act<P> = |parcels, tx| take_both(&mut parcels.scan(tx, Prefix((1,)), ()), 3);
    let from_the_end: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).rev().take(3));
    let turned_twice: Act<P> = |parcels, tx| {
        let mut scan = parcels.scan(tx, .., ());
        drain(scan.by_ref().take(2))?;
        drain(scan.by_ref().rev().take(2))?;
        drain(scan.take(2))
    };
    let at_the_beginning: Act<P> = |parcels, tx| insert(parcels, tx, 25);
    let at_the_end: Act<P> = |parcels, tx| insert(parcels, tx, 1_975);
    insert_fails_validation::<P>(&tens, both, at_the_beginning);
    insert_fails_validation::<P>(&tens, both, at_the_end);
    insert_fails_validation::<P>(&tens, both, |parcels, tx| insert(parcels, tx, 1));
    insert_fails_validation::<P>(&tens, both, |parcels, tx| insert(parcels, tx, 2_000));
    insert_fails_validation::<P>(&tens, both, |parcels, tx| parcels.delete(tx, (1, 1_980)));
    insert_fails_validation::<P>(&tens, from_the_end, at_the_end);
    insert_fails_validation::<P>(&tens, turned_twice, at_the_beginning);
    insert_fails_validation::<P>(&tens, turned_twice, |parcels, tx| insert(parcels, tx, 35));
    insert_fails_validation::<P>(&tens, turned_twice, |parcels, tx| insert(parcels, tx, 1_985));
    // Ends that have met have observed the whole range.
    let until_they_meet: Act<P> = |parcels, tx| take_both(&mut parcels.scan(tx, .., ()), 200);
    insert_fails_validation::<P>(&tens, until_they_meet, |parcels, tx| insert(parcels, tx, 1_005));
    let nothing: Act<P> = |parcels, tx| take_both(&mut parcels.scan(tx, Prefix((7,)), ()), 1);
    insert_fails_validation::<P>(&tens, nothing, |parcels, tx| {
        parcels.insert(tx, Parcel::new(7, 1))
    });
}

protocol_tests!(overlapping: both_ends_of_a_scan_by_an_index_are_observed);
fn both_ends_of_a_scan_by_an_index_are_observed<P: Protocol>() {
    // The rows 0 to 3 have the codes 1000 to 1003, and the same place.
    insert_fails_validation_by_index::<P>(
        |filed, tx| take_both(&mut filed.index(Filed::BY_PLACE).scan(tx, .., ()), 2),
        |filed, tx| filed.delete(tx, (1, 3)),
    );
    insert_fails_validation_by_index::<P>(
        |filed, tx| drain(filed.index(Filed::BY_PLACE).rows(tx, (1, 0), ()).rev().take(1)),
        |filed, tx| filed.insert(tx, Parcel::new(1, 9).into()),
    );
}

protocol_tests!(overlapping: rows_between_the_ends_of_an_index_scan_are_not_observed);
fn rows_between_the_ends_of_an_index_scan_are_not_observed<P: Protocol>() {
    let scene = &mut scene::<P>((1..200).map(|number| 10 * number));
    let by_code =
        scene.parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    let look = |tx: &Tx<'_, P>| take_both(&mut by_code.scan(tx, .., ()), 3);
    let mut commits_beside = |is_in_a_circle, number| {
        both_transactions_commit(
            scene,
            is_in_a_circle,
            |_, tx| look(tx),
            |parcels, tx| insert(parcels, tx, number),
        )
    };
    assert!(commits_beside(false, 1_005));
    assert!(!commits_beside(true, 25) && !commits_beside(true, 1_975));
}

protocol_tests!(all: a_scan_from_both_ends_does_not_show_later_own_writes);
fn a_scan_from_both_ends_does_not_show_later_own_writes<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    ok(db.run(|tx| parcels.insert_many(tx, (0..100).map(|number| Parcel::new(1, 10 * number)))));
    let numbers = ok(db.run(|tx| {
        let mut scan = parcels.scan(tx, .., Parcel::WEIGHT);
        let (mut front, mut back) = (Vec::new(), VecDeque::new());
        for number in 0..50 {
            front.extend(scan.next().transpose()?);
            // These writes lie on both sides of both ends, and split leaves.
            for beside in [10 * number + 5, 995 - 10 * number, 500 + number] {
                parcels.put(tx, Parcel { weight: 77, ..Parcel::new(1, beside) })?;
            }
            parcels.delete_if_present(tx, (1, 10 * (number + 20)))?;
            parcels.update_if_present(tx, (1, 10 * number), Parcel::WEIGHT.add(5))?;
            back.extend(scan.next_back().transpose()?);
        }
        assert_eq!((scan.next(), scan.next_back(), scan.next()), (None, None, None));
        front.extend(back.into_iter().rev());
        Ok(front)
    }));
    assert!(numbers.into_iter().eq((0..100).map(|number| ((1, 10 * number), 10))));
}

protocol_tests!(versioned: a_snapshot_is_scanned_from_both_ends);
fn a_snapshot_is_scanned_from_both_ends<P: Chained>() {
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let by_code = parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered()).unwrap();
    let mut session = db.session().unwrap();
    let key = |number: u16| (number as u8 % 3, number);
    let rows = (0..300).map(|number| Parcel::new(key(number).0, number));
    ok(session.run(|tx| parcels.insert_many(tx, rows.clone())));
    let before = ok(session.run(|tx| parcels.iter(tx, Whole).collect::<Result<Vec<_>, _>>()));
    let snapshot = db.snapshot();
    // Most of the rows are deleted, so that their records leave the main index. Some keys are
    // inserted again, and new keys are inserted between them.
    for number in 0..280 {
        ok(session.run(|tx| parcels.delete(tx, key(number))));
    }
    collect(&db, &mut session);
    for number in (0..280).step_by(7) {
        let again = Parcel { weight: -1, ..Parcel::new(key(number).0, number) };
        ok(session.run(|tx| parcels.insert(tx, again)));
        ok(session.run(|tx| parcels.insert(tx, Parcel::new(1, 1_000 + number))));
    }
    let mut random = Random::seeded(3);
    for chance in [1, 2, 10, 100] {
        let (mut left, mut by_codes) = (VecDeque::from(before.clone()), before.clone());
        by_codes.sort_by_key(|(_, row)| row.code);
        let mut left_by_codes = VecDeque::from(by_codes);
        ok(snapshot.run(|tx| {
            let mut scan = parcels.scan(tx, .., Whole);
            let mut scan_by_code = by_code.scan(tx, .., Whole);
            let mut is_back = false;
            for _ in 0..=before.len() {
                is_back ^= random.below(chance) == 0;
                let (seen, seen_by_code) = match is_back {
                    true => (scan.next_back(), scan_by_code.next_back()),
                    false => (scan.next(), scan_by_code.next()),
                };
                let (row, row_by_code) = match is_back {
                    true => (left.pop_back(), left_by_codes.pop_back()),
                    false => (left.pop_front(), left_by_codes.pop_front()),
                };
                assert_eq!((seen.transpose()?, seen_by_code.transpose()?), (row, row_by_code));
            }
            assert_eq!((scan.next(), scan.next_back()), (None, None));
            Ok(())
        }));
    }
}

protocol_tests!(concurrent: after_an_error_a_scan_ends_at_both_ends);
fn after_an_error_a_scan_ends_at_both_ends<P: Protocol>() {
    let Scene { db, parcels, mut first, .. } = scene::<P>(0..40);
    let by_shelf =
        parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered()).unwrap();
    let other = Database::<P>::builder().build().unwrap();
    let foreign = other.table::<Parcel>("parcels").unwrap();
    parcels.drop_index("by_shelf").unwrap();
    ok(first.run(|tx| {
        let mut scan = by_shelf.scan(tx, .., ());
        assert_eq!(scan.next_back(), Some(Err(Abort::NoIndex)));
        assert_eq!((scan.next_back(), scan.next()), (None, None));
        let mut scan = foreign.scan(tx, .., ());
        assert_eq!(scan.next_back(), Some(Err(Abort::ForeignTable)));
        assert_eq!((scan.next_back(), scan.next()), (None, None));
        Ok(())
    }));
    let items = db.table::<Item>("items").unwrap();
    assert_eq!(first.run(|tx| items.len(tx)), Ok(0));
}
