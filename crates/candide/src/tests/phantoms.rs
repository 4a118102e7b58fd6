//! Tests of phantoms: rows are inserted or deleted where a transaction has scanned, used an index,
//! or found a key absent. Each test is an interleaving that a wrong engine would let commit.
//!
//! Two sessions run on one thread: the transactions of one session run inside the transactions of
//! the other.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::{Filed, Parcel};
use super::rows::Item;
use super::transactions::{CONFLICT, ONCE};
use crate::engine::Protocol;
use crate::protocols::Occ;
use crate::{Abort, Database, Error, IndexOptions, Prefix, Session, Table, Tx, Whole};
use std::ops::Bound;

/// A table of parcels in district 1, another table with one row, and two sessions.
pub(super) struct Scene<P: Protocol> {
    pub(super) db: Database<P>,
    pub(super) parcels: Table<Parcel, P>,
    beside: Table<Item, P>,
    pub(super) first: Session<P>,
    second: Session<P>,
}

pub(super) fn scene<P: Protocol>(numbers: impl IntoIterator<Item = u16>) -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let (parcels, beside) =
        (db.table::<Parcel>("parcels").unwrap(), db.table::<Item>("beside").unwrap());
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    let rows: Vec<Parcel> = numbers.into_iter().map(|number| Parcel::new(1, number)).collect();
    first
        .run(|tx| {
            beside.insert(tx, Item::new(0, 0))?;
            parcels.insert_many(tx, rows.iter().copied())
        })
        .unwrap();
    Scene { db, parcels, beside, first, second }
}

