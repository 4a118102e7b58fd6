//! Reading tables after the workers have stopped, in two ways that must agree. Fresh transactions
//! see what any later program would see. Raw iteration also sees rows that no lookup finds.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};

use candide::experiments::TableWords;
use candide::schema::RowReader;
use candide::{Abort, Error, Key, Ordered, Protocol, Record, Session, Table, Whole};

use crate::load::run_unmeasured;
use crate::{Consistency, Failure};

/// The number of keys, or of scanned rows, per reading transaction.
const BATCH: usize = 64;

/// A way of reading tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Transactions look rows up by key and scan ranges.
    Transactions,
    /// Raw iteration returns all rows.
    Iteration,
}

/// Reads the contents of tables in both ways by `read`, examines the contents of each way by
/// `settle`, and checks that the two are equal. `counts` formats the contents for a message.
pub(crate) fn audit<C>(
    read: impl Fn(Way) -> Result<C, Failure>,
    settle: impl Fn(&C, &str, &mut Consistency),
    is_same: impl Fn(&C, &C) -> bool,
    counts: impl Fn(&C) -> String,
) -> Result<Consistency, Failure> {
    let [looked_up, iterated] = [read(Way::Transactions)?, read(Way::Iteration)?];
    let mut consistency = Consistency::default();
    settle(&looked_up, "read by transactions", &mut consistency);
    settle(&iterated, "read by raw iteration", &mut consistency);
    consistency.expect(is_same(&looked_up, &iterated), || {
        let [looked_up, iterated] = [counts(&looked_up), counts(&iterated)];
        format!(
            "transactions and raw iteration read different contents: {looked_up} and {iterated}"
        )
    });
    Ok(consistency)
}

/// The ways in which a check reads a table. The type does not depend on the protocol, so that
/// checks are compiled once.
pub(crate) struct Rows<'a, R> {
    words: Box<dyn RowWords + 'a>,
    row: PhantomData<fn() -> R>,
}

/// Returns the means to read the rows of `table`, by transactions of `session`.
pub(crate) fn rows<'a, R: Record, P: Protocol>(
    table: &'a Table<R, P>,
    session: &'a RefCell<Session<P>>,
) -> Rows<'a, R> {
    Rows { words: in_words(table.as_words(), session), row: PhantomData }
}

/// Does the work of [`rows`] that does not depend on the row type.
#[inline(never)]
fn in_words<'a, P: Protocol>(
    table: TableWords<'a, P>,
    session: &'a RefCell<Session<P>>,
) -> Box<dyn RowWords + 'a> {
    Box::new(Words { table, session })
}

impl<R: Record> Rows<'_, R> {
    /// Passes rows to `visit`: those with these `keys`, by transactions; or all, by raw iteration.
    pub(crate) fn read(
        &self,
        way: Way,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Failure> {
        match way {
            Way::Transactions => Ok(self.by_keys(keys, visit)?),
            Way::Iteration => Ok(self.by_iteration(visit).map(drop)?),
        }
    }

    /// Looks up `keys` by transactions and passes each row that exists to `visit`, in the order of
    /// `keys`.
    pub(crate) fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        let next = &mut |words: &mut Vec<u64>| {
            let key = keys.next();
            key.inspect(|key| words.extend_from_slice(key.words().as_ref())).is_some()
        };
        self.words.by_keys(next, &mut |key, row| visit(&load(key, row)))
    }

    /// Passes all rows to `visit` by raw iteration, including rows that no lookup finds. Returns
    /// the number of rows.
    pub(crate) fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error> {
        self.words.by_iteration(&mut |key, row| visit(&load(key, row)))
    }
}

impl<R: Record<Index = Ordered>> Rows<'_, R> {
    /// Passes all rows to `visit`, by scans or by raw iteration.
    pub(crate) fn read_all(&self, way: Way, visit: &mut dyn FnMut(&R)) -> Result<(), Failure> {
        match way {
            Way::Transactions => Ok(self.by_scans(Bound::Unbounded, Bound::Unbounded, visit)?),
            Way::Iteration => Ok(self.by_iteration(visit).map(drop)?),
        }
    }

    /// Scans the range between `from` and `to` by transactions and passes the rows to `visit`, in
    /// the order of their keys.
    pub(crate) fn by_scans(
        &self,
        from: Bound<R::Key>,
        to: Bound<R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        let [from, to] = [from, to].map(|bound| bound.map(|key| key.words().as_ref().to_vec()));
        self.words.by_scans(from, to, &mut |key, row| visit(&load(key, row)))
    }
}

/// Returns the row with these words.
pub(crate) fn load<R: Record>(key: &[u64], row: &[u64]) -> R {
    R::load(&R::Key::from_words(key), &RowReader::new(row))
}

