//! Derived rows in a database.

use candide::schema::{Indexed, Refused, Updater};
use candide::{Abort, Bytes, Column, Database, Key, Record, Text, Whole};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Level {
    Low,
    Middle,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key)]
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
    #[group(history)]
    visits: [u8; 9],
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
        visits: std::array::from_fn(|index| index as u8 * 3),
    }
}

/// Runs a transaction on a table of three accounts.
fn with_accounts<T>(
    run: impl Fn(
        &candide::Tx<'_, candide::Occ>,
        &candide::Table<Account, candide::Occ>,
    ) -> Result<T, Abort>,
) -> T {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts").unwrap();
    db.run(|tx| (1..=3).try_for_each(|id| accounts.insert(tx, account(id)))).unwrap();
    db.run(|tx| run(tx, &accounts)).unwrap()
}

#[test]
fn rows_are_read_whole_and_by_column() {
    with_accounts(|tx, accounts| {
        for id in 1..=3 {
            let a = account(id);
            assert_eq!(accounts.read(tx, &id, Whole)?, a);
            let row = accounts.find(tx, &id)?;
            assert_eq!(
                row.read((Account::ID, Account::FROZEN, Account::OWNER))?,
                (id, a.frozen, a.owner)
            );
            assert_eq!(row.read((Account::CENTS, Account::LIMIT))?, (a.cents, a.limit));
            assert_eq!(
                row.read((Account::LEVEL, Account::ADDRESS, Account::CODE))?,
                (a.level, a.address, a.code)
            );
            assert_eq!(row.read((Account::MONTHS, Account::VISITS))?, (a.months, a.visits));
            assert_eq!(row.read((Account::BIG, Account::TYPE))?, (a.big, a.r#type));
            assert_eq!(row.read((Account::SHARE, Account::NOTHING))?, (a.share, a.nothing));
        }
        Ok(())
    });
}

#[test]
fn elements_of_arrays_are_columns() {
    const MARCH: Column<Account, i32> = Account::MONTHS.at(2);
    with_accounts(|tx, accounts| {
        for (index, visits) in account(1).visits.into_iter().enumerate() {
            assert_eq!(accounts.read(tx, 1, Account::VISITS.at(index))?, visits);
        }
        accounts.update(
            tx,
            &1,
            (MARCH.add(-1_000), Account::VISITS.at(8).sub(24), Account::VISITS.at(7).set(255)),
        )?;
        let mut after = account(1);
        after.months[2] -= 1_000;
        after.visits[8] = 0;
        after.visits[7] = 255;
        assert_eq!(accounts.read(tx, 1, Whole)?, after);
        Ok(())
    });
}

#[test]
fn columns_are_updated_without_touching_their_neighbours() {
    with_accounts(|tx, accounts| {
        let mut after = account(2);
        let row = accounts.find(tx, 2)?;
        row.update((
            Account::FROZEN.set(true),
            Account::CENTS.sub(8).at_least(0),
            Account::LIMIT.set(None),
        ))?;
        (after.frozen, after.cents, after.limit) = (true, after.cents - 8, None);
        row.update((
            Account::CODE.set(Bytes::new(*b"xyz")),
            Account::BIG.set(5),
            Account::TYPE.set('t'),
        ))?;
        (after.code, after.big, after.r#type) = (Bytes::new(*b"xyz"), 5, 't');
        row.update((Account::CENTS.max(95), Account::CENTS.add(1)))?;
        row.update((
            Account::SHARE.set(-1.5),
            Account::NOTHING.set(Some(u64::MAX)),
            Account::CENTS.min(90).at_most(90),
        ))?;
        (after.share, after.nothing, after.cents) = (-1.5, Some(u64::MAX), 90);
        assert_eq!(row.read(Whole)?, after);
        Ok(())
    });
}

#[test]
fn indexed_columns_are_read_and_modified() {
    with_accounts(|tx, accounts| {
        let indexed: Column<Account, CustomerId, Indexed> = Account::OWNER;
        let old = accounts.modify(tx, 3, (indexed, Account::LEVEL), |(owner, level)| {
            *level = Level::High;
            std::mem::replace(owner, CustomerId(77))
        })?;
        assert_eq!(old, account(3).owner);
        assert_eq!(
            accounts.read(tx, 3, (Account::OWNER, Account::LEVEL))?,
            (CustomerId(77), Level::High)
        );
        accounts.put(tx, account(3))?;
        assert_eq!(accounts.read(tx, 3, Whole)?, account(3));
        Ok(())
    });
}

#[test]
fn a_read_of_key_columns_tells_whether_the_row_exists() {
    with_accounts(|tx, accounts| {
        assert_eq!(accounts.read(tx, 3, Account::ID)?, 3);
        assert_eq!(accounts.get(tx, 4, Account::ID)?, None);
        accounts.find(tx, 3)?.prefetch((Account::ID, Account::CENTS));
        accounts.delete(tx, 3)?;
        assert_eq!(accounts.get(tx, 3, Account::ID)?, None);
        Ok(())
    });
}

#[test]
#[should_panic(expected = "a row keeps its key")]
fn updates_of_key_columns_are_refused() {
    with_accounts(|tx, accounts| accounts.modify(tx, 3, Account::ID, |id| *id = 4));
}

/// Raises the limit, but not above what there is.
#[derive(Clone, Copy)]
struct RaiseLimit(u16);

impl Updater<Account> for RaiseLimit {
    type Target = (Column<Account, i64>, Column<Account, Option<u16>>);

    fn target(&self) -> Self::Target {
        (Account::CENTS, Account::LIMIT)
    }

    fn apply(&self, (cents, limit): &mut (i64, Option<u16>)) -> Result<(), Refused> {
        let raised = limit.unwrap_or(0) + self.0;
        *limit = Some(raised);
        if i64::from(raised) <= *cents { Ok(()) } else { Err(Refused) }
    }
}

#[test]
fn updaters_work_on_derived_columns() {
    with_accounts(|tx, accounts| {
        accounts.update_with(tx, 1, RaiseLimit(99))?;
        assert_eq!(accounts.read(tx, 1, Account::LIMIT)?, Some(99));
        Ok(())
    });
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(ordered)]
struct Line {
    amount: u8,
    #[key]
    order: u32,
    #[key]
    number: i16,
}

/// That a customer knows another: nothing but a key.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
struct Knows {
    #[key]
    who: CustomerName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Key)]
struct CustomerName {
    branch: u16,
    name: Text<12>,
}

#[test]
fn keys_of_several_fields_are_tuples_in_their_order() {
    let db = Database::new();
    let lines = db.table::<Line>("lines").unwrap();
    let line = Line { amount: 5, order: 7, number: -1 };
    db.run(|tx| lines.insert(tx, line)).unwrap();
    db.run(|tx| {
        assert_eq!(
            lines.read(tx, &(7, -1), (Line::NUMBER, Line::AMOUNT, Line::ORDER))?,
            (-1, 5, 7)
        );
        assert_eq!(lines.read(tx, &(7, -1), Whole)?, line);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_row_type_may_consist_of_its_key() {
    let db = Database::new();
    let known = db.table::<Knows>("known").unwrap();
    let who = CustomerName { branch: 3, name: Text::new("smith").unwrap() };
    db.run(|tx| known.insert(tx, Knows { who })).unwrap();
    db.run(|tx| {
        assert_eq!(known.read(tx, &who, (Knows::WHO, Whole))?, (who, Knows { who }));
        assert_eq!(known.get(tx, &CustomerName { branch: 4, ..who }, Knows::WHO)?, None);
        Ok(())
    })
    .unwrap();
}