/// An action of one of the two transactions on the parcels.
pub(super) type Act<P> = fn(&Table<Parcel, P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Reads a scan to its end, or to its first error.
pub(super) fn drain<T>(mut scan: impl Iterator<Item = Result<T, Abort>>) -> Result<(), Abort> {
    scan.try_for_each(|row| row.map(drop))
}

/// Returns whether two transactions both commit. The first transaction runs `look`. Then the second
/// one runs `disturb` and commits, and the first one commits a write. If `in_a_circle`, the second
/// one has read the row that the first one writes. Then no serial order of the two exists if
/// `disturb` changes what `look` saw.
pub(super) fn both_transactions_commit<P: Protocol>(
    scene: &mut Scene<P>,
    in_a_circle: bool,
    mut look: impl FnMut(&Table<Parcel, P>, &Tx<'_, P>) -> Result<(), Abort>,
    mut disturb: impl FnMut(&Table<Parcel, P>, &Tx<'_, P>) -> Result<(), Abort>,
) -> bool {
    let Scene { parcels, beside, first, second, .. } = scene;
    let mut inner = Ok(());
    let outer = first.with(ONCE()).run(|tx| {
        look(parcels, tx)?;
        inner = second.with(ONCE()).run(|tx| {
            if in_a_circle {
                beside.read(tx, 0, Item::COUNT)?;
            }
            disturb(parcels, tx)
        });
        beside.update(tx, 0, Item::COUNT.add(1))
    });
    for result in [outer, inner] {
        assert!(result == Ok(()) || result == CONFLICT, "{result:?}");
    }
    outer == Ok(()) && inner == Ok(())
}

/// Asserts that `disturb` invalidates `look`.
pub(super) fn insert_fails_validation<P: Protocol>(numbers: &[u16], look: Act<P>, disturb: Act<P>) {
    let numbers = || numbers.iter().copied();
    assert!(
        !both_transactions_commit(&mut scene::<P>(numbers()), true, look, disturb),
        "{}",
        P::NAME
    );
    if P::NAME == Occ::NAME {
        // Under certification in commit order a transaction with outdated reads fails.
        assert!(!both_transactions_commit(&mut scene::<P>(numbers()), false, look, disturb));
    }
    assert!(
        both_transactions_commit(&mut scene::<P>(numbers()), false, look, |_, _| Ok(())),
        "the transaction alone commits"
    );
}

/// Asserts that `disturb` does not invalidate `look`.
pub(super) fn insert_passes_validation<P: Protocol>(
    numbers: impl IntoIterator<Item = u16>,
    look: Act<P>,
    disturb: Act<P>,
) {
    assert!(
        both_transactions_commit(&mut scene::<P>(numbers), false, look, disturb),
        "{}",
        P::NAME
    );
}

pub(super) fn insert<P: Protocol>(
    table: &Table<Parcel, P>,
    tx: &Tx<'_, P>,
    number: u16,
) -> Result<(), Abort> {
    table.insert(tx, Parcel::new(1, number))
}

protocol_tests!(overlapping: an_insert_into_a_scanned_range_fails_validation);
fn an_insert_into_a_scanned_range_fails_validation<P: Protocol>() {
    const TENS: [u16; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    let insert_45: Act<P> = |parcels, tx| insert(parcels, tx, 45);
    // These scans go in both directions, over ranges with rows and without rows.
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan(tx, (1, 20)..(1, 60), Whole)),
        insert_45,
    );
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan_rev(tx, (1, 20)..(1, 60), Whole)),
        insert_45,
    );
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan(tx, (1, 41)..=(1, 49), ())),
        insert_45,
    );
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan_rev(tx, (1, 41)..=(1, 49), ())),
        insert_45,
    );
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan(tx, (1, 45)..=(1, 45), ())),
        insert_45,
    );
    insert_fails_validation::<P>(&TENS, |parcels, tx| drain(parcels.iter(tx, ())), insert_45);
    // The insert is at the edge of a range, or between two excluded keys.
    let open: Act<P> = |parcels, tx| {
        drain(parcels.scan(tx, (Bound::Excluded((1, 44)), Bound::Excluded((1, 46))), Parcel::NOTE))
    };
    insert_fails_validation::<P>(&TENS, open, insert_45);
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan(tx, (1, 45)..(1, 60), ())),
        insert_45,
    );
    insert_fails_validation::<P>(
        &TENS,
        |parcels, tx| drain(parcels.scan(tx, (1, 20)..=(1, 45), ())),
        insert_45,
    );
    // These scans look into an index without a second layer, and into an empty index.
    let seven: Act<P> = |parcels, tx| drain(parcels.scan(tx, Prefix((7,)), Whole));
    let insert_7: Act<P> = |parcels, tx| parcels.insert(tx, Parcel::new(7, 1));
    insert_fails_validation::<P>(&TENS, seven, insert_7);
    insert_fails_validation::<P>(&[], seven, insert_7);
    insert_fails_validation::<P>(&[], |parcels, tx| drain(parcels.scan_rev(tx, .., ())), insert_7);
    // The index has only one row, and so no second layer.
    insert_fails_validation::<P>(
        &[10],
        |parcels, tx| drain(parcels.scan(tx, Prefix((1,)), ())),
        insert_45,
    );
    // These scans look beyond the last key, and before the first key.
    let beyond: Act<P> = |parcels, tx| drain(parcels.scan(tx, (1, 95).., ()));
    insert_fails_validation::<P>(&TENS, beyond, |parcels, tx| insert(parcels, tx, 200));
    insert_fails_validation::<P>(&TENS, beyond, insert_7);
    let before: Act<P> = |parcels, tx| drain(parcels.scan_rev(tx, ..(1, 15), ()));
    insert_fails_validation::<P>(&TENS, before, |parcels, tx| insert(parcels, tx, 1));
    // The scan takes three rows, and the insert comes before the third.
    let three: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).take(3));
    insert_fails_validation::<P>(&TENS, three, |parcels, tx| insert(parcels, tx, 25));
}

protocol_tests!(overlapping: an_insert_outside_a_scanned_range_passes_validation);
fn an_insert_outside_a_scanned_range_passes_validation<P: Protocol>() {
    let tens = || (1..200).map(|number| 10 * number);
    let some: Act<P> = |parcels, tx| drain(parcels.scan(tx, (1, 100)..(1, 140), ()));
    insert_passes_validation::<P>(tens(), some, |parcels, tx| insert(parcels, tx, 1_855));
    // The insert is behind the rows that were taken, but within the range.
    let three: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).take(3));
    insert_passes_validation::<P>(tens(), three, |parcels, tx| insert(parcels, tx, 1_855));
    let last_three: Act<P> = |parcels, tx| drain(parcels.scan_rev(tx, Prefix((1,)), ()).take(3));
    insert_passes_validation::<P>(tens(), last_three, |parcels, tx| insert(parcels, tx, 5));
    // An insert in another district; and a scan that was made and never advanced.
    let one: Act<P> = |parcels, tx| drain(parcels.scan(tx, Prefix((1,)), ()));
    insert_passes_validation::<P>(tens(), one, |parcels, tx| parcels.insert(tx, Parcel::new(2, 7)));
    let none: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., ()).take(0));
    insert_passes_validation::<P>(tens(), none, |parcels, tx| insert(parcels, tx, 5));
    // Rows are observed group by group.
    let notes: Act<P> = |parcels, tx| drain(parcels.scan(tx, .., Parcel::NOTE));
    insert_passes_validation::<P>(tens(), notes, |parcels, tx| {
        parcels.update(tx, &(1, 100), Parcel::WEIGHT.add(1))
    });
}

