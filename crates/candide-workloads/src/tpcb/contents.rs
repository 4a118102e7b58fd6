//! The contents of the tables, as found by one of the two ways of reading.

use std::collections::HashMap;

use super::knobs::TpcB;
use super::tables::{Account, Branch, History, TELLERS, Teller};
use super::worker::Tally;
use crate::Consistency;
use crate::read_back::fingerprint;

/// A balance, and the sum of its changes in the history.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    balance: i64,
    moved: i64,
}

/// The contents of the bank, in a form that does not depend on the order of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    branches: HashMap<u64, Entry>,
    tellers: HashMap<u64, Entry>,
    accounts: HashMap<u64, Entry>,
    history: u64,
    moved: i128,
    /// The number of references to a wrong branch or to a row that does not exist.
    astray: u64,
    /// The sum of the balances of each branch's tellers.
    held: HashMap<u64, i64>,
    fingerprint: u64,
}

impl Contents {
    pub(super) fn branch(&mut self, row: &Branch) {
        self.print(0, row.id, &row.balance.to_le_bytes());
        self.branches.insert(row.id, Entry { balance: row.balance, moved: 0 });
    }

    pub(super) fn teller(&mut self, row: &Teller) {
        self.print(1, row.id, &row.balance.to_le_bytes());
        self.astray += u64::from(row.branch != row.id / TELLERS);
        *self.held.entry(row.id / TELLERS).or_default() += row.balance;
        self.tellers.insert(row.id, Entry { balance: row.balance, moved: 0 });
    }

    pub(super) fn account(&mut self, row: &Account, knobs: &TpcB) {
        self.print(2, row.id, &row.balance.to_le_bytes());
        self.astray += u64::from(row.branch != row.id / knobs.accounts);
        self.accounts.insert(row.id, Entry { balance: row.balance, moved: 0 });
    }

    /// Adds a row of the history. All rows of the other tables have to be added before.
    pub(super) fn history(&mut self, row: &History) {
        let &History { worker, number, account, teller, branch, amount, .. } = row;
        let columns = [number, account, teller, branch, amount as u64].map(u64::to_le_bytes);
        self.print(3, worker, columns.as_flattened());
        self.history += 1;
        self.moved += i128::from(amount);
        self.astray += u64::from(branch != teller / TELLERS);
        for (entries, id) in [
            (&mut self.branches, branch),
            (&mut self.tellers, teller),
            (&mut self.accounts, account),
        ] {
            match entries.get_mut(&id) {
                Some(entry) => entry.moved += amount,
                None => self.astray += 1,
            }
        }
    }

    fn print(&mut self, table: u64, id: u64, columns: &[u8]) {
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(table << 62 ^ id, columns));
    }

    /// Returns the number of rows of the four tables, and the sum of their fingerprints.
    pub(super) fn counts(&self) -> [u64; 5] {
        let rows =
            [&self.branches, &self.tellers, &self.accounts].map(|entries| entries.len() as u64);
        [rows[0], rows[1], rows[2], self.history, self.fingerprint]
    }

    /// Examines the contents that one way of reading found.
    pub(super) fn settle(
        &self,
        way: &str,
        knobs: &TpcB,
        tally: &Tally,
        consistency: &mut Consistency,
    ) {
        let [branches, tellers, accounts, history, _] = self.counts();
        let rows = [branches, tellers, accounts, history];
        let expected =
            [knobs.branches, knobs.branches * TELLERS, knobs.accounts_in_all(), tally.transactions];
        consistency.expect(rows == expected, || {
            format!(
                "{way}: branches, tellers, accounts, history have {rows:?} rows where {expected:?} were loaded or committed"
            )
        });
        consistency.expect(self.astray == 0, || {
            format!("{way}: {} rows name a wrong branch or a missing row", self.astray)
        });
        for (what, entries) in
            [("branches", &self.branches), ("tellers", &self.tellers), ("accounts", &self.accounts)]
        {
            let wrong = entries.iter().filter(|(_, entry)| entry.balance != entry.moved);
            let (count, first) = (wrong.clone().count(), wrong.min_by_key(|(id, _)| **id));
            consistency.expect(count == 0, || {
                format!(
                    "{way}: the balances of {count} {what} differ from the history; the first is {first:?}"
                )
            });
        }
        let held = |id: &u64| self.held.get(id).copied().unwrap_or(0);
        let wrong = self.branches.iter().filter(|(id, branch)| branch.balance != held(id));
        let (count, first) = (wrong.clone().count(), wrong.min_by_key(|(id, _)| **id));
        consistency.expect(count == 0, || {
            format!("{way}: the balances of {count} branches differ from those of their tellers; the first is {first:?}")
        });
        let sum = |entries: &HashMap<u64, Entry>| {
            entries.values().map(|entry| i128::from(entry.balance)).sum::<i128>()
        };
        let sums = [sum(&self.branches), sum(&self.tellers), sum(&self.accounts), self.moved];
        consistency.expect(sums == [tally.amount; 4], || {
            format!(
                "{way}: branches, tellers, accounts, history add up to {sums:?} where {} were committed",
                tally.amount
            )
        });
    }
}
