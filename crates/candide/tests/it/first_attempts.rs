//! First programs of people who come from maps, from other embedded stores and from SQL: they work
//! as written. What cannot work is in the tests of the compiler's messages, in `candide-derive`.

use candide::{Abort, Database, IndexOptions, Key, Protocol, Record, Session, Table, Text, Whole};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread;

#[derive(Record, Debug, Clone, Copy, PartialEq)]
#[record(ordered)]
struct Account {
    #[key]
    id: u64,
    #[index]
    owner: Text<16>,
    cents: i64,
}

#[derive(Record, Debug, Clone, Copy, PartialEq)]
struct Member {
    #[key]
    name: Text<16>,
    role: Role,
}

/// A column whose values are names.
#[derive(Key, Debug, Clone, Copy, PartialEq)]
enum Role {
    Guest,
    Owner,
}

fn account(id: u64, owner: &str, cents: i64) -> Account {
    Account { id, owner: Text::new(owner).expect("a short name"), cents }
}

/// A database with accounts 1 to 9, which belong to Ann and Bob alternately.
fn bank() -> (Database, Table<Account>) {
    let db = Database::new();
    let accounts = db.table::<Account>("accounts").expect("a new table");
    let owner = |id| if id % 2 == 0 { "Ann" } else { "Bob" };
    db.run(|tx| accounts.insert_many(tx, (1..10).map(|id| account(id, owner(id), 10)))).unwrap();
    (db, accounts)
}

#[test]
fn a_table_is_used_as_a_map() -> Result<(), Abort> {
    let (db, accounts) = bank();
    db.run(|tx| {
        // Keys by value and by reference, of variables and of literals.
        let id = 3;
        assert_eq!(accounts.get(tx, 3, Account::CENTS)?, Some(10));
        assert_eq!(accounts.get(tx, &id, Account::CENTS)?, Some(10));
        assert!(accounts.contains(tx, id)? && !accounts.contains(tx, 30)?);
        assert_eq!((accounts.len(tx)?, accounts.is_empty(tx)?), (9, false));
        accounts.update(tx, id, Account::CENTS.add(5))?;
        accounts.modify(tx, id, Account::CENTS, |cents| *cents *= 2)?;
        assert_eq!(accounts.read(tx, id, Whole)?.cents, 30);
        accounts.delete(tx, id)?;
        assert!(!accounts.delete_if_present(tx, id)?);
        assert!(accounts.upsert(tx, account(id, "Eve", 1), Account::CENTS.add(1))?);
        for (id, owner) in BTreeMap::from([(1, "Ann"), (2, "Bob")]).iter() {
            accounts.put(tx, account(*id, owner, 0))?;
            assert!(accounts.contains(tx, id)?);
        }
        Ok(())
    })
}

#[test]
fn texts_are_looked_up_by_their_contents() -> Result<(), Abort> {
    let db = Database::new();
    let members = db.table::<Member>("members").expect("a new table");
    let name = Text::new("Ann").expect("a short name");
    db.run(|tx| {
        members.insert(tx, Member { name, role: Role::Guest })?;
        members.update(tx, "Ann", Member::ROLE.set(Role::Owner))?;
        let asked = String::from("Ann");
        assert_eq!(members.get(tx, &asked, Member::ROLE)?, Some(Role::Owner));
        assert_eq!(members.get(tx, "a name that is longer than the column", Member::ROLE)?, None);
        Ok(())
    })
}