/// Scans in both directions find the same rows, wherever the boundaries of leaves are.
#[test]
fn scans_in_both_directions_visit_the_same_rows() {
    let Scene { parcels, mut first, .. } = scene::<Occ>(0..300);
    first
        .run(|tx| {
            for (lower, upper) in [(0, 300), (7, 8), (14, 16), (3, 250)] {
                let range = || (1, lower)..(1, upper);
                let keys = |row: Result<((u8, u16), ()), Abort>| row.map(|row| row.0.1);
                let forward: Vec<u16> =
                    parcels.scan(tx, range(), ()).map(keys).collect::<Result<_, _>>()?;
                let mut back: Vec<u16> =
                    parcels.scan_rev(tx, range(), ()).map(keys).collect::<Result<_, _>>()?;
                back.reverse();
                assert_eq!(forward, (lower..upper).collect::<Vec<_>>());
                assert_eq!(back, forward);
            }
            Ok(())
        })
        .unwrap();
}

protocol_tests!(overlapping: own_splits_keep_a_scan_valid_and_inserts_of_others_do_not);
fn own_splits_keep_a_scan_valid_and_inserts_of_others_do_not<P: Protocol>() {
    // The rows are in one leaf, which is nearly full. The transaction splits the leaf into many.
    const TENS: [u16; 12] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120];
    let scan_and_split: Act<P> = |parcels, tx| {
        drain(parcels.scan(tx, (1, 20)..(1, 120), ()))?;
        parcels.insert_many(tx, (51..59).chain(101..109).map(|number| Parcel::new(1, number)))
    };
    let look_and_split: Act<P> = |parcels, tx| {
        assert_eq!(parcels.get(tx, &(1, 115), ())?, None);
        (51..70)
            .filter(|number| number % 10 != 0)
            .try_for_each(|number| insert(parcels, tx, number))
    };
    for look in [scan_and_split, look_and_split] {
        insert_passes_validation::<P>(TENS, look, |_, _| Ok(()));
        // The insert is in the half that has moved to a new leaf.
        insert_fails_validation::<P>(&TENS, look, |parcels, tx| insert(parcels, tx, 115));
    }
    insert_fails_validation::<P>(&TENS, scan_and_split, |parcels, tx| insert(parcels, tx, 25));
    insert_fails_validation::<P>(&TENS, scan_and_split, |parcels, tx| insert(parcels, tx, 109));
    // Another session inserts before the transaction's own split.
    let Scene { parcels, mut first, mut second, beside, .. } = scene::<P>(TENS);
    let mut inner = Ok(());
    let outer = first.with(ONCE()).run(|tx| {
        drain(parcels.scan(tx, Prefix((1,)), ()))?;
        inner = second.with(ONCE()).run(|tx| {
            beside.read(tx, 0, Item::COUNT)?;
            insert(&parcels, tx, 115)
        });
        parcels.insert_many(tx, (51..59).map(|number| Parcel::new(1, number)))?;
        beside.update(tx, 0, Item::COUNT.add(1))
    });
    assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
}

