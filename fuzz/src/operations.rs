//! Operations of one session on two tables with indexes, against maps.

use crate::Choices;
use candide::policy::{Policies, Policy};
use candide::protocols::Exclusion;
use candide::{
    Abort, Database, IndexOptions, Occ, Prefix, Protocol, Record, Serial, Table, TableOptions, Tx,
    Whole,
};
use std::collections::BTreeMap;

/// A row of two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[index(name = by_place, columns(shelf, colour))]
pub struct Parcel {
    #[key]
    district: u8,
    #[key]
    number: u8,
    #[unique]
    code: u8,
    shelf: i8,
    weight: i64,
    #[group(state)]
    #[index(hash)]
    colour: u8,
    #[group(state)]
    count: i16,
}

type Map = BTreeMap<(u8, u8), Parcel>;

fn parcel(choices: &mut Choices<'_>) -> Parcel {
    let (district, number) = key(choices);
    let (code, shelf, colour) =
        (choices.byte(), choices.below(3) as i8 - 1, choices.below(3) as u8);
    Parcel { district, number, code, shelf, weight: 0, colour, count: 0 }
}

fn key(choices: &mut Choices<'_>) -> (u8, u8) {
    let byte = choices.byte();
    (byte >> 6, byte & 63)
}

/// Runs the operations that the bytes choose, under the protocol that the first byte chooses.
pub fn run(bytes: &[u8]) {
    let choices = &mut Choices::new(bytes);
    match choices.below(4) {
        0 => run_under::<Occ>(choices, Policy::Optimistic.into()),
        3 => run_under::<Occ>(choices, Policies::mixed().with("hashed", Policy::WaitDie)),
        1 => run_under::<Serial>(choices, Exclusion::OneSession),
        _ => run_under::<Serial>(choices, Exclusion::GlobalLock),
    }
}

fn run_under<P: Protocol>(choices: &mut Choices<'_>, policy: P::Policy) {
    let kinds = choices.byte();
    let builder = Database::<P>::builder()
        .policy(policy)
        .timestamp_splitting(kinds & 1 == 0)
        .commit_time_updates(kinds & 2 == 0);
    let db = builder.build().expect("valid options");
    let options = TableOptions::default().contention_aware_keys(kinds & 4 == 0);
    let tables = [
        db.table_with::<Parcel>("hashed", options).expect("a new table"),
        db.table_with::<Parcel>("ordered", options.ordered()).expect("a new table"),
    ];
    let mut maps = [Map::new(), Map::new()];
    while !choices.is_over() {
        let mut after = maps.clone();
        let keeps = choices.below(4) > 0;
        // Conflicts do not happen, so the closure runs once.
        let ended = db.run(|tx| {
            for _ in 0..choices.below(12) {
                let side = choices.below(2);
                operate(&tables[side], tx, &mut after[side], choices)?;
            }
            if keeps { Ok(()) } else { Err(Abort::AttemptsExhausted) }
        });
        match ended {
            Ok(()) => maps = after,
            Err(Abort::AttemptsExhausted | Abort::Guard) => {}
            Err(abort) => panic!("{abort}"),
        }
        if choices.below(8) == 0 {
            let name = ["one", "two"][choices.below(2)];
            for table in &tables {
                if table
                    .create_index(name, (Parcel::COUNT, Parcel::SHELF), IndexOptions::ordered())
                    .is_err()
                {
                    table.drop_index(name).expect("it exists");
                }
            }
        }
        for (table, map) in tables.iter().zip(&maps) {
            check(&db, table, map);
        }
    }
}

