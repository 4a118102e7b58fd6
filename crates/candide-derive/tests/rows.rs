//! Derived rows in a database.

use candide::{Abort, Bytes, Database, Field, Group, Key, KeyColumn, Prefix, Record, Refused, Text, Updater, Whole};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Level {
    Low,
    Middle,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Key)]
struct CustomerId(u64);

/// Something of everything.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[index(name = by_level_owner, columns(level, owner), hash)]
struct Account {
    #[key]
    id: u64,
    frozen: bool,
    #[index]
    owner: CustomerId,
    #[group(balance)]
    cents: i64,
    level: Level,
    /// Where.
    #[unique]
    address: Text<20>,
    #[group(balance)]
    limit: Option<u16>,
    code: Bytes<3>,
    #[group(history)]
    months: [i32; 12],
    big: u128,
    r#type: char,
    share: f32,
    nothing: Option<u64>,
}

fn account(id: u64) -> Account {
    Account {
        id,
        frozen: id % 2 == 1,
        owner: CustomerId(id + 10),
        cents: 100 - id as i64,
        level: [Level::Low, Level::Middle, Level::High][id as usize % 3],
        address: Text::new(&format!("{id} Main Street")).unwrap(),
        limit: (id > 1).then_some(7),
        code: Bytes::new(*b"abc"),
        months: std::array::from_fn(|month| month as i32 - 6),
        big: u128::MAX - u128::from(id),
        r#type: 'ß',
        share: 0.25,
        nothing: (id > 2).then_some(id),
    }
}

#[test]
fn rows_come_back_whole_and_by_column() {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts").unwrap();
    db.run(|tx| (1..=3).try_for_each(|id| accounts.insert(tx, account(id)))).unwrap();
    for id in 1..=3 {
        let a = db.run(|tx| accounts.read(tx, &id, Whole)).unwrap_or_else(|abort: Abort| panic!("{abort}"));
        assert_eq!(a, account(id));
        db.run(|tx| {
            assert_eq!(accounts.read(tx, &id, Account::TYPE)?, a.r#type);
            Ok::<_, Abort>(())
        })
        .unwrap();
    }
}