protocol_tests!(overlapping: an_uncommitted_insert_is_an_absence_that_a_scan_observes);
fn an_uncommitted_insert_is_an_absence_that_a_scan_observes<P: Protocol>() {
    // The first transaction has linked a record and read another row. The second transaction scans
    // over the record, which is still absent. Then the first commits, and the second writes the row
    // that the first has read. No record is linked after the scan, so only the record itself can
    // reveal the insert.
    let circle = |reverse: bool| {
        let Scene { parcels, beside, mut first, mut second, .. } = scene::<P>([10, 20, 30]);
        let mut inner = Ok(());
        let outer = first.with(ONCE()).run(|scanner| {
            inner = second.with(ONCE()).run(|inserter| {
                insert(&parcels, inserter, 15)?;
                beside.read(inserter, &0, Item::COUNT)?;
                let numbers: Result<Vec<_>, Abort> = match reverse {
                    false => parcels.scan(scanner, Prefix((1,)), Parcel::NUMBER).collect(),
                    true => parcels.scan_rev(scanner, Prefix((1,)), Parcel::NUMBER).collect(),
                };
                assert_eq!(numbers?.len(), 3, "not committed, not seen");
                Ok(())
            });
            beside.update(scanner, &0, Item::COUNT.add(1))
        });
        assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
    };
    circle(false);
    circle(true);
}

protocol_tests!(overlapping: a_row_reinserted_among_deleted_rows_fails_validation);
fn a_row_reinserted_among_deleted_rows_fails_validation<P: Protocol>() {
    let looks: [Act<P>; 4] = [
        |parcels, tx| drain(parcels.scan(tx, .., ())),
        |parcels, tx| drain(parcels.scan_rev(tx, .., Parcel::NOTE)),
        |parcels, tx| drain(parcels.scan(tx, .., Parcel::WEIGHT).take(2)),
        |parcels, tx| drain(parcels.scan(tx, (1, 15)..(1, 55), Whole)),
    ];
    for look in looks {
        for back in [20, 30, 50] {
            // Records of deleted rows stay in the index, so an insert of the same key does not
            // change the leaf.
            let some_gone = || {
                let mut scene = scene::<P>([10, 20, 30, 40, 50, 60]);
                let gone = |tx: &Tx<'_, P>| {
                    [20, 30, 40, 50]
                        .iter()
                        .try_for_each(|&number| scene.parcels.delete(tx, &(1, number)))
                };
                scene.second.run(gone).unwrap();
                scene
            };
            let Scene { parcels, beside, mut first, mut second, .. } = some_gone();
            let mut inner = Ok(());
            let outer = first.with(ONCE()).run(|tx| {
                look(&parcels, tx)?;
                inner = second.with(ONCE()).run(|tx| {
                    beside.read(tx, 0, Item::COUNT)?;
                    insert(&parcels, tx, back)
                });
                beside.update(tx, 0, Item::COUNT.add(1))
            });
            assert!(
                outer == CONFLICT || inner == CONFLICT,
                "{}: {back} came again unnoticed",
                P::NAME
            );
            assert!(
                both_transactions_commit(&mut some_gone(), false, look, |_, _| Ok(())),
                "the transaction alone commits"
            );
        }
    }
}

protocol_tests!(overlapping: a_count_is_right_in_the_serial_order);
fn a_count_is_right_in_the_serial_order<P: Protocol>() {
    let tens: Vec<u16> = (1..200).map(|number| 10 * number).collect();
    let looks: [Act<P>; 5] = [
        |parcels, tx| parcels.len(tx).map(|rows| assert_eq!(rows, 199)),
        |parcels, tx| parcels.count(tx, Prefix((1,))).map(|rows| assert_eq!(rows, 199)),
        |parcels, tx| parcels.sum(tx, Parcel::SHELF).map(|sum| assert_eq!(sum, 199)),
        |parcels, tx| parcels.contains(tx, (1, 1_005)).map(|is_there| assert!(!is_there)),
        |parcels, tx| parcels.for_each(tx, (), drop),
    ];
    for look in looks {
        insert_fails_validation::<P>(&tens, look, |parcels, tx| insert(parcels, tx, 1_005));
    }
    // The search for any row ends at the first one.
    let is_empty: Act<P> = |parcels, tx| parcels.is_empty(tx).map(|is_empty| assert!(!is_empty));
    insert_passes_validation::<P>(tens.iter().copied(), is_empty, |parcels, tx| {
        insert(parcels, tx, 1_005)
    });
    insert_fails_validation::<P>(&tens, is_empty, |parcels, tx| parcels.delete(tx, (1, 10)));
    let is_empty: Act<P> = |parcels, tx| parcels.is_empty(tx).map(|is_empty| assert!(is_empty));
    insert_fails_validation::<P>(&[], is_empty, |parcels, tx| insert(parcels, tx, 1_005));
}

