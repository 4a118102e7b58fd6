//! Indexes that row types declare on parts of their primary keys.

use crate::common::builder;
use candide::{
    Abort, Database, IndexOptions, LogOptions, Prefix, Protocol, Record, Table, TableOptions, Text,
    Whole,
};
use candide_log_testing::SimDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Its key is of numbers, so a table may pack it.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
#[index(columns(house, kind, price))]
#[unique(name = by_door, columns(door, house), ordered)]
struct Room {
    #[key]
    house: u16,
    #[key]
    #[index(hash)]
    floor: i8,
    #[key]
    door: u32,
    kind: u8,
    price: u64,
}

fn room(number: u32) -> Room {
    let (house, floor) = ((number % 3) as u16, (number % 5) as i8 - 2);
    Room { house, floor, door: number, kind: (number % 4) as u8, price: u64::from(number % 7) }
}

type Key = (u16, i8, u32);

fn key(room: &Room) -> Key {
    (room.house, room.floor, room.door)
}

/// Asserts that all indexes of the table show the rows of the model, and no others.
fn assert_indexed<P: Protocol>(
    db: &Database<P>,
    rooms: &Table<Room, P>,
    model: &BTreeMap<Key, Room>,
) {
    let by_price = rooms.index(Room::BY_HOUSE_KIND_PRICE);
    let (by_floor, by_door) = (rooms.index(Room::BY_FLOOR), rooms.index(Room::BY_DOOR));
    let sorted = |by: fn(&Room) -> (u64, u64, u64)| {
        let mut rows: Vec<Room> = model.values().copied().collect();
        rows.sort_by_key(|room| (by(room), key(room)));
        rows
    };
    let checked = db.run(|tx| {
        let all =
            by_price.scan(tx, .., Whole).map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>();
        let price = |room: &Room| (u64::from(room.house), u64::from(room.kind), room.price);
        assert_eq!(all?, sorted(price), "{}", P::NAME);
        let doors =
            by_door.scan(tx, .., Whole).map(|row| Ok(row?.1)).collect::<Result<Vec<_>, Abort>>();
        assert_eq!(doors?, sorted(|room| (room.door.into(), room.house.into(), 0)), "{}", P::NAME);
        for floor in -3..4 {
            let wanted = model.values().filter(|room| room.floor == floor).count();
            assert_eq!(by_floor.rows(tx, floor, ()).count()?, wanted, "{}", P::NAME);
        }
        for room in model.values() {
            assert_eq!(by_door.get(tx, (room.door, room.house), Whole)?, Some(*room));
            let alike = |other: &&Room| (other.house, other.kind) == (room.house, room.kind);
            let wanted = model.values().filter(alike).count();
            assert_eq!(by_price.count(tx, Prefix((room.house, room.kind)))?, wanted);
        }
        Ok(())
    });
    checked.unwrap();
}

protocol_tests!(all: indexes_on_parts_of_the_key_follow_the_rows);
fn indexes_on_parts_of_the_key_follow_the_rows<P: Protocol>() {
    for apart in [true, false] {
        let disk = SimDisk::new();
        let open = || {
            let db = builder::<P>().open_on(Arc::new(disk.clone()), LogOptions::new()).unwrap();
            let options = TableOptions::default().contention_aware_keys(apart);
            let rooms = db.table_with::<Room>("rooms", options).unwrap();
            (db, rooms)
        };
        let (db, rooms) = open();
        let mut model: BTreeMap<_, _> =
            (0..60).map(|number| room(number * 37 % 101)).map(|room| (key(&room), room)).collect();
        db.run(|tx| rooms.insert_many(tx, model.values().copied())).unwrap();
        assert_indexed(&db, &rooms, &model);
        // Another row with the same door and house, on another floor.
        let first = *model.values().next().unwrap();
        let twin = Room { floor: first.floor + 1, ..first };
        assert_eq!(db.run(|tx| rooms.insert(tx, twin)), Err(Abort::NotUnique), "{}", P::NAME);
        let mut keys = model.keys().copied().collect::<Vec<_>>().into_iter();
        let (moved, gone) = (keys.next().unwrap(), keys.next().unwrap());
        let put = Room { price: 100, kind: 9, ..model[&keys.next().unwrap()] };
        db.run(|tx| {
            rooms.modify(tx, moved, (Room::KIND, Room::PRICE), |(kind, price)| {
                (*kind, *price) = (8, 50)
            })?;
            rooms.delete(tx, gone)?;
            rooms.put(tx, put)
        })
        .unwrap();
        model.get_mut(&moved).map(|room| (room.kind, room.price) = (8, 50)).unwrap();
        model.remove(&gone);
        model.insert(key(&put), put);
        assert_indexed(&db, &rooms, &model);
        drop((db, rooms));
        let (db, rooms) = open();
        assert_indexed(&db, &rooms, &model);
    }
}

/// Its key has a text, so no table packs it.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[index(columns(number, name))]
struct Guest {
    #[key]
    name: Text<20>,
    #[key]
    number: u8,
    visits: u32,
}

#[test]
fn a_declared_index_equals_one_that_is_created() {
    let db = Database::new();
    let guests = db.table::<Guest>("guests").unwrap();
    let created = guests
        .create_index("created", (Guest::NUMBER, Guest::NAME), IndexOptions::ordered())
        .unwrap();
    let declared = guests.index(Guest::BY_NUMBER_NAME);
    db.run(|tx| {
        for (number, name) in ["", "Bo", "Ann", "a guest with a name"].into_iter().enumerate() {
            let name = Text::new(name)?;
            for number in [number as u8, 7] {
                guests.insert(tx, Guest { name, number, visits: 0 })?;
            }
        }
        guests.delete(tx, ("Bo", 1))?;
        guests.update(tx, ("Ann", 7), Guest::VISITS.add(1))?;
        let all = declared.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(all, created.scan(tx, .., Whole).collect::<Result<Vec<_>, _>>()?);
        assert_eq!(all.len(), 7);
        assert_eq!(declared.count(tx, Prefix((7,)))?, 4);
        assert_eq!(declared.get(tx, (7, "Ann"), Guest::VISITS)?, Some(1));
        Ok(())
    })
    .unwrap();
}