/// An operation, on the table and on the map.
fn operate<P: Protocol>(
    table: &Table<Parcel, P>,
    tx: &Tx<'_, P>,
    map: &mut Map,
    choices: &mut Choices<'_>,
) -> Result<(), Abort> {
    let row = parcel(choices);
    let key = (row.district, row.number);
    let taken =
        |map: &Map, code: u8| map.iter().any(|(other, row)| *other != key && row.code == code);
    match choices.below(10) {
        0 => assert_eq!(table.get(tx, &key, Whole)?, map.get(&key).copied()),
        1 | 2 => {
            let wanted = match (map.contains_key(&key), taken(map, row.code)) {
                (true, _) => Err(Abort::Duplicate),
                (false, true) => Err(Abort::NotUnique),
                (false, false) => Ok(()),
            };
            assert_eq!(tx.attempt(|tx| table.insert(tx, row)), wanted);
            if wanted.is_ok() {
                map.insert(key, row);
            }
        }
        3 => {
            let wanted = if taken(map, row.code) { Err(Abort::NotUnique) } else { Ok(()) };
            assert_eq!(tx.attempt(|tx| table.put(tx, row)), wanted);
            if wanted.is_ok() {
                map.insert(key, row);
            }
        }
        4 => assert_eq!(table.delete_if_present(tx, &key)?, map.remove(&key).is_some()),
        5 => {
            let updated =
                table.update_if_present(tx, &key, Parcel::WEIGHT.add(i64::from(row.code)))?;
            assert_eq!(
                updated,
                map.get_mut(&key).map(|old| old.weight += i64::from(row.code)).is_some()
            );
        }
        6 => {
            let change = |old: &mut (i8, u8)| *old = (row.shelf, row.colour);
            let changed =
                table.modify_if_present(tx, &key, (Parcel::SHELF, Parcel::COLOUR), change)?;
            let wanted =
                map.get_mut(&key).map(|old| (old.shelf, old.colour) = (row.shelf, row.colour));
            assert_eq!(changed, wanted);
        }
        7 => {
            let by_code = table.index(Parcel::BY_CODE);
            let wanted = map.values().find(|old| old.code == row.code).copied();
            assert_eq!(by_code.get(tx, &row.code, Whole)?, wanted);
        }
        8 => {
            // Rows change while they are scanned, which the scan does not see.
            let wanted: Map = map.clone();
            let by_place = table.index(Parcel::BY_PLACE);
            let mut found = Map::new();
            for entry in by_place.scan(tx, Prefix((row.shelf,)), Whole) {
                let (key, old) = entry?;
                assert!(found.insert(key, old).is_none());
                table.delete(tx, &key)?;
                map.remove(&key);
            }
            assert!(
                found.into_iter().eq(wanted.into_iter().filter(|(_, old)| old.shelf == row.shelf))
            );
        }
        _ => {
            // A guard that fails ends the transaction, whatever comes after it.
            let exists =
                table.update_if_present(tx, &key, Parcel::WEIGHT.sub(200).at_least(-300))?;
            if let Some(old) = map.get_mut(&key) {
                assert!(exists);
                old.weight -= 200;
                if old.weight < -300 {
                    return Err(Abort::Guard);
                }
            }
        }
    }
    Ok(())
}

/// Asserts that a transaction sees the contents of the map by every lookup and scan.
fn check<P: Protocol>(db: &Database<P>, table: &Table<Parcel, P>, map: &Map) {
    let mut quiescent = Map::new();
    table
        .for_each_quiescent(|row| {
            assert!(quiescent.insert((row.district, row.number), *row).is_none())
        })
        .expect("idle");
    assert_eq!(quiescent, *map);
    db.run(|tx| {
        let rows = table.iter(tx, Whole).collect::<Result<Map, Abort>>()?;
        assert_eq!(rows, *map);
        let by_place = table
            .index(Parcel::BY_PLACE)
            .scan_rev(tx, .., Whole)
            .collect::<Result<Vec<_>, Abort>>()?;
        assert!(by_place.is_sorted_by_key(|(_, row)| std::cmp::Reverse((row.shelf, row.colour))));
        assert!(by_place.len() == map.len() && by_place.into_iter().collect::<Map>() == *map);
        for row in map.values() {
            assert_eq!(table.index(Parcel::BY_CODE).read(tx, &row.code, Whole)?, *row);
        }
        for colour in 0..3 {
            let rows = table.index(Parcel::BY_COLOUR).rows(tx, colour, Whole).count()?;
            assert_eq!(rows, map.values().filter(|row| row.colour == colour).count());
        }
        Ok(())
    })
    .expect("no other transaction is in the way");
}
