//! Reading tables after the workers have stopped, in the two ways that must agree: through fresh
//! transactions, which see what any later program would, and by raw iteration, which also sees what
//! no lookup finds.

use std::cell::RefCell;
use std::ops::Bound;

use candide::{Abort, Error, Ordered, Protocol, Record, Session, Table, Whole};

use crate::load::run_unmeasured;

/// Keys, or rows of a scan, per reading transaction.
const BATCH: usize = 64;

/// A table as a check reads it, the same for every protocol, so that checks are compiled once.
pub(crate) trait Rows<R: Record> {
    /// Shows the rows of those keys that have one, looked up by transactions, in the order of
    /// `keys`.
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort>;

    /// Shows all rows by raw iteration, which also meets what no lookup finds, and returns their
    /// number.
    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error>;
}

/// An ordered table as a check reads it.
pub(crate) trait OrderedRows<R: Record<Index = Ordered>>: Rows<R> {
    /// Shows the rows between two bounds, scanned by transactions, in the order of their keys.
    fn by_scans(
        &self,
        from: Bound<R::Key>,
        to: Bound<R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort>;
}

/// Returns the rows of a table, read by transactions of that session.
pub(crate) fn rows<'a, R: Record, P: Protocol>(
    table: &'a Table<R, P>,
    session: &'a RefCell<Session<P>>,
) -> TableRows<'a, R, P> {
    TableRows { table, session }
}

/// The rows of a table, and a session to read them in.
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

/// A fingerprint of one row. Their wrapping sum over a table does not depend on the order the rows
/// are met in.
pub(crate) fn fingerprint(key: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(key), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

/// Spreads every bit of a word over the whole of it.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