protocol_tests!(overlapping: a_delete_fails_validation_of_scans_of_every_group);
fn a_delete_fails_validation_of_scans_of_every_group<P: Protocol>() {
    let delete: Act<P> = |parcels, tx| parcels.delete(tx, &(1, 20));
    let looks: [Act<P>; 6] = [
        |parcels, tx| drain(parcels.scan(tx, .., ())),
        |parcels, tx| drain(parcels.scan(tx, .., Parcel::WEIGHT)),
        |parcels, tx| drain(parcels.scan_rev(tx, Prefix((1,)), Parcel::COUNT)),
        |parcels, tx| drain(parcels.scan(tx, (1, 20)..=(1, 20), Parcel::NOTE)),
        |parcels, tx| drain(parcels.iter(tx, Parcel::NUMBER)),
        |parcels, tx| parcels.read(tx, &(1, 20), Parcel::NOTE).map(drop),
    ];
    for look in looks {
        insert_fails_validation::<P>(&[10, 20, 30], look, delete);
        // The change is also noticed if the row exists again when the first transaction commits.
        insert_fails_validation::<P>(&[10, 20, 30], look, |parcels, tx| {
            parcels.delete(tx, &(1, 20))?;
            insert(parcels, tx, 20)
        });
    }
    let beyond: Act<P> = |parcels, tx| drain(parcels.scan(tx, (1, 21).., ()));
    insert_passes_validation::<P>([10, 20, 30], beyond, delete);
}

/// A table with the indexes that its type names, in a scene with rows (1, 0..4).
struct FiledScene<P: Protocol> {
    filed: Table<Filed, P>,
    scene: Scene<P>,
}

fn scene_with_index<P: Protocol>() -> FiledScene<P> {
    let mut scene = scene::<P>([]);
    let filed = scene.db.table::<Filed>("filed").unwrap();
    scene
        .first
        .run(|tx| filed.insert_many(tx, (0..4).map(|number| Parcel::new(1, number).into())))
        .unwrap();
    FiledScene { filed, scene }
}

