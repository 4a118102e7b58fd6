//! Columns with codecs in files.

use super::{open, options};
use crate::common::builder;
use candide::{Abort, Codec, Database, Error, Migration, Occ, Record, Whole};
use candide_log_testing::SimDisk;
use std::sync::Arc;

/// The row before its column got a codec.
mod plain {
    #[derive(candide::Record, Clone, Copy, Debug, PartialEq)]
    pub(super) struct Price {
        #[key]
        pub(super) id: u32,
        pub(super) amount: i32,
    }
}

/// Even numbers, by half of them.
struct Halves<const SIGNED: bool>;

impl Codec for Halves<true> {
    type Value = i128;
    type Stored = i32;

    fn encode(value: &i128) -> i32 {
        (value / 2) as i32
    }

    fn decode(stored: i32) -> Result<i128, String> {
        match stored {
            13 => Err("13 is no half".to_owned()),
            _ => Ok(i128::from(stored) * 2),
        }
    }
}

/// The same in twice the bits.
impl Codec for Halves<false> {
    type Value = i128;
    type Stored = i64;

    fn encode(value: &i128) -> i64 {
        (value / 2) as i64
    }

    fn decode(stored: i64) -> Result<i128, String> {
        <Halves<true> as Codec>::decode(stored as i32)
    }
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Price {
    #[key]
    id: u32,
    #[record(with = Halves<true>)]
    amount: i128,
}

#[derive(Record, Clone, Copy, Debug, PartialEq)]
struct Wide {
    #[key]
    id: u32,
    #[record(with = Halves<false>)]
    amount: i128,
    #[record(with = Halves<true>)]
    #[default(8)]
    more: i128,
}

fn made(amounts: [i32; 3]) -> SimDisk {
    let disk = SimDisk::new();
    let db: Database<Occ> = open(&disk).unwrap();
    let prices = db.table::<plain::Price>("prices").unwrap();
    let rows = (0..).zip(amounts).map(|(id, amount)| plain::Price { id, amount });
    db.run(|tx| prices.insert_many(tx, rows.clone())).unwrap();
    disk
}

#[test]
fn a_column_gets_a_codec_without_a_migration() {
    let disk = made([3, 13, -4]);
    let db: Database<Occ> = open(&disk).unwrap();
    let prices = db.table::<Price>("prices").unwrap();
    assert_eq!(db.run(|tx| prices.read(tx, 2, Price::AMOUNT)), Ok(-8));
    assert_eq!(db.run(|tx| prices.read(tx, 1, Whole)), Err(Abort::Undecodable));
    let text = "undecodable on prices.amount, key id: 1: 13 is no half";
    assert_eq!(db.last_outcome().unwrap().to_string(), text);
    db.run(|tx| prices.put(tx, Price { id: 1, amount: 10 })).unwrap();
    drop((db, prices));
    let db: Database<Occ> = open(&disk).unwrap();
    let prices = db.table::<plain::Price>("prices").unwrap();
    assert_eq!(db.run(|tx| prices.read(tx, 1, plain::Price::AMOUNT)), Ok(5));
}

#[test]
fn a_migration_widens_what_is_stored_and_names_what_a_codec_refuses() {
    let disk = made([3, 13, -4]);
    let builder = || builder::<Occ>().migration(Migration::Apply);
    let opened = |builder: candide::Builder<Occ>| {
        builder.open_on(Arc::new(disk.clone()), options()).unwrap()
    };
    let double = |old: Price| Wide { id: old.id, amount: 2 * old.amount, more: 0 };
    let db = opened(builder().migrate("prices", double));
    let refused = db.table::<Wide>("prices").unwrap_err();
    let Error::Migration { table, key, problem } = &refused else { panic!("{refused}") };
    assert_eq!((&table[..], &key[..]), ("prices", "id: 1"));
    assert!(problem.contains("column `amount`") && problem.contains("13 is no half"), "{problem}");
    drop(db);
    let db = opened(builder());
    let wide = db.table::<Wide>("prices").unwrap();
    let row = |id, amount| Wide { id, amount, more: 8 };
    assert_eq!(db.run(|tx| wide.read(tx, 2, Whole)), Ok(row(2, -8)));
    assert_eq!(db.run(|tx| wide.read(tx, 1, Wide::MORE)), Ok(8));
    assert_eq!(db.run(|tx| wide.read(tx, 1, Wide::AMOUNT)), Err(Abort::Undecodable));
}
