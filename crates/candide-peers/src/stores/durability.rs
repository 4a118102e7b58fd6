//! Stores whose commits survive a loss of power.

use std::path::Path;
use std::time::Instant;

use super::{Failure, Session, Size, Store, Writing};
use crate::Role;

/// A store to measure that keeps its rows in files, where commits survive a loss of power.
pub trait Durable: 'static {
    /// The store's name, as in `--stores`.
    const NAME: &'static str;
    /// The crate whose version is reported; `None` for the standard library.
    const CRATE: Option<&'static str>;
    /// A description of the way in which the store is used here, and of what makes its commits
    /// durable.
    const USE: &'static str;
    /// The store's role among the others.
    const ROLE: Role;

    /// The store.
    type Store: Store<i64>;
    /// One thread's transactions with the store.
    type Committer<'s>: Committer;

    /// Opens the store in a directory. In an empty directory, creates a store without rows.
    fn open(directory: &Path, size: Size) -> Result<Self::Store, Failure>;

    /// Returns the calling thread's committer.
    fn committer(store: &Self::Store) -> Result<Self::Committer<'_>, Failure>;
}

/// One thread's transactions with a durable store.
pub trait Committer {
    /// Runs a transaction until it has committed, and repeats it after conflicts. Returns the
    /// number of repetitions.
    ///
    /// Once a transaction is durable, calls `acknowledged` with the time at which the transaction
    /// began. The calls may come during later calls of this function, or of
    /// [`finish`](Committer::finish).
    fn commit<W: Writing<i64, Output = ()>>(
        &mut self,
        work: &W,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<u64, Failure>;

    /// Waits until all transactions are acknowledged.
    fn finish(&mut self, acknowledged: &mut impl FnMut(Instant)) -> Result<(), Failure>;
}

/// A committer that begins a transaction when the transaction before is durable.
pub struct Waiting<S>(pub(super) S);

impl<S: Session<i64>> Committer for Waiting<S> {
    fn commit<W: Writing<i64, Output = ()>>(
        &mut self,
        work: &W,
        acknowledged: &mut impl FnMut(Instant),
    ) -> Result<u64, Failure> {
        let begun = Instant::now();
        let done = self.0.write(work)?;
        acknowledged(begun);
        Ok(done.retries)
    }

    fn finish(&mut self, _: &mut impl FnMut(Instant)) -> Result<(), Failure> {
        Ok(())
    }
}