/// An action of one of the two transactions on filed parcels.
pub(super) type FiledAct<P> = fn(&Table<Filed, P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Asserts that `disturb` invalidates `look`. `look` reads by indexes.
pub(super) fn insert_fails_validation_by_index<P: Protocol>(
    look: FiledAct<P>,
    disturb: FiledAct<P>,
) {
    for in_a_circle in [true, false] {
        if !in_a_circle && P::NAME != Occ::NAME {
            continue;
        }
        let FiledScene { filed, scene } = scene_with_index::<P>();
        let Scene { mut first, mut second, beside, .. } = scene;
        let mut inner = Ok(());
        let outer = first.with(ONCE()).run(|tx| {
            look(&filed, tx)?;
            inner = second.with(ONCE()).run(|tx| {
                if in_a_circle {
                    beside.read(tx, 0, Item::COUNT)?;
                }
                disturb(&filed, tx)
            });
            beside.update(tx, 0, Item::COUNT.add(1))
        });
        assert!(outer == CONFLICT || inner == CONFLICT, "{} {outer:?} {inner:?}", P::NAME);
        assert_entries_match_rows(&mut first, &filed);
    }
}

/// Returns a row at a free place. No other row has its code.
fn another() -> Filed {
    Parcel { code: 5, shelf: 3, owner: 3, colour: 3, ..Parcel::new(1, 9) }.into()
}

protocol_tests!(overlapping: an_insert_of_a_key_missed_in_an_index_fails_validation);
fn an_insert_of_a_key_missed_in_an_index_fails_validation<P: Protocol>() {
    let looks: [FiledAct<P>; 6] = [
        |filed, tx| filed.index(Filed::BY_CODE).get(tx, 5, ()).map(|none| assert_eq!(none, None)),
        |filed, tx| filed.index(Filed::BY_CODE).find(tx, 5).map(|none| assert!(none.is_none())),
        |filed, tx| drain(filed.index(Filed::BY_COLOUR).rows(tx, 3, ())),
        |filed, tx| drain(filed.index(Filed::BY_PLACE).rows(tx, &(3, 3), ())),
        |filed, tx| drain(filed.index(Filed::BY_PLACE).scan(tx, (2, -5)..(4, 0), ())),
        |filed, tx| drain(filed.index(Filed::BY_PLACE).scan_rev(tx, Prefix((3,)), ())),
    ];
    for look in looks {
        insert_fails_validation_by_index::<P>(look, |filed, tx| filed.insert(tx, another()));
        insert_fails_validation_by_index::<P>(look, |filed, tx| {
            filed.put(tx, Filed { number: 2, ..another() })
        });
        insert_fails_validation_by_index::<P>(look, |filed, tx| {
            let columns = (Filed::CODE, (Filed::SHELF, Filed::OWNER), Filed::COLOUR);
            filed.modify(tx, &(1, 3), columns, |columns| *columns = (5, (3, 3), 3))
        });
    }
}

protocol_tests!(overlapping: a_reader_by_an_index_notices_that_the_indexed_column_changes);
fn a_reader_by_an_index_notices_that_the_indexed_column_changes<P: Protocol>() {
    // The transaction reads no part of the row that changes.
    let looks: [FiledAct<P>; 5] = [
        |filed, tx| filed.index(Filed::BY_CODE).read(tx, 1_002, Filed::NOTE).map(drop),
        |filed, tx| filed.index(Filed::BY_CODE).find(tx, 1_002).map(|row| assert!(row.is_some())),
        |filed, tx| drain(filed.index(Filed::BY_COLOUR).rows(tx, 1, Filed::NOTE)),
        |filed, tx| drain(filed.index(Filed::BY_PLACE).rows(tx, &(1, 0), Filed::NOTE)),
        |filed, tx| drain(filed.index(Filed::BY_PLACE).scan_rev(tx, .., Filed::NOTE)),
    ];
    for look in looks {
        insert_fails_validation_by_index::<P>(look, |filed, tx| {
            let columns = (Filed::CODE, Filed::SHELF, Filed::COLOUR);
            filed.modify(tx, &(1, 2), columns, |columns| *columns = (5, 3, 3))
        });
        insert_fails_validation_by_index::<P>(look, |filed, tx| filed.delete(tx, &(1, 2)));
    }
}

protocol_tests!(overlapping: a_reader_by_an_index_does_not_notice_other_columns);
fn a_reader_by_an_index_does_not_notice_other_columns<P: Protocol>() {
    // The entry stays. A transaction that has read only other groups does not conflict.
    let FiledScene { filed, scene } = scene_with_index::<P>();
    let Scene { mut first, mut second, beside, .. } = scene;
    first
        .with(ONCE())
        .run(|tx| {
            filed.index(Filed::BY_CODE).read(tx, 1_002, Filed::NOTE)?;
            drain(filed.index(Filed::BY_PLACE).scan(tx, .., Filed::NOTE))?;
            second
                .run(|tx| filed.update(tx, &(1, 2), (Filed::WEIGHT.add(1), Filed::COUNT.add(1))))?;
            beside.update(tx, 0, Item::COUNT.add(1))
        })
        .unwrap();
}

protocol_tests!(overlapping: a_unique_key_is_given_to_one_of_two);
fn a_unique_key_is_given_to_one_of_two<P: Protocol>() {
    let changes: [FiledAct<P>; 3] = [
        |filed, tx| filed.insert(tx, another()),
        |filed, tx| filed.put(tx, Filed { number: 2, ..another() }),
        |filed, tx| filed.modify(tx, &(1, 3), Filed::CODE, |code| *code = 5),
    ];
    for change in changes {
        let FiledScene { filed, scene } = scene_with_index::<P>();
        let Scene { mut first, mut second, .. } = scene;
        let mut inner = Ok(());
        let outer = first.with(ONCE()).run(|tx| {
            change(&filed, tx)?;
            inner =
                second.with(ONCE()).run(|tx| filed.insert(tx, Filed { number: 8, ..another() }));
            Ok(())
        });
        assert!(outer == CONFLICT || inner == CONFLICT, "{outer:?} {inner:?}");
        assert!(outer == Ok(()) || inner == Ok(()), "{outer:?} {inner:?}");
        // If the second transaction is run again, its error is the reason.
        assert_eq!(
            first.run(|tx| filed.insert(tx, Filed { number: 7, ..another() })),
            Err(Abort::NotUnique)
        );
        assert_entries_match_rows(&mut first, &filed);
    }
}

protocol_tests!(overlapping: a_row_deleted_during_a_lookup_by_index_is_found_whole_or_not);
fn a_row_deleted_during_a_lookup_by_index_is_found_whole_or_not<P: Protocol>() {
    let FiledScene { filed, scene } = scene_with_index::<P>();
    let Scene { mut first, mut second, beside, .. } = scene;
    let by_code = filed.index(Filed::BY_CODE);
    let outer = first.with(ONCE()).run(|tx| {
        let row = by_code.find(tx, 1_002)?.expect("it is there");
        second.run(|tx| {
            beside.read(tx, 0, Item::COUNT)?;
            filed.delete(tx, &(1, 2))
        })?;
        beside.update(tx, 0, Item::COUNT.add(1))?;
        row.get(Whole).map(drop)
    });
    assert_eq!(outer, CONFLICT);
    // Rows are deleted in the middle of a scan that has already read their leaf. The scan does not
    // return the deleted rows, or the transaction fails.
    let outer = first.with(ONCE()).run(|tx| {
        let by_place = filed.index(Filed::BY_PLACE);
        let mut scan = by_place.rows(tx, &(1, 0), Filed::NOTE);
        let (key, _) = scan.next().expect("there is one")?;
        second.run(|tx| filed.delete(tx, &(1, 3)))?;
        let others: Vec<_> = scan.collect::<Result<_, _>>()?;
        assert!(key == (1, 0) && (1..=2).contains(&others.len()), "{others:?}");
        Ok(())
    });
    assert!(outer == Ok(()) || outer == CONFLICT, "{outer:?}");
    assert_entries_match_rows(&mut first, &filed);
}

protocol_tests!(concurrent: an_index_is_complete_after_transactions_from_before_its_creation);
fn an_index_is_complete_after_transactions_from_before_its_creation<P: Protocol>() {
    let Scene { parcels, mut first, .. } = scene::<P>(0..10);
    let mut maker = None;
    first
        .run(|tx| {
            // No transaction has begun since the index was added.
            insert(&parcels, tx, 20)?;
            parcels.modify(tx, &(1, 1), Parcel::SHELF, |shelf| *shelf = 7)?;
            parcels.delete(tx, &(1, 2))?;
            let made = parcels.clone();
            let maker = maker.get_or_insert_with(|| {
                std::thread::spawn(move || {
                    made.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered())
                        .map(drop)
                        .unwrap();
                })
            });
            while parcels.core().indexes.is_empty() {
                std::thread::yield_now();
            }
            // The next transaction maintains the index. Some of its earlier changes are not in the
            // index.
            insert(&parcels, tx, 21)?;
            parcels.modify(tx, &(1, 3), Parcel::SHELF, |shelf| *shelf = 7)?;
            parcels.modify(tx, &(1, 1), Parcel::SHELF, |shelf| *shelf = 8)?;
            parcels.delete(tx, &(1, 20))?;
            parcels.delete(tx, &(1, 4))?;
            assert!(!maker.is_finished(), "it waits for transactions that began before");
            Ok(())
        })
        .unwrap();
    maker.expect("the first attempt made the row").join().unwrap();
    assert_entries_match_rows(&mut first, &parcels);
    let error = parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered()).map(drop);
    assert!(matches!(error, Err(Error::IndexExists { .. })), "{error:?}");
}

