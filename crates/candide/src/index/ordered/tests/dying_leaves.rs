//! Scans of ordered tables while neighbouring leaves are removed and other leaves take over their
//! keys.

use crate::Database;
use crate::engine::Protocol;
use crate::tests::indexed_rows::Parcel;
use crate::tests::rows::Item;
use crate::tests::transactions::{ONCE, run};

/// The number of rows in a leaf, and of leaves below an inner node, after ascending inserts.
const LEAF: u16 = 14;
const LEAVES: u16 = 13;

protocol_tests!(overlapping: a_scan_visits_entries_inherited_by_a_leaf_once);
/// A leaf beside an inner node is removed under a scan. A leaf below that node takes over its keys,
/// one of which is inserted and committed: the scan, which has not reached it, returns it once or
/// not at all.
fn a_scan_visits_entries_inherited_by_a_leaf_once<P: Protocol>() {
    for backwards in [false, true] {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        let beside = db.table::<Item>("beside").unwrap();
        let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
        run(&mut second, |tx| {
            beside.insert(tx, Item::new(0, 0))?;
            parcels.insert_many(tx, (0..4 * LEAVES * LEAF).map(|row| Parcel::new(1, 10 * row)))
        });
        let reap = |session: &mut _| {
            for _ in 0..4 {
                db.inner.engine.epochs.pass();
                run(session, |_| Ok(()));
            }
        };
        // The second node, or the first, becomes a leaf with one row; and its neighbour, in
        // which the scan is, gets room.
        let node = LEAVES * LEAF;
        let (dying, room) = if backwards { (0..node, node) } else { (node..2 * node, node - 1) };
        let last = dying.start;
        let others = dying.skip(1).chain([room]);
        run(&mut second, |tx| {
            others.clone().try_for_each(|row| parcels.delete(tx, &(1, 10 * row)))
        });
        reap(&mut second);
        run(&mut second, |tx| parcels.delete(tx, &(1, 10 * last)));
        // The record can be reaped, but has not been reaped.
        db.inner.engine.epochs.pass();

        let scanned = first.with(ONCE()).run(|tx| {
            beside.update(tx, 0, Item::COUNT.add(1))?;
            let mut scan: Box<dyn Iterator<Item = _>> = match backwards {
                false => Box::new(parcels.scan(tx, .., ())),
                true => Box::new(parcels.scan_rev(tx, ..(1, 20 * node), ())),
            };
            let mut numbers = vec![scan.next().expect("there are rows")?.0.1];
            let linked = parcels.len_estimate();
            reap(&mut second);
            assert_eq!(parcels.len_estimate(), linked - 1, "its leaf is gone");
            run(&mut second, |tx| parcels.insert(tx, Parcel::new(1, 10 * last + 5)));
            for row in scan {
                numbers.push(row?.0.1);
            }
            Ok(numbers)
        });
        let numbers = scanned.unwrap_or_else(|abort| panic!("{}: {abort}", P::NAME));
        let new = numbers.iter().filter(|&&number| number == 10 * last + 5).count();
        assert!(new <= 1, "{} gives a row {new} times", P::NAME);
        assert!(numbers.is_sorted_by(|a, b| if backwards { a > b } else { a < b }));
    }
}
