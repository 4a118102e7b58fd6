//! The check, which adds up the money in the bank.

use std::cell::RefCell;

use candide::{Protocol, Session};

use super::tables::{Account, Balance, Bank, Customer, name_of};
use crate::read_back::{Rows, audit, fingerprint, rows};
use crate::{Consistency, Failure};

/// The tables, by means that do not depend on the protocol.
struct Tables<'a> {
    accounts: Rows<'a, Account>,
    customers: Rows<'a, Customer>,
    savings: Rows<'a, Balance>,
    checking: Rows<'a, Balance>,
}

/// Compares the tables with the number of `customers`, and with the `money` in cents that should be
/// in the bank.
pub(super) fn check<P: Protocol>(
    bank: &Bank<P>,
    session: Session<P>,
    customers: u64,
    money: i128,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let tables = Tables {
        accounts: rows(&bank.accounts, session),
        customers: rows(&bank.customers, session),
        savings: rows(&bank.savings, session),
        checking: rows(&bank.checking, session),
    };
    settle(&tables, customers, money)
}

fn settle(tables: &Tables<'_>, customers: u64, money: i128) -> Result<Consistency, Failure> {
    audit(
        |way| {
            let mut contents = Contents::default();
            let mut names = (0..customers).map(name_of);
            tables.accounts.read(way, &mut (0..customers), &mut |row| contents.account(row))?;
            tables.customers.read(way, &mut names, &mut |row| contents.customer(row))?;
            tables.savings.read(way, &mut (0..customers), &mut |row| contents.savings(row))?;
            tables.checking.read(way, &mut (0..customers), &mut |row| contents.checking(row))?;
            Ok(contents)
        },
        |contents, way, consistency| contents.settle(way, customers, money, consistency),
        Contents::eq,
        |contents| format!("{contents:?}"),
    )
}

/// The contents of the bank, in a few numbers that do not depend on the order of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    accounts: u64,
    customers: u64,
    savings: u64,
    checking: u64,
    /// The number of rows of accounts and customers in which number and name do not match.
    misnamed: u64,
    /// The number of savings accounts below zero.
    overdrawn: u64,
    money: i128,
    fingerprint: u64,
}

impl Contents {
    fn account(&mut self, row: &Account) {
        self.accounts += 1;
        self.misnamed += u64::from(row.name != name_of(row.id));
    }

    fn customer(&mut self, row: &Customer) {
        self.customers += 1;
        self.misnamed += u64::from(row.name != name_of(row.id));
    }

    fn savings(&mut self, row: &Balance) {
        self.savings += 1;
        self.overdrawn += u64::from(row.cents < 0);
        self.balance(row, 0);
    }

    fn checking(&mut self, row: &Balance) {
        self.checking += 1;
        self.balance(row, 1);
    }

    fn balance(&mut self, row: &Balance, table: u64) {
        self.money += i128::from(row.cents);
        self.fingerprint = self
            .fingerprint
            .wrapping_add(fingerprint(row.id ^ table << 63, &row.cents.to_le_bytes()));
    }

    /// Examines the contents that one way of reading found.
    fn settle(&self, way: &str, customers: u64, money: i128, consistency: &mut Consistency) {
        let rows = [self.accounts, self.customers, self.savings, self.checking];
        consistency.expect(rows == [customers; 4], || {
            format!(
                "{way}: accounts, customers, savings, checking have {rows:?} rows where {customers} each were loaded"
            )
        });
        consistency.expect(self.misnamed == 0, || {
            format!(
                "{way}: {} customers have a number and a name that contradict each other",
                self.misnamed
            )
        });
        consistency.expect(self.overdrawn == 0, || {
            format!("{way}: {} savings accounts are below zero", self.overdrawn)
        });
        consistency.expect(self.money == money, || {
            format!(
                "{way}: the bank holds {} cents, and deposits less withdrawals are {money}",
                self.money
            )
        });
    }
}