protocol_tests!(concurrent: a_unique_index_that_fails_leaves_no_entries);
fn a_unique_index_that_fails_leaves_no_entries<P: Protocol>() {
    let Scene { parcels, mut first, .. } = scene::<P>(0..200);
    first.run(|tx| parcels.modify(tx, &(1, 150), Parcel::CODE, |code| *code = 1_020)).unwrap();
    let make = || parcels.create_index("by_code", Parcel::CODE, IndexOptions::ordered().unique());
    for _ in 0..3 {
        assert!(matches!(make(), Err(Error::NotUnique { .. })));
        assert!(parcels.core().indexes.is_empty());
        let left = parcels.core().indexes.get(0).expect("the failed index keeps its slot");
        assert_eq!(entries_left(&mut first, left), 0);
    }
    // The index never took effect. Operations that it would have refused succeed, and its columns
    // can be updated.
    first
        .run(|tx| {
            parcels.insert(tx, Parcel { code: 1_020, ..Parcel::new(2, 1) })?;
            parcels.update(tx, &(2, 1), Parcel::CODE.set(9))?;
            parcels.update(tx, &(1, 150), Parcel::CODE.set(10))
        })
        .unwrap();
    let by_code = make().unwrap();
    assert_entries_match_rows(&mut first, &parcels);
    assert_eq!(first.run(|tx| by_code.read(tx, 9, Parcel::DISTRICT)), Ok(2));
}

