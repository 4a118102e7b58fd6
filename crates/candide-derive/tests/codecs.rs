//! Columns with codecs, and parts of columns in declared indexes.

use candide::schema::{Coded, Field, FieldType, IndexOf, RowMeta, RowReader, RowWriter};
use candide::{
    Abort, Codec, Column, Database, Field, IndexOptions, Mvto, Ordered, Protocol, Record, Serial,
    Text, Whole,
};
use std::panic::catch_unwind;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Money {
    euros: i64,
    cents: u8,
}

impl Money {
    const fn new(euros: i64, cents: u8) -> Money {
        Money { euros, cents }
    }
}

/// Money as cents, of which there are none below zero.
struct Cents;

impl Codec for Cents {
    type Value = Money;
    type Stored = i64;

    fn encode(money: &Money) -> i64 {
        money.euros * 100 + i64::from(money.cents)
    }

    fn decode(cents: i64) -> Result<Money, String> {
        match cents {
            0.. => Ok(Money { euros: cents / 100, cents: (cents % 100) as u8 }),
            _ => Err(format!("{cents} is below zero")),
        }
    }
}

/// A list of at most three even digits, as text. One is less than a word.
struct Digits;

impl Codec for Digits {
    type Value = [u8; 3];
    type Stored = Text<3>;

    fn encode(digits: &[u8; 3]) -> Text<3> {
        let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        Text::new(&text).expect("digits have one byte each")
    }

    fn decode(text: Text<3>) -> Result<[u8; 3], String> {
        let digits: Vec<u8> = text.bytes().map(|byte| byte.wrapping_sub(b'0')).collect();
        digits.try_into().map_err(|digits: Vec<u8>| format!("{} digits", digits.len()))
    }
}

/// A sign as a bit.
struct Sign;

impl Codec for Sign {
    type Value = i32;
    type Stored = bool;

    fn encode(sign: &i32) -> bool {
        *sign < 0
    }

