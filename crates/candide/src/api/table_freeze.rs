//! Columns that do not change for a while.
//!
//! Two words of a table say what is frozen: the groups that writes refuse, and the units whose
//! reads need no observation. A change of one waits for all transactions that may know the old
//! state before it changes the other: so while a transaction may read a unit unobserved, none can
//! have staged a change of it.

#![forbid(unsafe_code)]

use super::table::Table;
use crate::catalog::TableOptions;
use crate::engine::{Protocol, TableCore};
use crate::error::Error;
use crate::locks::{FROZEN, note_frozen};
use crate::schema::{Projection, Record};
use crate::shared::Inner;
use crate::sync::{Ordering, lock};

impl<R: Record, P: Protocol> Table<R, P> {
    /// Freezes the column groups of these columns: until [`Table::thaw`] they cannot be changed.
    /// Rows can still be inserted, and other groups updated. An [`update`](Table::update) of a
    /// frozen group is refused ([`Abort::Frozen`](crate::Abort::Frozen)), and so is every
    /// [`put`](Table::put), which would replace a whole row.
    ///
    /// Under [`Occ`](crate::Occ), a read of a frozen group is not observed, since nothing can make
    /// it untrue. So it causes no conflict, does not wait for writers of the row, and leaves a
    /// transaction under [`Policy::Pipelined`](crate::policy::Policy::Pipelined) tame, which must
    /// read nothing else before its commit. For this the group must be a unit of conflict of its
    /// own ([`TableOptions::timestamp_splitting`]); without splitting, all groups of the table must
    /// be frozen. If [opacity](crate::Builder::opaque) is turned off, reads are observed as before.
    ///
    /// The call waits until every running transaction has ended, and then visits each row once. A
    /// row that is locked at that moment is read as before, until the next call. What is frozen is
    /// not stored in files.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record, TableOptions};
    /// #[derive(Record, Clone, Copy)]
    /// struct Account {
    ///     #[key] id: u64,
    ///     #[group(fixed)] rate: u64,
    ///     #[group(money)] cents: i64,
    /// }
    ///
    /// let db = Database::new();
    /// let options = TableOptions::default().permanent().timestamp_splitting(true);
    /// let accounts = db.table_with::<Account>("accounts", options)?;
    /// db.run(|tx| accounts.insert(tx, Account { id: 1, rate: 3, cents: 100 }))?;
    /// accounts.freeze(Account::RATE)?;
    /// db.run(|tx| {
    ///     let rate = accounts.read(tx, 1, Account::RATE)?;
    ///     accounts.update(tx, 1, Account::CENTS.add(rate as i64))
    /// })?;
    /// let change = |tx: &candide::Tx<'_>| accounts.update(tx, 1, Account::RATE.set(4));
    /// assert_eq!(db.run(change), Err(Abort::Frozen));
    /// accounts.thaw(Account::RATE)?;
    /// assert_eq!(db.run(change), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableOption`] if the rows of the table are not
    /// [permanent](TableOptions::permanent); [`Error::Busy`] if a transaction that began before the
    /// call is still running after ten seconds; [`Error::Transaction`] with
    /// [`Abort::Nested`](crate::Abort::Nested) in a transaction. Nothing is frozen then, but
    /// updates may have been refused during the call.
    pub fn freeze<Pr: Projection<R>>(&self, columns: Pr) -> Result<(), Error> {
        freeze(self.inner(), self.core(), columns.groups())
    }

    /// Ends the freeze of the column groups of these columns ([`Table::freeze`]). Waits until every
    /// running transaction has ended. Does nothing to groups that are not frozen.
    ///
    /// # Errors
    /// [`Error::Busy`] if a transaction that began before the call is still running after ten
    /// seconds, [`Error::Transaction`] with [`Abort::Nested`](crate::Abort::Nested) in a
    /// transaction. The columns stay frozen then; reads of them are observed.
    pub fn thaw<Pr: Projection<R>>(&self, columns: Pr) -> Result<(), Error> {
        thaw(self.inner(), self.core(), columns.groups())
    }
}

fn freeze<P: Protocol>(inner: &Inner<P>, table: &TableCore, groups: u64) -> Result<(), Error> {
    let restrictions = &table.restrictions;
    inner.engine.epochs.refuse_inside()?;
    let _one_at_a_time = lock(&inner.index_changes);
    table.check_in_use()?;
    if !restrictions.is_permanent() {
        return Err(TableOptions::not_permanent(&table.name));
    }
    let before = restrictions.frozen();
    table.set_frozen(before | groups);
    if let Err(error) = inner.engine.epochs.wait_for_others() {
        table.set_frozen(before);
        return Err(error);
    }
    show_frozen(inner, table);
    Ok(())
}

fn thaw<P: Protocol>(inner: &Inner<P>, table: &TableCore, groups: u64) -> Result<(), Error> {
    inner.engine.epochs.refuse_inside()?;
    let _one_at_a_time = lock(&inner.index_changes);
    table.check_in_use()?;
    let thawed = table.restrictions.frozen() & !groups;
    if let Some(locks) = inner.catalog.locks() {
        let units = table.layout.frozen_units(thawed, table.groups.len());
        locks.policies.freeze(table.number, units);
    }
    inner.engine.epochs.wait_for_others()?;
    table.set_frozen(thawed);
    // A session that sleeps may wait for a change of what it has read unobserved.
    inner.engine.watchers.wake_all();
    Ok(())
}

/// Lets transactions read frozen units without an observation. None that runs can have staged a
/// change of one.
fn show_frozen<P: Protocol>(inner: &Inner<P>, table: &TableCore) {
    let Some(locks) = inner.catalog.locks() else { return };
    let units = table.layout.frozen_units(table.restrictions.frozen(), table.groups.len());
    locks.policies.freeze(table.number, units);
    if units == 0 {
        return;
    }
    // Relaxed: the flag is a hint.
    table.at_links.new_record_flags.fetch_or(FROZEN, Ordering::Relaxed);
    let epochs = &inner.engine.epochs;
    let slot = epochs.register();
    let pinned = epochs.pinned(&slot);
    table.index.for_each(&mut |record| {
        table.layout.cells(record).filter(|at| locks.policies.is_frozen(*at)).for_each(note_frozen);
    });
    drop(pinned);
    epochs.unregister(&slot);
}

/// Gives a table from the files, which the program has no handle on yet, these restrictions.
pub(super) fn restrict<P: Protocol>(inner: &Inner<P>, table: &TableCore, options: TableOptions) {
    if options.is_permanent() {
        table.make_permanent();
        if let Some(locks) = inner.catalog.locks() {
            locks.policies.set_permanent(table.number, true);
        }
    }
    if options.is_frozen() {
        table.set_frozen(u64::MAX);
        show_frozen(inner, table);
    }
}