/// A function that is passed rows, each as the words of its key and its other words.
type Visit<'a> = dyn FnMut(&[u64], &[u64]) + 'a;

/// The ways of [`Rows`] to read a table, with rows as words. The trait does not depend on the row
/// type, so that it is implemented once for each protocol.
trait RowWords {
    /// Reads the rows whose keys `next` writes. `next` is passed an empty vector, and returns
    /// `false` if there are no more keys.
    fn by_keys(
        &self,
        next: &mut dyn FnMut(&mut Vec<u64>) -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Abort>;

    fn by_iteration(&self, visit: &mut Visit<'_>) -> Result<usize, Error>;

    fn by_scans(
        &self,
        from: Bound<Vec<u64>>,
        to: Bound<Vec<u64>>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Abort>;
}

/// A table, and the session in which its rows are read.
struct Words<'a, P: Protocol> {
    table: TableWords<'a, P>,
    session: &'a RefCell<Session<P>>,
}

/// A key that a transaction has looked up, and its row.
#[derive(Clone, Default)]
struct Looked {
    key: Vec<u64>,
    row: Vec<u64>,
    is_there: bool,
}

impl<P: Protocol> RowWords for Words<'_, P> {
    fn by_keys(
        &self,
        next: &mut dyn FnMut(&mut Vec<u64>) -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Abort> {
        let mut session = self.session.borrow_mut();
        let mut batch = vec![Looked::default(); BATCH];
        loop {
            let mut count = 0;
            for Looked { key, .. } in &mut batch {
                key.clear();
                if !next(key) {
                    break;
                }
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            run_unmeasured(&mut session, &mut |tx| {
                for Looked { key, row, is_there } in &mut batch[..count] {
                    *is_there = self.table.get(tx, key, row)?;
                }
                Ok(())
            })?;
            let there = batch[..count].iter().filter(|looked| looked.is_there);
            there.for_each(|looked| visit(&looked.key, &looked.row));
        }
    }

    fn by_iteration(&self, visit: &mut Visit<'_>) -> Result<usize, Error> {
        self.table.for_each_quiescent(visit)
    }

    fn by_scans(
        &self,
        mut from: Bound<Vec<u64>>,
        to: Bound<Vec<u64>>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Abort> {
        let mut session = self.session.borrow_mut();
        let mut found = Vec::with_capacity(BATCH);
        loop {
            run_unmeasured(&mut session, &mut |tx| {
                found.clear();
                let range = [&from, &to].map(|bound| bound.as_ref().map(Vec::as_slice));
                self.table.scan(tx, range.into(), &mut |key, row| {
                    found.push((key.to_vec(), row.to_vec()));
                    match found.len() {
                        BATCH => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                })
            })?;
            let Some((last, _)) = found.last() else { return Ok(()) };
            from = Bound::Excluded(last.clone());
            found.iter().for_each(|(key, row)| visit(key, row));
        }
    }
}

/// The ways in which a check reads a table whose rows have columns of any length, as [`Rows`].
/// Words have not all bytes of such rows, so its code is compiled for each protocol.
pub(crate) type LongRows<'a, R> = Box<dyn ReadLong<R> + 'a>;

/// Returns the means to read the rows of `table`, by transactions of `session`.
pub(crate) fn long_rows<'a, R: Record, P: Protocol>(
    table: &'a Table<R, P>,
    session: &'a RefCell<Session<P>>,
) -> LongRows<'a, R> {
    Box::new((table, session))
}

/// The ways of [`LongRows`] to read a table.
pub(crate) trait ReadLong<R: Record> {
    /// Does what [`Rows::by_keys`] does.
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort>;

    /// Does what [`Rows::by_iteration`] does.
    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error>;
}

impl<R: Record> ReadLong<R> for Rows<'_, R> {
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        Rows::by_keys(self, keys, visit)
    }

    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error> {
        Rows::by_iteration(self, visit)
    }
}

impl<R: Record, P: Protocol> ReadLong<R> for (&Table<R, P>, &RefCell<Session<P>>) {
    fn by_keys(
        &self,
        keys: &mut dyn Iterator<Item = R::Key>,
        visit: &mut dyn FnMut(&R),
    ) -> Result<(), Abort> {
        let (table, mut session) = (self.0, self.1.borrow_mut());
        for key in keys {
            let mut row = None;
            run_unmeasured(&mut session, &mut |tx| {
                row = table.get(tx, key, Whole)?;
                Ok(())
            })?;
            row.iter().for_each(&mut *visit);
        }
        Ok(())
    }

    fn by_iteration(&self, visit: &mut dyn FnMut(&R)) -> Result<usize, Error> {
        self.0.for_each_quiescent(visit)
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
