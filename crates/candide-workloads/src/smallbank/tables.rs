//! The tables: accounts, the names that lead to them, and the two balances of each.

use candide::{Abort, Column, Database, Error, Group, Hashed, Protocol, Record, Table, TableOptions, Text, Tx};
use fastrand::Rng;

/// A customer's name.
pub(super) type CustomerName = Text<64>;

/// Words of a customer's name: its bytes, and one for its length.
const NAME_WORDS: usize = 64 / 8 + 1;

/// The name of customer number `id`: the number, padded with zeros.
pub(super) fn name_of(id: u64) -> CustomerName {
    let mut digits = [b'0'; 64];
    let mut rest = id;
    for digit in digits.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    let name = std::str::from_utf8(&digits).expect("digits are text");
    CustomerName::new(name).expect("64 bytes fit into 64")
}

/// A customer, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The customer's number.
    pub id: u64,
    /// The customer's name.
    pub name: Text<64>,
}

impl Account {
    /// The customer's name.
    pub const NAME: Column<Account, Text<64>> = Column::new(0, 0, "name");
}

impl Record for Account {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; NAME_WORDS];
    const NAME: &'static str = "Account";
    const GROUPS: &'static [Group] = &[Group::new("row", NAME_WORDS)];

    fn key(&self) -> u64 {
        self.id
    }

    fn store(&self, words: &mut [u64]) {
        Account::NAME.put(words, &self.name);
    }

    fn load(key: &u64, words: &[u64]) -> Self {
        Account { id: *key, name: Account::NAME.take(words) }
    }
}

/// A customer, by name: the index that most transactions begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Customer {
    /// The customer's name.
    pub name: Text<64>,
    /// The customer's number.
    pub id: u64,
}

impl Customer {
    /// The customer's number.
    pub const ID: Column<Customer, u64> = Column::new(0, 0, "id");
}

impl Record for Customer {
    type Key = Text<64>;
    type Index = Hashed;
    type Image = [u64; 1];
    const NAME: &'static str = "Customer";
    const GROUPS: &'static [Group] = &[Group::new("row", 1)];

    fn key(&self) -> Text<64> {
        self.name
    }

    fn store(&self, words: &mut [u64]) {
        Customer::ID.put(words, &self.id);
    }

    fn load(key: &Text<64>, words: &[u64]) -> Self {
        Customer { name: *key, id: Customer::ID.take(words) }
    }
}

/// A balance of one customer. Savings and checking accounts are two tables of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// The customer's number.
    pub id: u64,
    /// The money, in cents.
    pub cents: i64,
}

impl Balance {
    /// The money, in cents.
    pub const CENTS: Column<Balance, i64> = Column::new(0, 0, "cents");
}

impl Record for Balance {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 1];
    const NAME: &'static str = "Balance";
    const GROUPS: &'static [Group] = &[Group::new("row", 1)];

    fn key(&self) -> u64 {
        self.id
    }

    fn store(&self, words: &mut [u64]) {
        Balance::CENTS.put(words, &self.cents);
    }

    fn load(key: &u64, words: &[u64]) -> Self {
        Balance { id: *key, cents: Balance::CENTS.take(words) }
    }
}

/// All tables.
pub struct Bank<P: Protocol> {
    /// Customers by number.
    pub accounts: Table<Account, P>,
    /// Customers by name.
    pub customers: Table<Customer, P>,
    /// Savings accounts, never overdrawn.
    pub savings: Table<Balance, P>,
    /// Checking accounts.
    pub checking: Table<Balance, P>,
}

impl<P: Protocol> Clone for Bank<P> {
    fn clone(&self) -> Self {
        Bank {
            accounts: self.accounts.clone(),
            customers: self.customers.clone(),
            savings: self.savings.clone(),
            checking: self.checking.clone(),
        }
    }
}

impl<P: Protocol> Bank<P> {
    /// Creates the tables, with room for so many customers.
    pub(super) fn create(db: &Database<P>, customers: u64) -> Result<Self, Error> {
        let room = || TableOptions::default().capacity(customers as usize);
        Ok(Bank {
            accounts: db.table_with("accounts", room())?,
            customers: db.table_with("customers", room())?,
            savings: db.table_with("savings", room())?,
            checking: db.table_with("checking", room())?,
        })
    }

    /// Enters customer number `id` with random balances.
    pub(super) fn enter(&self, tx: &Tx<'_, P>, id: u64, rng: &mut Rng) -> Result<(), Abort> {
        let name = name_of(id);
        self.accounts.insert(tx, Account { id, name })?;
        self.customers.insert(tx, Customer { name, id })?;
        self.savings.insert(tx, Balance { id, cents: initial_cents(rng) })?;
        self.checking.insert(tx, Balance { id, cents: initial_cents(rng) })
    }
}

/// A normally distributed balance between 10,000 and 50,000 dollars, which are two standard deviations from the middle.
/// What lies outside is drawn again.
fn initial_cents(rng: &mut Rng) -> i64 {
    loop {
        // Box and Muller; 1 - f64() is never 0, whose logarithm is not finite.
        let normal = (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos();
        if normal.abs() <= 2.0 {
            return 3_000_000 + (normal * 1_000_000.0) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_numbers() {
        assert_eq!(name_of(0).as_str(), "0".repeat(64));
        assert_eq!(name_of(907).as_str(), format!("{:064}", 907));
        assert_eq!(name_of(u64::MAX).as_str(), format!("{:064}", u64::MAX));
    }
}
