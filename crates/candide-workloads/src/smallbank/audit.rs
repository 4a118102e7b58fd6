//! The check: counting the money.

use candide::{Protocol, Session};

use super::tables::{Account, Balance, Bank, Customer, name_of};
use crate::read_back::{by_transactions, fingerprint};
use crate::{Consistency, Failure};

/// Compares the bank with the number of its customers and the money that should be in it.
pub(super) fn check<P: Protocol>(
    bank: &Bank<P>,
    mut session: Session<P>,
    customers: u64,
    money: i128,
) -> Result<Consistency, Failure> {
    let mut looked_up = Books::default();
    by_transactions(&mut session, &bank.accounts, customers, |row| looked_up.account(row))?;
    for id in 0..customers {
        let name = name_of(id);
        let found = session.run(|tx| bank.customers.get(tx, &name, Customer::ID))?;
        found.iter().for_each(|&id| looked_up.customer(&Customer { name, id }));
    }
    by_transactions(&mut session, &bank.savings, customers, |row| looked_up.savings(row))?;
    by_transactions(&mut session, &bank.checking, customers, |row| looked_up.checking(row))?;

    let mut iterated = Books::default();
    bank.accounts.for_each_quiescent(|row| iterated.account(row))?;
    bank.customers.for_each_quiescent(|row| iterated.customer(row))?;
    bank.savings.for_each_quiescent(|row| iterated.savings(row))?;
    bank.checking.for_each_quiescent(|row| iterated.checking(row))?;

    let mut consistency = Consistency::default();
    looked_up.settle("read by transactions", customers, money, &mut consistency);
    iterated.settle("read by raw iteration", customers, money, &mut consistency);
    consistency.expect(looked_up == iterated, || {
        format!("transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}")
    });
    Ok(consistency)
}

/// The bank in a few numbers that do not depend on the order its rows are met in.
#[derive(Debug, Default, PartialEq, Eq)]
struct Books {
    accounts: u64,
    customers: u64,
    savings: u64,
    checking: u64,
    /// Accounts and customers whose number and name do not go together.
    misnamed: u64,
    /// Savings accounts below zero.
    overdrawn: u64,
    money: i128,
    fingerprint: u64,
}

impl Books {
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
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(row.id ^ table << 63, &row.cents.to_le_bytes()));
    }

    /// Examines what can be examined of one way of reading.
    fn settle(&self, way: &str, customers: u64, money: i128, consistency: &mut Consistency) {
        let rows = [self.accounts, self.customers, self.savings, self.checking];
        consistency.expect(rows == [customers; 4], || {
            format!(
                "{way}: accounts, customers, savings, checking have {rows:?} rows where {customers} each were loaded"
            )
        });
        consistency.expect(self.misnamed == 0, || {
            format!("{way}: {} customers have a number and a name that do not go together", self.misnamed)
        });
        consistency
            .expect(self.overdrawn == 0, || format!("{way}: {} savings accounts are below zero", self.overdrawn));
        consistency.expect(self.money == money, || {
            format!("{way}: the bank holds {} cents where {money} were paid in and not out", self.money)
        });
    }
}
