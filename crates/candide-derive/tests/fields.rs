//! `#[derive(Field)]`: structs and enums with data as columns, and `#[derive(Tables)]`.

use candide::schema::{Buffer, Field, FieldType, PartType, Tag};
use candide::{
    Abort, Bytes, Column, Database, Field, IndexOptions, Key, Mvcc, Mvto, Protocol, Record, Table,
    Tables, Text, Whole,
};
use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Point {
    x: i16,
    y: i16,
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Area(Point, Point, bool);

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Address {
    r#type: bool,
    street: Text<20>,
    number: u32,
    at: Point,
    code: u64,
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
enum Work {
    Idle,
    SendMail { to: u64, urgent: bool },
    Resize(u32, u32),
    Visit(Address, Option<Point>),
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
enum Small {
    Nothing,
    Half(u8),
    Flag { on: bool, level: u16 },
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Coins(u32);

#[derive(Key, Clone, Copy, Debug, PartialEq)]
struct Degrees(i8);

/// A key of two parts that is also a column.
#[derive(Key, Field, Clone, Copy, Debug, PartialEq)]
struct Seat {
    row: u8,
    number: u16,
}

/// Checks that words become the value again, whatever the buffer contained before.
fn round_trip<T: Field + PartialEq + Debug>(value: T) {
    let mask = if T::BITS < 64 { (1 << T::BITS) - 1 } else { u64::MAX };
    let mut buffer = T::Buffer::ZERO;
    (0..T::WORDS).for_each(|index| buffer.set(index, mask));
    for index in 0..T::WORDS {
        let word = value.word(index);
        assert_eq!(word & !mask, 0, "bits beyond the field's are zero: {value:?}");
        buffer.set(index, word);
    }
    assert_eq!(T::from_buffer(&buffer), value);
}

fn address() -> Address {
    let street = Text::new("Rua do Almada").expect("it fits");
    Address { r#type: true, street, number: 7, at: Point { x: -1, y: 2 }, code: u64::MAX }
}

fn works() -> [Work; 4] {
    [
        Work::Idle,
        Work::SendMail { to: u64::MAX, urgent: true },
        Work::Resize(640, u32::MAX),
        Work::Visit(address(), Some(Point { x: i16::MIN, y: i16::MAX })),
    ]
}

#[test]
fn values_are_unchanged_by_encoding_in_words() {
    let (one, other) = (Point { x: i16::MIN, y: -1 }, Point { x: 1, y: i16::MAX });
    round_trip(one);
    round_trip(Area(one, other, true));
    round_trip(address());
    works().into_iter().for_each(round_trip);
    round_trip([Small::Nothing, Small::Half(255), Small::Flag { on: true, level: u16::MAX }]);
    round_trip(works().map(Some));
    round_trip([None, Some(Small::Half(7))]);
    round_trip([[one, other], [other, one]]);
    round_trip(Coins(u32::MAX));
    round_trip(Seat { row: 255, number: 7 });
}

#[test]
fn parts_take_as_few_bits_as_they_need() {
    assert_eq!((Point::BITS, Area::BITS, Coins::BITS, Seat::BITS), (32, 128, 32, 24));
    // Four words of text, one of the code, and one of 1 + 32 + 32 bits that needs two.
    assert_eq!((Address::WORDS, Small::BITS), (4 + 1 + 2, 2 + 17));
    assert_eq!(Work::WORDS, 1 + Address::WORDS);
}

#[test]
fn types_are_described_by_their_parts() {
    const SIGNED: &FieldType = &FieldType::Signed { bits: 16 };
    const PARTS: &[PartType] =
        &[PartType { name: "x", bit: 0, ty: SIGNED }, PartType { name: "y", bit: 16, ty: SIGNED }];
    assert_eq!(Point::TYPE, &FieldType::Nested { name: "Point", bits: 32, parts: PARTS });
    let FieldType::Variants { name: "Small", bits: 19, tag_bits: 2, variants } = *Small::TYPE
    else {
        panic!("{:?}", Small::TYPE)
    };
    let places: Vec<_> = variants
        .iter()
        .map(|(name, parts)| (*name, parts.iter().map(|part| (part.name, part.bit)).collect()))
        .collect::<Vec<(_, Vec<_>)>>();
    let flag = vec![("on", 2), ("level", 3)];
    assert_eq!(places, [("Nothing", vec![]), ("Half", vec![("0", 2)]), ("Flag", flag)]);
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Player {
    #[key]
    id: u64,
    flag: bool,
    at: Point,
    #[group(home)]
    home: Address,
    work: Work,
    purse: Coins,
    heat: Degrees,
    seat: Seat,
}

fn player(id: u64, work: Work) -> Player {
    let (at, seat) = (Point { x: 3, y: -4 }, Seat { row: 1, number: 2 });
    Player { id, flag: true, at, home: address(), work, purse: Coins(7), heat: Degrees(-3), seat }
}

const X: Column<Player, i16> = Player::AT.part(Point::X);
const HOME_Y: Column<Player, i16> = Player::HOME.part(Address::AT.part(Point::Y));

fn columns_of_parts<P: Protocol>() {
    let db = Database::<P>::default();
    let players = db.table::<Player>("players").unwrap();
    let by_x = players.create_index("by_y", Player::AT.part(Point::Y), IndexOptions::ordered());
    let by_y = by_x.unwrap();
    db.run(|tx| {
        (1..).zip(works()).try_for_each(|(id, work)| players.insert(tx, player(id, work)))?;
        players.update(
            tx,
            1,
            (X.add(10).at_most(13), HOME_Y.sub(1), Player::HOME.part(Address::NUMBER).set(9)),
        )?;
        assert_eq!(players.read(tx, 1, (X, HOME_Y))?, (13, 1));
        players.modify(tx, 2, Player::AT.part(Point::Y), |y| *y = 100)
    })
    .unwrap();
    // A guard of a part refuses as one of a column does.
    assert_eq!(db.run(|tx| players.update(tx, 1, X.add(1).at_most(13))), Err(Abort::Guard));
    assert_eq!(db.run(|tx| players.update(tx, 1, X.add(i16::MAX))), Err(Abort::Overflow));
    let home = Address { number: 9, at: Point { x: -1, y: 1 }, ..address() };
    let expected = Player { at: Point { x: 13, y: -4 }, home, ..player(1, Work::Idle) };
    assert_eq!(db.run(|tx| players.read(tx, 1, Whole)), Ok(expected));
    let ids = db.run(|tx| by_y.scan(tx, 0.., Player::ID).collect_rows());
    assert_eq!(ids, Ok(vec![2]));
    // The whole is a column, too; the part of an index then is refused.
    db.run(|tx| players.modify(tx, 3, Player::AT, |at| *at = Point { x: 0, y: 5 })).unwrap();
    assert_eq!(db.run(|tx| by_y.scan(tx, 0..9, Player::ID).collect_rows()), Ok(vec![3]));
    let whole = db.run(|tx| players.update(tx, 1, Player::AT.set(Point { x: 0, y: 0 })));
    assert_eq!(whole, Err(Abort::Indexed));
}

#[test]
fn parts_are_columns_with_updates_guards_and_indexes() {
    columns_of_parts::<candide::Occ>();
    columns_of_parts::<Mvcc>();
    columns_of_parts::<Mvto>();
}

#[test]
fn tags_are_read_and_indexed_and_change_with_the_data() {
    let db = Database::new();
    let players = db.table::<Player>("players").unwrap();
    let by_work = players.create_index("by_work", Player::WORK.tag(), IndexOptions::hashed());
    let by_work = by_work.unwrap();
    db.run(|tx| {
        (1..).zip(works()).try_for_each(|(id, work)| players.insert(tx, player(id, work)))?;
        assert_eq!(players.read(tx, 2, Player::WORK.tag())?, Work::SEND_MAIL);
        players.modify(tx, 2, Player::WORK, |work| *work = Work::Idle)?;
        let idle = by_work.rows(tx, Work::IDLE, Player::ID).collect_rows()?;
        assert_eq!(idle.len(), 2);
        assert_eq!(by_work.rows(tx, Work::SEND_MAIL, ()).count()?, 0);
        assert_eq!(by_work.rows(tx, Work::VISIT, Player::WORK).collect_rows()?, [works()[3]]);
        Ok(())
    })
    .unwrap();
    assert_eq!(works().map(|work| Tag::of(&work)), {
        [Work::IDLE, Work::SEND_MAIL, Work::RESIZE, Work::VISIT]
    });
    assert_eq!((Work::IDLE.name(), format!("{:?}", Work::SEND_MAIL)), ("Idle", "SendMail".into()));
    assert!(Work::IDLE < Work::VISIT);
    // The tag alone would leave the data of another variant.
    let alone = catch_unwind(AssertUnwindSafe(|| {
        db.run(|tx| players.modify(tx, 1, Player::WORK.tag(), |tag| *tag = Work::RESIZE))
    }));
    assert!(alone.is_err());
    assert_eq!(db.run(|tx| players.read(tx, 1, Player::WORK)), Ok(Work::Idle));
}

#[test]
fn structs_of_one_number_keep_its_updates() {
    let db = Database::new();
    let players = db.table::<Player>("players").unwrap();
    db.run(|tx| {
        players.insert(tx, player(1, Work::Idle))?;
        players.insert(tx, player(2, Work::Idle))?;
        players.update(tx, 1, (Player::PURSE.sub(Coins(5)), Player::HEAT.add(Degrees(-4))))?;
        players.update(tx, 2, Player::HEAT.min(Degrees(-100)).at_least(Degrees(-100)))?;
        assert_eq!(players.read(tx, 1, (Player::PURSE, Player::HEAT))?, (Coins(2), Degrees(-7)));
        assert_eq!(players.iter(tx, Player::HEAT).sum()?, -107);
        assert_eq!(players.iter(tx, Player::PURSE).sum()?, 9);
        Ok(())
    })
    .unwrap();
    let guarded =
        db.run(|tx| players.update(tx, 1, Player::PURSE.sub(Coins(3)).at_least(Coins(0))));
    assert_eq!(guarded, Err(Abort::Guard));
    let guarded =
        db.run(|tx| players.update(tx, 1, Player::HEAT.sub(Degrees(1)).at_least(Degrees(-7))));
    assert_eq!(guarded, Err(Abort::Guard));
    assert_eq!(
        db.run(|tx| players.update(tx, 2, Player::HEAT.sub(Degrees(99)))),
        Err(Abort::Overflow)
    );
}

/// Numbers of two words, as a column and as a column or key.
#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Wei(u128);

#[derive(Key, Clone, Copy, Debug, PartialEq)]
struct Gain {
    wei: i128,
}

#[test]
fn structs_of_one_number_of_128_bits_keep_its_updates() {
    #[derive(Record, Clone, Copy)]
    struct Account {
        #[key]
        id: u8,
        has: Wei,
        gain: Gain,
    }

    let db = Database::new();
    let accounts = db.table::<Account>("accounts").unwrap();
    let gain = |wei| Gain { wei };
    db.run(|tx| {
        let rows = [(1, 1 << 100, i128::MAX), (2, 5, -1)];
        let row = |(id, has, wei)| Account { id, has: Wei(has), gain: gain(wei) };
        accounts.insert_many(tx, rows.map(row))?;
        accounts.update(tx, 1, Account::HAS.sub(Wei(1)).at_least(Wei(1 << 99)))?;
        accounts.update(tx, 2, (Account::HAS.max(Wei(9)), Account::GAIN.add(gain(-1 << 90))))?;
        assert_eq!(accounts.read(tx, 1, Account::HAS)?, Wei((1 << 100) - 1));
        assert_eq!(accounts.read(tx, 2, Account::GAIN)?, gain((-1 << 90) - 1));
        assert_eq!(accounts.sum(tx, Account::HAS)?, (1 << 100) + 8);
        assert_eq!(accounts.sum(tx, Account::GAIN)?, i128::MAX - (1 << 90) - 1);
        Ok(())
    })
    .unwrap();
    let guarded = db.run(|tx| accounts.update(tx, 2, Account::HAS.sub(Wei(1)).at_least(Wei(9))));
    assert_eq!(guarded, Err(Abort::Guard));
    let overflow = db.run(|tx| accounts.update(tx, 1, Account::GAIN.add(gain(1))));
    assert_eq!(overflow, Err(Abort::Overflow));
}

#[test]
fn columns_of_128_bits_have_sums() {
    #[derive(Record, Clone, Copy)]
    #[record(ordered)]
    struct Account {
        #[key]
        id: u8,
        wei: u128,
        gain: i128,
    }

    let db = Database::new();
    let accounts = db.table::<Account>("accounts").unwrap();
    db.run(|tx| {
        let rows = [(1, 5, i128::MAX), (2, u128::MAX - 7, 1), (3, 2, -1)];
        accounts.insert_many(tx, rows.map(|(id, wei, gain)| Account { id, wei, gain }))?;
        assert_eq!(accounts.sum(tx, Account::WEI)?, u128::MAX);
        assert_eq!(accounts.scan(tx, .., Account::GAIN).sum()?, i128::MAX);
        assert_eq!(accounts.scan(tx, ..3, Account::GAIN).sum(), Err(Abort::Overflow));
        Ok(())
    })
    .unwrap();
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
#[index(columns(seat, price))]
struct Visit {
    #[key]
    begin: SystemTime,
    seat: Seat,
    price: f64,
    from: Ipv4Addr,
    lasted: Duration,
}

#[test]
fn times_floats_and_composites_are_columns_keys_and_parts_of_indexes() {
    let db = Database::new();
    let visits = db.table::<Visit>("visits").unwrap();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let seat = Seat { row: 1, number: 2 };
    let visit = |number: u32, price| Visit {
        begin: begin + Duration::from_nanos(number.into()),
        seat,
        price,
        from: Ipv4Addr::new(127, 0, 0, number as u8),
        lasted: Duration::from_millis(number.into()),
    };
    let prices = [1.5, -0.0, -7.25, f64::INFINITY];
    db.run(|tx| {
        visits.insert_many(tx, (1..).zip(prices).map(|(number, price)| visit(number, price)))?;
        let rows = visits.rows(tx, begin..begin + Duration::from_nanos(3)).collect_rows()?;
        assert_eq!(rows, [visit(1, 1.5), visit(2, -0.0)]);
        let by_price = visits.scan_by(tx, Visit::BY_SEAT_PRICE, .., Visit::PRICE).collect_rows()?;
        assert_eq!(by_price, [-7.25, -0.0, 1.5, f64::INFINITY]);
        let some = visits.scan_by(tx, Visit::BY_SEAT_PRICE, (seat, 0.0)..(seat, 2.0), Visit::FROM);
        assert_eq!(some.collect_rows()?, [Ipv4Addr::new(127, 0, 0, 1)]);
        Ok(())
    })
    .unwrap();
}

#[derive(Record, Clone, Copy)]
struct Prize {
    #[key]
    id: Bytes<4>,
}

#[derive(Tables)]
struct World<P: Protocol> {
    players: Table<Player, P>,
    #[table(name = "all prizes")]
    prizes: Table<Prize, P>,
}

#[derive(Tables)]
struct Fixed {
    r#static: Table<Prize>,
}

#[test]
fn tables_of_a_struct_are_opened_by_their_names() {
    let db = Database::<Mvcc>::default();
    let world = World::open(&db).unwrap();
    assert_eq!((world.players.name(), world.prizes.name()), ("players", "all prizes"));
    let again = World::open(&db).unwrap();
    db.run(|tx| again.prizes.insert(tx, Prize { id: Bytes::new(*b"abcd") })).unwrap();
    assert_eq!(db.run(|tx| world.prizes.contains(tx, b"abcd")), Ok(true));
    assert_eq!(Fixed::open(&Database::new()).unwrap().r#static.name(), "static");
    // A table of another row type is refused, by its name.
    let other = Database::<Mvcc>::default();
    other.table::<Prize>("players").unwrap();
    let refused = World::open(&other).map(drop).unwrap_err();
    assert!(refused.to_string().contains("players"), "{refused}");
}