    fn decode(is_below: bool) -> Result<i32, String> {
        Ok(if is_below { -1 } else { 1 })
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[index(columns(price, id))]
struct Product {
    #[key]
    id: u64,
    /// What it costs.
    #[record(with = Cents)]
    #[default(Money::new(1, 50))]
    price: Money,
    #[group(stock)]
    count: u32,
    #[group(stock)]
    #[record(with = Sign)]
    sign: i32,
    #[group(stock)]
    #[record(with = Digits)]
    digits: [u8; 3],
    #[group(stock)]
    #[record(with = Cents)]
    #[index(hash)]
    worth: Money,
    #[group(stock)]
    #[record(with = self::Cents)]
    lent: Money,
}

fn product(id: u64) -> Product {
    let money = |euros| Money::new(euros, 7);
    Product {
        id,
        price: money(id as i64),
        count: 3,
        sign: -1,
        digits: [1, 2, 3],
        worth: money(9),
        lent: money(4),
    }
}

fn values_of_columns_with_codecs_are_read_and_written<P: Protocol>() {
    for splitting in [true, false] {
        let db = Database::<P>::builder().timestamp_splitting(splitting).build().unwrap();
        let products = db.table::<Product>("products").unwrap();
        let mut session = db.session().unwrap();
        session.run(|tx| products.insert_many(tx, (1..=3).map(product))).unwrap();
        let one = (Product::PRICE, Product::SIGN, Product::DIGITS, Product::COUNT);
        let read = session.run(|tx| products.read(tx, 2, one));
        assert_eq!(read, Ok((Money::new(2, 7), -1, [1, 2, 3], 3)));
        assert_eq!(session.run(|tx| products.read(tx, 2, Whole)), Ok(product(2)));
        assert_eq!(products.get_now(&mut session, 2, Whole), Ok(Some(product(2))));
        let changed = session.run(|tx| {
            products.modify(tx, 2, Product::PRICE, |price| price.euros += 1)?;
            products.modify(tx, 2, Product::WORTH, |worth| worth.cents = 9)?;
            products.update(tx, 2, (Product::LENT.set(Money::new(0, 1)), Product::SIGN.set(1)))?;
            products.update(tx, 2, Product::LENT.stored().add(299))?;
            products.read(tx, 2, Whole)
        });
        let expected = Product {
            price: Money::new(3, 7),
            worth: Money::new(9, 9),
            lent: Money::new(3, 0),
            sign: 1,
            ..product(2)
        };
        assert_eq!(changed, Ok(expected));
        let rows: Vec<Product> = session
            .run(|tx| products.iter(tx, Whole).map(|row| row.map(|(_, row)| row)).collect())
            .unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.contains(&expected));
        // The keys of an index are as they are stored.
        let found = session.run(|tx| {
            let by_worth = products.index(Product::BY_WORTH);
            assert_eq!(by_worth.rows(tx, 907, Product::ID).collect_rows()?.len(), 2);
            by_worth.read(tx, 909, (Product::ID, Product::WORTH))
        });
        assert_eq!(found, Ok((2, Money::new(9, 9))));
        let found = session
            .run(|tx| products.index(Product::BY_PRICE_ID).read(tx, (307, 2), Product::PRICE));
        assert_eq!(found, Ok(Money::new(3, 7)));
        assert_eq!(session.run(|tx| products.sum(tx, Product::LENT.stored())), Ok(1_114));
    }
}

fn a_value_that_its_codec_refuses_is_named<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let products = db.table::<Product>("products").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| products.insert_many(tx, (1..=3).map(product))).unwrap();
    let spoil = Product::LENT.stored().sub(1_000);
    session.run(|tx| products.update(tx, 2, spoil)).unwrap();
    let refused = Err(Abort::Undecodable);
    assert_eq!(session.run(|tx| products.read(tx, 2, Whole)), refused);
    let outcome = session.last_outcome().unwrap();
    assert_eq!((outcome.column, outcome.key.as_deref()), (Some("lent"), Some(&[2][..])));
    let text = "undecodable on products.lent, key id: 2: -593 is below zero";
    assert_eq!(outcome.to_string(), text);

    let mut same = |read: &mut dyn FnMut(&mut candide::Session<P>) -> Result<(), Abort>| {
        session.run(|tx| products.read(tx, 99, ())).expect_err("this outcome is another one");
        assert_eq!(read(&mut session), Err(Abort::Undecodable), "{}", P::NAME);
        assert_eq!(session.last_outcome().unwrap().to_string(), text);
    };
    let lent = (Product::COUNT, Product::LENT);
    same(&mut |session| products.get_now(session, 2, Product::LENT).map(drop));
    same(&mut |session| session.run(|tx| products.read(tx, 2, lent).map(drop)));
    same(&mut |session| session.run(|tx| products.read_for_update(tx, 2, lent).map(drop)));
    same(&mut |session| session.run(|tx| products.modify(tx, 2, Product::LENT, |_| {})));
    same(&mut |session| session.run(|tx| products.for_each(tx, lent, |_| {})));
    same(&mut |session| {
        let by_worth = products.index(Product::BY_WORTH);
        session.run(|tx| by_worth.rows(tx, 907, Whole).collect_rows().map(drop))
    });
    // In the own writes of a transaction, too; a part that is undone leaves the rest.
    let read = session.run(|tx| {
        let spoiled = tx.attempt(|tx| {
            products.update(tx, 1, spoil)?;
            products.read(tx, 1, Product::LENT)
        });
        match spoiled {
            Err(Abort::Undecodable) => products.read(tx, 1, Product::LENT),
            other => other,
        }
    });
    assert_eq!(read, Ok(Money::new(4, 7)));
    // Other columns and rows are read as before, and a new value mends the row.
    assert_eq!(session.run(|tx| products.read(tx, 2, Product::COUNT)), Ok(3));
    let quiescent = products.for_each_quiescent(|_| {}).unwrap_err();
    assert_eq!(quiescent, Abort::Undecodable.into());
    session.run(|tx| products.update(tx, 2, Product::LENT.set(Money::new(4, 7)))).unwrap();
    assert_eq!(session.run(|tx| products.read(tx, 2, Whole)), Ok(product(2)));
}

#[test]
fn columns_with_codecs_are_read_and_written_under_every_way_of_writing() {
    values_of_columns_with_codecs_are_read_and_written::<candide::Occ>();
    values_of_columns_with_codecs_are_read_and_written::<Mvto>();
    values_of_columns_with_codecs_are_read_and_written::<Serial>();
}

#[test]
fn refused_values_are_named_under_every_way_of_writing() {
    a_value_that_its_codec_refuses_is_named::<candide::Occ>();
    a_value_that_its_codec_refuses_is_named::<Mvto>();
    a_value_that_its_codec_refuses_is_named::<Serial>();
}

#[test]
fn a_column_with_a_codec_is_described_as_it_is_stored() {
    let types: Vec<_> = Product::FIELDS.iter().map(|field| (field.name(), field.ty())).collect();
    assert_eq!(types[1], ("price", &FieldType::Signed { bits: 64 }));
    assert_eq!(types[3], ("sign", &FieldType::Bool));
    assert_eq!(types[4], ("digits", &FieldType::ShortText { bytes: 3 }));
    assert_eq!(Product::GROUPS.iter().map(|group| group.words).sum::<usize>(), 1 + 5);
    let _: Coded<Product, Cents> = Product::LENT;
    let _: Column<Product, i64> = Product::LENT.stored();
    let _: IndexOf<Product, (i64, u64), Ordered> = Product::BY_PRICE_ID;
    assert_eq!(Product::LENT.name(), "lent");
}