#[test]
fn ranges_are_scanned_counted_and_summed() -> Result<(), Abort> {
    let (db, accounts) = bank();
    let by_owner = accounts.index(Account::BY_OWNER);
    db.run(|tx| {
        // SELECT id FROM accounts WHERE id BETWEEN 3 AND 5 ORDER BY id DESC
        let ids: Vec<u64> = accounts
            .scan(tx, 3..=5, ())
            .rev()
            .map(|row| Ok(row?.0))
            .collect::<Result<_, Abort>>()?;
        assert_eq!(ids, [5, 4, 3]);
        // SELECT COUNT(*), SUM(cents) FROM accounts WHERE id < 5
        assert_eq!(accounts.count(tx, ..5)?, 4);
        assert_eq!(accounts.scan(tx, ..5, Account::CENTS).sum()?, 40);
        // SELECT SUM(cents) FROM accounts
        assert_eq!(accounts.sum(tx, Account::CENTS)?, 90);
        // SELECT MIN(id), MAX(id) FROM accounts
        assert_eq!(accounts.scan(tx, .., ()).first()?, Some((1, ())));
        assert_eq!(accounts.scan(tx, .., ()).last()?, Some((9, ())));
        // SELECT COUNT(*) FROM accounts WHERE owner = 'Ann'
        assert_eq!(by_owner.rows(tx, "Ann", ()).count()?, 4);
        assert_eq!(by_owner.count(tx, "A".."B")?, 4);
        // SELECT owner, SUM(cents) FROM accounts GROUP BY owner
        let sums = accounts.fold(tx, Whole, BTreeMap::new(), |mut sums, (_, row)| {
            *sums.entry(row.owner.as_str().to_string()).or_insert(0) += row.cents;
            sums
        })?;
        assert_eq!(sums, BTreeMap::from([("Ann".to_string(), 40), ("Bob".to_string(), 50)]));
        Ok(())
    })
}

/// A repository of rows of one type, as services write it.
struct Repository<R: Record, P: Protocol> {
    db: Database<P>,
    table: Table<R, P>,
}

impl<R: Record + PartialEq, P: Protocol> Repository<R, P> {
    fn save(&self, row: R) -> Result<(), Abort> {
        self.db.run(|tx| self.table.put(tx, row.clone()))
    }

    fn load(&self, key: R::Key) -> Result<Option<R>, Abort> {
        self.db.run(|tx| self.table.get(tx, key, Whole))
    }

    fn has(&self, key: &R::Key) -> Result<bool, Abort> {
        self.db.run(|tx| self.table.contains(tx, key))
    }
}

#[test]
fn a_repository_is_generic_over_its_rows() -> Result<(), Abort> {
    let (db, table) = bank();
    let accounts = Repository { db, table };
    let row = account(7, "Eve", 5);
    accounts.save(row)?;
    assert_eq!(accounts.load(7)?, Some(row));
    assert!(accounts.has(&7)? && !accounts.has(&70)?);
    Ok(())
}

#[test]
fn a_database_is_a_static_and_serves_all_threads() -> Result<(), Abort> {
    static BANK: LazyLock<(Database, Table<Account>)> = LazyLock::new(bank);
    let (db, accounts) = &*BANK;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..100).for_each(|_| {
                    db.run(|tx| accounts.update(tx, 1, Account::CENTS.add(1))).unwrap();
                });
            });
        }
    });
    assert_eq!(db.run(|tx| accounts.read(tx, 1, Account::CENTS))?, 410);
    Ok(())
}

/// A future of a runtime with several threads may keep these across an `.await`.
#[test]
fn sessions_and_handles_go_from_thread_to_thread() {
    fn is_send<T: Send + 'static>() {}
    is_send::<Session>();
    is_send::<Database>();
    is_send::<Table<Account>>();
}

#[test]
fn tables_and_indexes_may_have_computed_names() {
    let db = Database::new();
    let tables: Vec<Table<Account>> = (0..200)
        .map(|number| db.table(&format!("accounts of branch {number}")).expect("a new table"))
        .collect();
    let by_cents = tables[7].create_index("by_cents", Account::CENTS, IndexOptions::ordered());
    let by_cents = by_cents.expect("a new index");
    let count = db.run(|tx| {
        tables[7].insert(tx, account(1, "Ann", 5))?;
        Ok((by_cents.contains(tx, 5)?, tables[8].is_empty(tx)?))
    });
    assert_eq!(count, Ok((true, true)));
}
