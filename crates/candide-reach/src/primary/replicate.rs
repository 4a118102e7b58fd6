//! The method by which a program opens a database with a place.

#![forbid(unsafe_code)]

use super::options::ReplicateOptions;
use super::remote::Primary;
use crate::place::Place;
use candide::LogOptions;
use std::sync::Arc;

/// Options of the log of a database, together with a place.
pub trait Replicate: Sized {
    /// Has the log written to `place`, too, where it outlives the machine. Then transactions can
    /// wait until the place has them: [`Level::Replicated`](candide::Level::Replicated).
    ///
    /// The directory leads if no other one has led since: a standby that was promoted, or a copy of
    /// the directory. A database that has been opened without its place meanwhile sends what the
    /// place lacks: the log, or a checkpoint if the log is not in the directory any more.
    ///
    /// A checkpoint contains only what the place has, and waits for that, unless the place lags by
    /// more than [`replicate_backlog`](ReplicateOptions::replicate_backlog). It is written to the
    /// place, too, and what it covers is deleted there. The protocol has to be one whose commits
    /// can be read in the order of the log: not [`TicToc`](candide::TicToc).
    ///
    /// Opening ends in an error without a change:
    /// * [`OpenError::Led`](candide::OpenError::Led): another directory leads.
    /// * [`OpenError::Diverged`](candide::OpenError::Diverged): another one has led, and some
    ///   commits are only here.
    /// * [`OpenError::Remote`](candide::OpenError::Remote): the place does not answer, refuses, is
    ///   not a place, or has the log of another database. The database opens without it by
    ///   [`open_alone`](ReplicateOptions::open_alone).
    ///
    /// ```
    /// use candide::{Database, Level, LogOptions, Occ, Record, RunOptions};
    /// use candide_reach::{Directory, Replicate};
    ///
    /// #[derive(Record, Clone, Copy)]
    /// struct Account { #[key] id: u64, cents: i64 }
    ///
    /// # let path = std::env::temp_dir().join(format!("candide-reach-doc-{}", std::process::id()));
    /// # let (here, other) = (path.join("shop.candide"), path.join("other"));
    /// # std::fs::create_dir_all(&path)?;
    /// let options = LogOptions::new().replicate(Directory::new(&other)?);
    /// let db = Database::<Occ>::builder().open(&here, options)?;
    /// let accounts = db.table::<Account>("accounts")?;
    /// let safe = RunOptions::new().acknowledge(Level::Replicated);
    /// db.with(safe).run(|tx| accounts.insert(tx, Account { id: 1, cents: 50 }))?;
    /// # drop((db, accounts));
    /// # std::fs::remove_dir_all(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    fn replicate(self, place: impl Place + 'static) -> Self {
        self.replicate_with(place, ReplicateOptions::new())
    }

    /// Has the log written to `place`, as [`replicate`](Replicate::replicate) does, with options.
    #[must_use]
    fn replicate_with(self, place: impl Place + 'static, options: ReplicateOptions) -> Self;
}

impl Replicate for LogOptions {
    fn replicate_with(self, place: impl Place + 'static, options: ReplicateOptions) -> LogOptions {
        self.remote(Arc::new(Primary::new(Arc::new(place), options)))
    }
}
