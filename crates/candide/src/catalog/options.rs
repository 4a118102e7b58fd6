//! The options of tables, and the comparison of options with an existing table.

#![forbid(unsafe_code)]

use crate::engine::{Common, TableCore};
use crate::error::Error;
use crate::factor::Factor;
use crate::index::TableIndex;
use crate::policy::Policy;
use crate::schema::RowType;

/// Options for creating a table.
///
/// A table that exists is found under its name with any options that do not contradict it
/// ([`Database::table_with`](crate::Database::table_with)).
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    capacity: Option<usize>,
    components_share_words: Option<bool>,
    pub(super) ordered: bool,
    pub(super) policy: Option<Policy>,
    pub(super) splitting: Option<bool>,
    pub(super) volatile: bool,
    pub(super) has_values: bool,
    /// The words of a row that may name bytes outside of records, for tests.
    #[cfg(test)]
    pub(super) long_words: &'static [u16],
    pub(super) permanent: bool,
    pub(super) frozen: bool,
}

impl TableOptions {
    /// Chooses the [policy](Policy) of the table, under [`Occ`](crate::Occ). By default it is the
    /// policy of the database. A policy [by name](crate::policy::Policies::with) takes precedence.
    #[must_use]
    pub fn policy(self, policy: Policy) -> TableOptions {
        TableOptions { policy: Some(policy), ..self }
    }

    /// Sets whether each column group of the table is a separate unit of conflict. The default is
    /// [`Builder::timestamp_splitting`](crate::Builder::timestamp_splitting).
    #[must_use]
    pub fn timestamp_splitting(self, on: bool) -> TableOptions {
        TableOptions { splitting: Some(on), ..self }
    }

    /// Makes the table volatile, in a database that is [open](crate::Database::open): its rows are
    /// in memory only, and the table is empty when the database is opened again. Sessions and
    /// caches can be kept in such tables at no cost for the log. A transaction may use both kinds
    /// of tables; what it writes to a durable table should not depend on rows that a crash loses.
    /// Each call that opens the table must give this option, so that no part of a program takes the
    /// table for a durable one.
    #[must_use]
    pub fn volatile(self) -> TableOptions {
        TableOptions { volatile: true, ..self }
    }

    /// Makes the rows of the table permanent: none is ever deleted. A delete is refused
    /// ([`Abort::Permanent`](crate::Abort::Permanent)), also one of a row that the same transaction
    /// has inserted.
    ///
    /// So under [`Policy::Pipelined`] a transaction that only updates rows of such tables, and
    /// reads nothing before its commit, meets no conflict. Only columns of permanent rows can be
    /// [frozen](crate::Table::freeze).
    ///
    /// The option is not stored in files: each process gives it when it first opens the table.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, TableOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Account { #[key] id: u64, cents: i64 }
    /// let db = Database::new();
    /// let options = TableOptions::default().permanent();
    /// let accounts = db.table_with::<Account>("accounts", options)?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, cents: 5 }))?;
    /// assert_eq!(db.run(|tx| accounts.delete(tx, 1)), Err(Abort::Permanent));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn permanent(self) -> TableOptions {
        TableOptions { permanent: true, ..self }
    }

    /// Makes the rows of the table [permanent](TableOptions::permanent), and
    /// [freezes](crate::Table::freeze) all their columns from the beginning: rows can only be
    /// inserted.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, TableOptions};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Country { #[key] id: u64, dialing_code: u64 }
    /// let db = Database::new();
    /// let options = TableOptions::default().frozen();
    /// let countries = db.table_with::<Country>("countries", options)?;
    /// db.run(|tx| countries.insert(tx, Country { id: 1, dialing_code: 49 }))?;
    /// let change = |tx: &candide::Tx<'_>| countries.update(tx, 1, Country::DIALING_CODE.set(50));
    /// assert_eq!(db.run(change), Err(Abort::Frozen));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn frozen(self) -> TableOptions {
        TableOptions { permanent: true, frozen: true, ..self }
    }

    /// Builds the index for about `rows` rows, so that the index need not grow while these rows are
    /// inserted.
    #[must_use]
    pub fn capacity(self, rows: usize) -> TableOptions {
        TableOptions { capacity: Some(rows), ..self }
    }

    /// Keeps the keys in order even if the row type does not require order. The option is a basis
    /// factor for experiments.
    #[must_use]
    pub fn ordered(self) -> TableOptions {
        TableOptions { ordered: true, ..self }
    }

    /// Returns the words of a row that may name values outside of records.
    pub(super) fn named(&self, row: &RowType) -> &'static [u16] {
        if self.has_values {
            return &[0];
        }
        #[cfg(test)]
        if !self.long_words.is_empty() {
            return self.long_words;
        }
        row.long
    }

    /// Makes words of a row name bytes outside of records. Their numbers are those among all words
    /// outside of the key.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn long_words(self, words: &'static [u16]) -> TableOptions {
        TableOptions { long_words: words, volatile: true, ..self }
    }

    /// Makes each row one word, which names a value (`record/value.rs`). Such a table is volatile.
    #[must_use]
    pub(crate) fn values(self) -> TableOptions {
        TableOptions { has_values: true, volatile: true, ..self }
    }

    /// Sets whether each component of a composite key begins a new word, and so a new layer of an
    /// ordered index (default). If `on`, leaves that hold two or more keys with the same first
    /// components hold no other keys. A scan of these keys then does not conflict with inserts of
    /// keys with other first components. If not `on`, components are packed into fewer words; this
    /// is a choice for [experiments](crate::experiments). In a secondary index, each component of
    /// the index key always begins a new word.
    #[cfg(any(test, feature = "experiments"))]
    #[must_use]
    pub fn contention_aware_keys(self, on: bool) -> TableOptions {
        TableOptions { components_share_words: Some(!on), ..self }
    }
}

