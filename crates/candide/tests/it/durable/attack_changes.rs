//! Changes of every kind, many of one row in one transaction, which recovery must repeat exactly.

use super::{contents, new_items, open};
use crate::common::{Item, OfCount, Random, Seat, builder, ok, seat};
use candide::schema::Refused;
use candide::{Abort, LoadOptions, Protocol, Table, Tx, Whole};
use candide_log_testing::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Doubles a count and refuses odd ones.
fn double(count: &mut i64) -> Result<(), Refused> {
    if *count % 2 != 0 {
        return Err(Refused);
    }
    *count = count.wrapping_mul(2) % 1_000;
    Ok(())
}

/// Makes one change that the random numbers choose. Errors that concern one row are no errors.
fn change<P: Protocol>(
    tx: &Tx<'_, P>,
    items: &Table<Item, P>,
    random: &mut Random,
) -> Result<(), Abort> {
    let id = random.below(6);
    let value = random.below(100) as i64;
    let changed = match random.below(16) {
        0 | 1 => items.insert(tx, Item::new(id, value)),
        2 | 3 => items.put(tx, Item { flag: true, ..Item::new(id, value) }),
        4 | 5 => items.delete(tx, &id),
        6 => items.update(tx, &id, Item::COUNT.add(value)),
        7 => items.update(tx, &id, Item::SMALL.set(value as u8)),
        8 => items.update(tx, &id, Item::FLAG.set(value % 2 == 0)),
        9 => items.update(tx, &id, Item::OTHER.set(value as u64)),
        10 => items.update(tx, &id, (Item::SMALL.set(3), Item::OTHER.set(4))),
        11 => items.upsert(tx, Item::new(id, value), Item::COUNT.add(-value)).map(drop),
        12 => items.update_with(tx, &id, OfCount(double)),
        13 => items.modify(tx, &id, Whole, |row| row.other += 1),
        14 => items.get(tx, &id, Whole).map(drop),
        _ if value < 5 => items.clear(tx).map(drop),
        _ => items.insert_if_absent(tx, Item::new(id, value)).map(drop),
    };
    match changed {
        Err(Abort::NotFound | Abort::Duplicate) => Ok(()),
        other => other,
    }
}

protocol_tests!(all: random_changes_are_repeated_exactly);

fn random_changes_are_repeated_exactly<P: Protocol>() {
    for seed in 0..8 {
        let disk = SimDisk::new();
        let random = &mut Random::seeded(seed);
        let mut before = BTreeMap::new();
        for opening in 0..3 {
            let splitting = (seed + opening) % 2 == 0;
            let open = builder::<P>().timestamp_splitting(splitting);
            let db = open.open_on(Arc::new(disk.clone()), super::options()).unwrap();
            let items = db.table::<Item>("items").unwrap();
            assert_eq!(contents(&items), before, "seed {seed}, opening {opening}");
            for step in 0..40 {
                let length = 1 + random.below(8);
                let mut last = None;
                let pending = db.run_logged(|tx| {
                    (0..length).try_for_each(|_| change(tx, &items, random))?;
                    last = Some(());
                    if step % 9 == 8 { Err(Abort::Indexed) } else { Ok(()) }
                });
                match pending.peek() {
                    Ok(()) | Err(Abort::Indexed | Abort::Guard) => {}
                    Err(other) => panic!("{other}"),
                }
                if step == 20 && opening == 1 {
                    db.checkpoint().unwrap();
                }
            }
            before = contents(&items);
        }
    }
}

protocol_tests!(all: rows_in_bulk_are_repeated_exactly);

fn rows_in_bulk_are_repeated_exactly<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    let rows = (0..700).map(|id| Item::new(id, id as i64));
    assert_eq!(items.load(rows, LoadOptions::new()).unwrap(), 700);
    let mut stream = Vec::new();
    items.export(&mut stream).unwrap();
    ok(db.run(|tx| items.clear(tx)));
    assert_eq!(items.import(&mut &stream[..]).unwrap(), 700);
    ok(db.run(|tx| items.delete(tx, 9)));
    let seats = db.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| {
        seats.insert_many(tx, (0..40).map(|number| seat(number % 3, number, number)))?;
        seats.modify(tx, &(0, 3), Seat::OWNER, |owner| *owner = 77)?;
        seats.delete(tx, &(1, 4))?;
        seats.insert(tx, seat(1, 4, 5))
    }));
    let of = |seats: &Table<Seat, P>| {
        let mut all = BTreeMap::new();
        seats
            .for_each_quiescent(|row| assert!(all.insert((row.hall, row.seat), *row).is_none()))
            .unwrap();
        all
    };
    let before = (contents(&items), of(&seats));
    assert_eq!((before.0.len(), before.1.len()), (699, 40));
    drop((db, items, seats));
    let db = open::<P>(&disk).unwrap();
    let (seats, items) = (db.table::<Seat>("seats").unwrap(), db.table::<Item>("items").unwrap());
    assert_eq!((contents(&items), of(&seats)), before);
}
