//! Tests that rows read as words are the rows of the table.

use super::indexed_rows::Parcel;
use super::rows::Item;
use super::transactions::{CONFLICT, ONCE, run};
use crate::engine::Protocol;
use crate::experiments::{Factor, TableWords};
use crate::schema::{RowMeta, RowReader, image_words};
use crate::{Abort, Database, Key, Record, TableOptions, Tx};
use std::ops::{Bound, ControlFlow};

/// Reads a row by its words.
fn get<R: Record, P: Protocol>(
    words: TableWords<'_, P>,
    tx: &Tx<'_, P>,
    key: R::Key,
) -> Result<Option<R>, Abort> {
    let mut row = vec![u64::MAX; 100];
    let is_there = words.get(tx, key.words().as_ref(), &mut row)?;
    assert!(!is_there || row.len() == image_words(R::GROUPS));
    Ok(is_there.then(|| R::load(&key, &RowReader::new(&row))))
}

/// Scans a range by words, and takes at most `count` rows.
fn scan<R: Record, P: Protocol>(
    words: TableWords<'_, P>,
    tx: &Tx<'_, P>,
    range: [Bound<R::Key>; 2],
    count: usize,
) -> Result<Vec<R>, Abort> {
    let mut rows = Vec::new();
    let range = range.map(|bound| bound.map(|key| key.words()));
    let range = [&range[0], &range[1]].map(|bound| bound.as_ref().map(AsRef::as_ref));
    words.scan(tx, range.into(), &mut |key, row| {
        rows.push(R::load(&R::Key::from_words(key), &RowReader::new(row)));
        if rows.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(rows)
}

protocol_tests!(all: a_row_read_as_words_equals_the_row);
fn a_row_read_as_words_equals_the_row<P: Protocol>() {
    for splitting in [false, true] {
        let db = Database::<P>::builder()
            .manual_epochs(1)
            .timestamp_splitting(splitting)
            .build()
            .unwrap();
        let items = db.table_with("items", TableOptions::default().ordered()).unwrap();
        let (words, mut session) = (items.as_words(), db.session().unwrap());
        run(&mut session, |tx| (0..5).try_for_each(|id| items.insert(tx, Item::new(id, 10))));
        run(&mut session, |tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            items.update(tx, 2, (Item::OTHER.set(7), Item::SMALL.set(9)))?;
            items.delete(tx, 3)?;
            items.insert(tx, Item::new(9, 90))?;
            for id in 0..10 {
                assert_eq!(get(words, tx, id)?, items.get(tx, &id, crate::Whole)?, "{id}");
            }
            Ok(())
        });
        let rows =
            [0, 1, 2, 4, 9].map(|id| run(&mut session, |tx| items.read(tx, &id, crate::Whole)));
        assert_eq!((rows[1].count, rows[2].other, rows[2].small), (11, 7, 9));
        let scanned =
            |tx: &Tx<'_, P>, from, to, count| scan::<Item, P>(words, tx, [from, to], count);
        run(&mut session, |tx| {
            use Bound::{Excluded, Included, Unbounded};
            assert_eq!(scanned(tx, Unbounded, Unbounded, 9)?, rows);
            assert_eq!(scanned(tx, Unbounded, Unbounded, 2)?, rows[..2]);
            assert_eq!(scanned(tx, Included(1), Excluded(4), 9)?, rows[1..3]);
            assert_eq!(scanned(tx, Excluded(1), Included(4), 9)?, rows[2..4]);
            items.update(tx, 4, Item::COUNT.add(5))?;
            items.delete(tx, 9)?;
            let written = Item { count: 15, ..rows[3] };
            assert_eq!(scanned(tx, Included(3), Unbounded, 9)?, [written]);
            Ok(())
        });
        let mut iterated = 0;
        let count = words.for_each_quiescent(&mut |key, row| {
            let item = Item::load(&key[0], &RowReader::new(row));
            iterated += item.count;
        });
        assert_eq!((count, iterated), (Ok(4), 10 + 11 + 10 + 15));
        assert_eq!(words.versions_of(&mut session, &[9]), Ok(None));
        assert!(matches!(words.versions_of(&mut session, &[4]), Ok(Some(1..))));
    }
}

protocol_tests!(all: packed_keys_are_found_by_the_words_of_their_type);
fn packed_keys_are_found_by_the_words_of_their_type<P: Protocol>() {
    for factor in [None, Some(Factor::ContendedKeys)] {
        let db = Database::<P>::builder().factors(factor).build().unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        assert_eq!(parcels.core().layout.key_words() == 1, factor.is_some());
        let (words, mut session) = (parcels.as_words(), db.session().unwrap());
        let rows =
            [(1, 7), (3, 500), (3, 501)].map(|(district, number)| Parcel::new(district, number));
        run(&mut session, |tx| rows.iter().try_for_each(|row| parcels.insert(tx, *row)));
        run(&mut session, |tx| {
            assert_eq!(get(words, tx, (3, 500))?, Some(rows[1]));
            assert_eq!(get::<Parcel, P>(words, tx, (3, 502))?, None);
            let range = [Bound::Included((1, 8)), Bound::Included((3, 501))];
            assert_eq!(scan::<Parcel, P>(words, tx, range, 9)?, rows[1..]);
            Ok(())
        });
        assert!(matches!(words.versions_of(&mut session, &[3, 500]), Ok(Some(1..))));
    }
}

protocol_tests!(overlapping: rows_read_as_words_are_observed);
fn rows_read_as_words_are_observed<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let items = db.table_with("items", TableOptions::default().ordered()).unwrap();
    let words = items.as_words();
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    run(&mut session, |tx| (0..3).try_for_each(|id| items.insert(tx, Item::new(id, 10))));
    for (read, is_there) in [(1, true), (7, false)] {
        for scanning in [false, true] {
            let ended = session.with(ONCE()).run(|tx| {
                if scanning {
                    let range = [Bound::Included(read), Bound::Included(read + 1)];
                    scan::<Item, P>(words, tx, range, 9)?;
                } else {
                    get::<Item, P>(words, tx, read)?;
                }
                // Both transactions read a row that the other one writes.
                other.run(|tx| {
                    items.read(tx, 0, Item::COUNT)?;
                    match (is_there, scanning) {
                        (true, _) => items.update(tx, &read, Item::COUNT.add(1)),
                        (false, true) => items.insert(tx, Item::new(8, 1)),
                        (false, false) => items.insert(tx, Item::new(7, 1)),
                    }
                })?;
                items.update(tx, 0, Item::COUNT.add(1))
            });
            assert_eq!(ended, CONFLICT, "{}: {read} {scanning}", P::NAME);
        }
    }
}

#[test]
fn tables_of_other_databases_are_refused() {
    let [db, other] = [(); 2].map(|()| Database::new());
    let items = db.table::<Item>("items").unwrap();
    let (words, mut foreign) = (items.as_words(), other.session().unwrap());
    let ended = foreign.run(|tx| get::<Item, _>(words, tx, 1));
    assert_eq!(ended, Err(Abort::ForeignTable));
    assert_eq!(words.versions_of(&mut foreign, &[1]), Err(Abort::ForeignTable));
}

#[test]
#[should_panic(expected = "without order")]
fn a_table_without_order_is_not_scanned() {
    let db = Database::new();
    let items = db.table::<Item>("items").unwrap();
    let _ = db.run(|tx| scan::<Item, _>(items.as_words(), tx, [Bound::Unbounded; 2], 1));
}
