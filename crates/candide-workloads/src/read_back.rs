//! Reading tables after the workers have stopped, in two ways that must agree. Fresh transactions
//! see what any later program would see. Raw iteration also sees rows that no lookup finds.

use std::cell::RefCell;
use std::ops::Bound;

use candide::{Abort, Error, Ordered, Protocol, Record, Session, Table, Whole};

use crate::load::run_unmeasured;

/// The number of keys, or of scanned rows, per reading transaction.
const BATCH: usize = 64;

/// The ways in which a check reads a table. The trait does not depend on the protocol, so that
/// checks are compiled once.
pub(crate) trait Rows<R: Record> {
    /// Looks up `keys` by transactions and passes each row that exists to `visit`, in the order of
    /// `keys`.
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort>;

    /// Passes all rows to `visit` by raw iteration, including rows that no lookup finds. Returns
    /// the number of rows.
    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error>;
}

/// The ways in which a check reads an ordered table.
pub(crate) trait OrderedRows<R: Record<Index = Ordered>>: Rows<R> {
    /// Scans the range between `from` and `to` by transactions and passes the rows to `visit`, in
    /// the order of their keys.
    fn by_scans(
        &self,
        from: Bound<R::Key>,
        to: Bound<R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort>;
}

/// Returns the means to read the rows of `table`, by transactions of `session`.
pub(crate) fn rows<'a, R: Record, P: Protocol>(
    table: &'a Table<R, P>,
    session: &'a RefCell<Session<P>>,
) -> TableRows<'a, R, P> {
    TableRows { table, session }
}

/// A table, and the session in which its rows are read.
pub(crate) struct TableRows<'a, R: Record, P: Protocol> {
    table: &'a Table<R, P>,
    session: &'a RefCell<Session<P>>,
}

impl<R: Record, P: Protocol> Rows<R> for TableRows<'_, R, P> {
    #[inline(never)]
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        let mut session = self.session.borrow_mut();
        let (mut batch, mut found) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        loop {
            batch.clear();
            batch.extend(keys.take(BATCH));
            if batch.is_empty() {
                return Ok(());
            }
            run_unmeasured(&mut session, &mut |tx| {
                found.clear();
                for key in &batch {
                    if let Some(row) = self.table.get(tx, key, Whole)? {
                        found.push(row);
                    }
                }
                Ok(())
            })?;
            found.iter().for_each(&mut *visit);
        }
    }

    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error> {
        self.table.for_each_quiescent(visit)
    }
}

impl<R: Record<Index = Ordered>, P: Protocol> OrderedRows<R> for TableRows<'_, R, P> {
    #[inline(never)]
    fn by_scans(
        &self,
        from: Bound<R::Key>,
        to: Bound<R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        let mut session = self.session.borrow_mut();
        let (mut from, mut found) = (from, Vec::with_capacity(BATCH));
        loop {
            run_unmeasured(&mut session, &mut |tx| {
                found.clear();
                for row in self.table.scan(tx, (from, to), Whole).take(BATCH) {
                    found.push(row?.1);
                }
                Ok(())
            })?;
            let Some(last) = found.last() else { return Ok(()) };
            from = Bound::Excluded(R::key(last));
            found.iter().for_each(&mut *visit);
        }
    }
}

/// Returns a fingerprint of one row. The wrapping sum of a table's fingerprints does not depend on
/// the order of the rows.
pub(crate) fn fingerprint(key: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(key), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

/// Spreads every bit of a word over the whole word.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