#[test]
fn rows_outside_of_tables_panic_with_the_name_of_the_column() {
    let mut words = [0; 6];
    product(1).store(&mut RowWriter::new(&mut words));
    assert_eq!(Product::load(&1, &RowReader::new(&words)), product(1));
    Product::WORTH.stored().put(&mut RowWriter::new(&mut words), &-7);
    let loaded = catch_unwind(|| Product::load(&1, &RowReader::new(&words)));
    let panic = loaded.expect_err("the codec refuses it");
    let text = panic.downcast_ref::<String>().unwrap();
    assert_eq!(text, "column `worth` has a value that its codec refuses: -7 is below zero");
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Point {
    x: i32,
    y: i32,
}

#[derive(Field, Clone, Copy, Debug, PartialEq)]
struct Box2(Point, Point, u64);

/// A field as it is stored, which has parts.
struct Swapped;

impl Codec for Swapped {
    type Value = (i32, i32);
    type Stored = Point;

    fn encode(value: &(i32, i32)) -> Point {
        Point { x: value.1, y: value.0 }
    }

    fn decode(point: Point) -> Result<(i32, i32), String> {
        Ok((point.y, point.x))
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[unique(columns(at.x: i32, id))]
#[index(hash, columns(at.y: i32))]
#[index(name = by_corner, columns(r#box.1: Point.x: i32, r#box.2: u64, small))]
#[unique(columns(pair.x: i32))]
struct Player {
    #[key]
    id: u64,
    small: u8,
    #[group(place)]
    at: Point,
    #[group(place)]
    r#box: Box2,
    #[record(with = Swapped)]
    pair: (i32, i32),
}

const PAIR_X: Column<Player, i32, candide::schema::Indexed> = Player::PAIR.stored().part(Point::X);

fn player(id: u64, x: i32, y: i32) -> Player {
    let r#box = Box2(Point { x: 0, y: 0 }, Point { x: -x, y }, 7);
    Player { id, small: 5, at: Point { x, y }, r#box, pair: (0, id as i32) }
}

#[test]
fn declared_indexes_have_parts_of_columns() {
    let _: IndexOf<Player, (i32, u64), candide::Hashed> = Player::BY_AT_X_ID;
    let _: IndexOf<Player, i32, candide::Hashed> = Player::BY_AT_Y;
    let _: IndexOf<Player, (i32, u64, u8), Ordered> = Player::BY_CORNER;
    for splitting in [true, false] {
        let db = Database::<candide::Occ>::builder().timestamp_splitting(splitting);
        let db = db.build().unwrap();
        let players = db.table::<Player>("players").unwrap();
        db.run(|tx| players.insert_many(tx, [player(1, 3, -4), player(2, 3, 4)])).unwrap();
        let (by_x, by_corner) =
            (players.index(Player::BY_AT_X_ID), players.index(Player::BY_CORNER));
        assert_eq!(db.run(|tx| by_x.read(tx, (3, 2), Player::AT)), Ok(Point { x: 3, y: 4 }));
        let corners = db.run(|tx| by_corner.scan(tx, (-3, 0, 0).., Player::ID).collect_rows());
        assert_eq!(corners.unwrap().len(), 2);
        db.run(|tx| players.modify(tx, 1, Player::AT.part(Point::X), |x| *x = 8)).unwrap();
        db.run(|tx| players.modify(tx, 2, Player::AT, |at| at.y = 9)).unwrap();
        assert_eq!(db.run(|tx| by_x.get(tx, (3, 1), ())), Ok(None));
        assert_eq!(db.run(|tx| by_x.read(tx, (8, 1), Player::SMALL)), Ok(5));
        let by_y = players.index(Player::BY_AT_Y);
        assert_eq!(db.run(|tx| by_y.read(tx, 9, Player::ID)), Ok(2));
        assert_eq!(db.run(|tx| by_y.get(tx, 4, ())), Ok(None));
        let twin = Player { pair: (7, 2), ..player(3, 0, 0) };
        assert_eq!(db.run(|tx| players.insert(tx, twin)), Err(Abort::NotUnique));
        // An index that is made later, by a part that is a constant.
        let later = players.create_index("later", PAIR_X, IndexOptions::ordered()).unwrap();
        assert_eq!(db.run(|tx| later.read(tx, 2, Player::PAIR)), Ok((0, 2)));
    }
}

/// Returns the bits of what a codec stores.
const fn bits<C: Codec>() -> u32 {
    <C::Stored as Field>::BITS
}

#[test]
fn a_codec_of_less_than_a_word_shares_its_word() {
    assert_eq!((bits::<Sign>(), bits::<Swapped>()), (1, 64));
    let mut words = [u64::MAX; 6];
    Product::SIGN.put(&mut RowWriter::new(&mut words), &5);
    let row = RowReader::new(&words);
    assert_eq!((Product::SIGN.take(&row), Product::COUNT.take(&row)), (1, u32::MAX));
    Product::SIGN.put(&mut RowWriter::new(&mut words), &-5);
    assert_eq!(words, [u64::MAX; 6]);
}