impl TableOptions {
    pub(crate) fn is_permanent(&self) -> bool {
        self.permanent
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Returns the error of a call that needs permanent rows.
    pub(crate) fn not_permanent(table: &str) -> Error {
        let table = table.to_owned();
        Error::TableOption { table, wanted: deletes(true), existing: deletes(false) }
    }
}

/// The options with which a table was made, as far as the table itself does not show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Made {
    volatile: bool,
    /// The capacity; and, in `shares_words`, whether components of keys share words. `None` for a
    /// table from the files, which do not contain these options.
    pub(super) capacity: Option<usize>,
    pub(super) shares_words: Option<bool>,
}

impl Made {
    /// The options assumed for a table from the files.
    pub(super) const RECOVERED: Made = Made { volatile: false, capacity: None, shares_words: None };
}

impl TableOptions {
    /// Returns how a table with these options is made.
    pub(super) fn made(&self, common: &Common) -> Made {
        Made {
            volatile: self.volatile,
            capacity: Some(self.capacity.unwrap_or(0)),
            shares_words: Some(self.shares_words(common)),
        }
    }

    /// Returns whether components of keys share words in a table that is made with these options.
    pub(super) fn shares_words(&self, common: &Common) -> bool {
        self.components_share_words.unwrap_or(false)
            || common.options.factors.has(Factor::ContendedKeys)
    }

    /// Checks that an existing table has these options. Options that were not given are not
    /// compared; that a table is durable need not be given. `wanted_policy` is the policy that a
    /// table with these options has, if one was given; the table has `present_policy`.
    /// `is_recovered` is whether the program has not named the table's row type yet.
    ///
    /// # Errors
    /// [`Error::TableOption`].
    pub(super) fn check(
        &self,
        common: &Common,
        (table, made, is_recovered): (&TableCore, Made, bool),
        (wanted_policy, present_policy): (Option<Policy>, Policy),
    ) -> Result<(), Error> {
        let compare = |wanted: String, existing: String| match wanted == existing {
            true => Ok(()),
            false => Err(Error::TableOption { table: table.name.to_string(), wanted, existing }),
        };
        compare(rows(self.volatile), rows(made.volatile))?;
        if let (Some(wanted), Some(existing)) = (self.capacity, made.capacity) {
            compare(room(wanted), room(existing))?;
        }
        if let (Some(_), Some(existing)) = (self.components_share_words, made.shares_words) {
            compare(components(self.shares_words(common)), components(existing))?;
        }
        if self.ordered {
            compare(keys(true), keys(matches!(table.index, TableIndex::Ordered(_))))?;
        }
        if let Some(on) = self.splitting {
            let is_split = on && common.properties.cell_words > 0;
            compare(splitting(is_split), splitting(table.layout.is_split()))?;
        }
        if let Some(wanted) = wanted_policy {
            compare(policy(wanted), policy(present_policy))?;
        }
        // A table from the files gets these options when the program first names its row type.
        let restrictions = &table.restrictions;
        if self.permanent && !is_recovered {
            compare(deletes(true), deletes(restrictions.is_permanent()))?;
        }
        if self.frozen && !is_recovered {
            let frozen = restrictions.frozen();
            let is_whole = (0..table.groups.len()).all(|group| frozen >> group & 1 != 0);
            compare(changes(true), changes(frozen != 0 && is_whole))?;
        }
        Ok(())
    }
}

fn rows(volatile: bool) -> String {
    if volatile { "volatile rows" } else { "rows that are not volatile" }.to_owned()
}

fn room(rows: usize) -> String {
    format!("a capacity of {rows} rows")
}

fn components(share: bool) -> String {
    let words = if share { "words that they share" } else { "words of their own" };
    format!("key components in {words}")
}

fn keys(ordered: bool) -> String {
    if ordered { "keys in order" } else { "keys without order" }.to_owned()
}

fn splitting(on: bool) -> String {
    if on { "timestamp splitting" } else { "no timestamp splitting" }.to_owned()
}

fn deletes(permanent: bool) -> String {
    if permanent { "permanent rows" } else { "rows that are not permanent" }.to_owned()
}

fn changes(frozen: bool) -> String {
    if frozen { "frozen columns" } else { "columns that are not frozen" }.to_owned()
}

fn policy(policy: Policy) -> String {
    format!("the policy {policy}")
}