/// Returns the number of entries of an index, whether or not the index can be read.
fn entries_left<P: Protocol>(session: &mut Session<P>, index: &crate::engine::IndexCore) -> usize {
    super::entries::entries_of(session, index).len()
}

protocol_tests!(concurrent: lookups_by_a_dropped_index_fail_and_its_name_can_be_reused);
fn lookups_by_a_dropped_index_fail_and_its_name_can_be_reused<P: Protocol>() {
    let Scene { db, parcels, mut first, .. } = scene::<P>(0..40);
    let make = || parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered());
    let old = make().unwrap();
    assert_eq!(first.run(|tx| old.rows(tx, 1, ()).count()), Ok(40));
    parcels.drop_index("by_shelf").unwrap();
    let refused = first.run(|tx| {
        assert_eq!(old.find(tx, 1).map(drop), Err(Abort::NoIndex));
        assert_eq!(old.get(tx, 1, ()), Err(Abort::NoIndex));
        // The scan returns one error, and then ends.
        let rows: Vec<_> = old.scan_rev(tx, .., ()).take(5).collect();
        assert_eq!(rows, [Err(Abort::NoIndex)]);
        old.read(tx, 1, ())
    });
    assert_eq!(refused, Err(Abort::NoIndex));
    assert!(matches!(parcels.drop_index("by_shelf"), Err(Error::NoIndex { .. })));
    let filed = db.table::<Filed>("filed").unwrap();
    assert!(
        matches!(filed.drop_index("by_code"), Err(Error::NoIndex { .. })),
        "the row type declares the index"
    );
    // The columns can be updated again. The next index of this name has to contain the rows that
    // are changed meanwhile.
    first
        .run(|tx| {
            parcels.update(tx, &(1, 3), Parcel::SHELF.set(5))?;
            parcels.delete(tx, &(1, 4))
        })
        .unwrap();
    let new = make().unwrap();
    assert_eq!(first.run(|tx| new.rows(tx, 1, ()).count()), Ok(38));
    assert_entries_match_rows(&mut first, &parcels);
}

/// A doomed transaction refuses every operation. A scan returns the error once.
#[test]
fn a_scan_ends_after_an_error() {
    let Scene { db, parcels, mut first, .. } = scene::<Occ>(0..3);
    let by_shelf =
        parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered()).unwrap();
    let outer: Result<(), Abort> = first.with(ONCE()).run(|tx| {
        let mut scan = parcels.scan(tx, .., Parcel::WEIGHT);
        let mut rows = by_shelf.rows(tx, 1, Parcel::WEIGHT);
        scan.next().expect("there is one")?;
        rows.next().expect("there is one")?;
        db.run(|tx| parcels.update(tx, &(1, 0), Parcel::WEIGHT.add(1)))?;
        // A long transaction is revalidated now and then.
        let refused = (0..200).find_map(|_| parcels.read(tx, &(1, 1), Parcel::WEIGHT).err());
        assert!(refused.is_some_and(|abort| abort.is_conflict()));
        assert_eq!((scan.take(9).count(), rows.take(9).count()), (1, 1));
        Ok(())
    });
    assert_eq!(outer, CONFLICT);
}

/// A blind update that includes a forbidden column is refused as a whole, before any column is
/// changed.
#[test]
fn a_refused_update_has_no_effect() {
    let Scene { parcels, mut first, .. } = scene::<Occ>(0..3);
    parcels.create_index("by_shelf", Parcel::SHELF, IndexOptions::ordered()).unwrap();
    first
        .run(|tx| {
            let update = (Parcel::WEIGHT.add(1), Parcel::SHELF.set(5), Parcel::NOTE.set(3));
            assert_eq!(parcels.update(tx, &(1, 0), update), Err(Abort::Indexed));
            Ok(())
        })
        .unwrap();
    assert_eq!(first.run(|tx| parcels.read(tx, &(1, 0), Whole)), Ok(Parcel::new(1, 0)));
}
