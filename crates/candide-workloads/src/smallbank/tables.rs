//! The tables: accounts, the index from names to accounts, and the two balances of each account.

use candide::{Abort, Database, Error, Protocol, Record, Table, TableOptions, Text, Tx};
use fastrand::Rng;

/// A customer's name.
pub(super) type CustomerName = Text<64>;

/// Returns the name of customer number `id`: the number, padded with zeros.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Account {
    /// The customer's number.
    #[key]
    pub id: u64,
    /// The customer's name.
    pub name: Text<64>,
}

/// A customer, by name. Most transactions begin with a lookup in this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Customer {
    /// The customer's name.
    #[key]
    pub name: Text<64>,
    /// The customer's number.
    pub id: u64,
}

/// A balance of one customer. The tables of savings and of checking accounts both have rows of this
/// type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
pub struct Balance {
    /// The customer's number.
    #[key]
    pub id: u64,
    /// The money, in cents.
    pub cents: i64,
}

/// All tables.
pub struct Bank<P: Protocol> {
    /// Customers by number.
    pub accounts: Table<Account, P>,
    /// Customers by name.
    pub customers: Table<Customer, P>,
    /// Savings accounts, which are never overdrawn.
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
    /// Creates the tables, with room for `customers` customers.
    pub(super) fn create(db: &Database<P>, customers: u64) -> Result<Self, Error> {
        let room = || TableOptions::default().capacity(customers as usize);
        Ok(Bank {
            accounts: db.table_with("accounts", room())?,
            customers: db.table_with("customers", room())?,
            savings: db.table_with("savings", room())?,
            checking: db.table_with("checking", room())?,
        })
    }

    /// Inserts customer number `id` with random balances.
    pub(super) fn enter(&self, tx: &Tx<'_, P>, id: u64, rng: &mut Rng) -> Result<(), Abort> {
        let name = name_of(id);
        self.accounts.insert(tx, Account { id, name })?;
        self.customers.insert(tx, Customer { name, id })?;
        self.savings.insert(tx, Balance { id, cents: initial_cents(rng) })?;
        self.checking.insert(tx, Balance { id, cents: initial_cents(rng) })
    }
}

/// Draws a normally distributed balance. The bounds, 10,000 and 50,000 dollars, are two standard
/// deviations from the mean. A balance outside of these bounds is drawn again.
fn initial_cents(rng: &mut Rng) -> i64 {
    loop {
        // The method of Box and Muller. 1 - f64() is never 0, so its logarithm is finite.
        let normal =
            (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos();
        if normal.abs() <= 2.0 {
            return 3_000_000 + (normal * 1_000_000.0) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_customers_are_padded_numbers() {
        assert_eq!(name_of(0).as_str(), "0".repeat(64));
        assert_eq!(name_of(907).as_str(), format!("{:064}", 907));
        assert_eq!(name_of(u64::MAX).as_str(), format!("{:064}", u64::MAX));
    }
}
