//! The program's handles of a database. The database is closed when the last one is dropped.

#![forbid(unsafe_code)]

use crate::durable::Durable;
use crate::engine::Protocol;
use crate::log::Log;
use crate::shared::{HasValues, Inner};
use crate::sync::is_inside_transaction;
use crate::sync::process::Builder;
use candide_log::Store;
use std::any::Any;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The part that all handles of the program have: databases, tables, indexes, sequences, sessions
/// and snapshots. The count keeps the database open.
///
/// Threads that visit the database without a handle of the program refer to the memory alone: the
/// logger, the advancer of the epochs, and threads that end with a session of their own. A visit
/// keeps the memory for a moment, and delays nothing else.
///
/// Objects refer to the memory alone, too ([`Handle::of_memory`]), since a value of the database
/// may contain them: it would keep the database open, which is what keeps the value. They are used
/// in transactions, and so while the database is open.
pub(crate) struct Handle<P: Protocol> {
    memory: Arc<Inner<P>>,
    /// `None` if the handle does not keep the database open.
    open: Option<Arc<Open>>,
}

/// The state of being open, which handles share. Dropping this state closes the database.
#[derive(Default)]
pub(crate) struct Open {
    /// The log; empty if the database has none.
    log: OnceLock<Arc<Log>>,
    /// The files of the database and its logger; empty if the database has none.
    durable: OnceLock<Durable>,
    /// The memory of the database, if rows of it name values. Closing the database drops them, so
    /// that no thread does that visits the memory.
    values: OnceLock<Arc<dyn HasValues>>,
}

impl<P: Protocol> Handle<P> {
    /// Returns the first handle of a database.
    pub(crate) fn first(memory: Arc<Inner<P>>) -> Handle<P> {
        Handle { memory, open: Some(Arc::default()) }
    }

    /// Returns a handle that does not keep the database open.
    pub(crate) fn of_memory(memory: &Arc<Inner<P>>) -> Handle<P> {
        Handle { memory: memory.clone(), open: None }
    }

    /// Makes the database durable.
    pub(crate) fn make_durable(&self, durable: Durable) {
        self.set_log(durable.log());
        assert!(self.open().durable.set(durable).is_ok(), "a database is opened once");
    }

    /// Gives the database a log. Sessions that are made from now on log their commits.
    pub(crate) fn set_log(&self, log: &Arc<Log>) {
        for place in [&self.memory.engine.log, &self.open().log] {
            place.set(log.clone()).expect("a database is opened once");
        }
    }

    /// Notes that rows of the database name values, which closing the database drops.
    pub(crate) fn note_values(&self) {
        let _ = self.open().values.get_or_init(|| self.memory.clone());
    }

    /// Returns whether rows of the database may name values.
    pub(crate) fn has_values(&self) -> bool {
        self.open().values.get().is_some()
    }

    /// Returns the files and the logger of the database; `None` if it has none, or if the handle
    /// does not keep the database open.
    pub(crate) fn durable(&self) -> Option<&Durable> {
        self.open.as_ref()?.durable.get()
    }

    /// Returns the files of the database; `None` if it has none.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.durable().map(Durable::store)
    }

    /// Returns the handle's share in the open state, for a handle that does not depend on the
    /// protocol. Not called of objects' handles.
    pub(crate) fn open(&self) -> &Arc<Open> {
        self.open.as_ref().expect("the handle keeps the database open")
    }

    /// Closes the database.
    ///
    /// # Errors
    /// [`NotClosed::HasHandles`]: nothing has happened. [`NotClosed::Failed`]: the database is
    /// closed.
    pub(crate) fn close(self) -> Result<(), NotClosed<P>> {
        let Handle { memory, open } = self;
        let mut open = open.expect("the handle keeps the database open");
        loop {
            open = match Arc::try_unwrap(open) {
                Ok(last) => return last.close().map_err(NotClosed::Failed),
                Err(open) => open,
            };
            // Zero if the other handles have been dropped since.
            let others = Arc::strong_count(&open) - 1;
            if others > 0 {
                let handle = Handle { memory, open: Some(open) };
                return Err(NotClosed::HasHandles(others, handle));
            }
        }
    }
}

/// The reason why a handle could not close the database.
pub(crate) enum NotClosed<P: Protocol> {
    /// This number of other handles exists.
    HasHandles(usize, Handle<P>),
    /// The log has failed.
    Failed(Arc<io::Error>),
}

impl<P: Protocol> Clone for Handle<P> {
    fn clone(&self) -> Self {
        Handle { memory: self.memory.clone(), open: self.open.clone() }
    }
}

impl<P: Protocol> Deref for Handle<P> {
    type Target = Arc<Inner<P>>;

    #[inline]
    fn deref(&self) -> &Arc<Inner<P>> {
        &self.memory
    }
}

impl Open {
    /// Returns the log of the database, which has one.
    pub(crate) fn log(&self) -> &Arc<Log> {
        self.log.get().expect("the database has a log")
    }

    /// Returns the files of the database, which has some.
    pub(crate) fn store(&self) -> &Store {
        self.durable.get().expect("the database has files").store()
    }

    fn close(mut self) -> Result<(), Arc<io::Error>> {
        self.durable.take().map_or(Ok(()), Durable::close)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(durable) = self.durable.take() {
            // `Database::close` reports the failure. An error cannot be reported here.
            let _ = durable.close();
        }
        if let Some(memory) = self.values.take() {
            drop_outside(memory.take_values());
        }
    }
}

/// Drops values outside of transactions: inside one, a thread of its own drops them.
fn drop_outside(values: Box<dyn Any + Send>) {
    if is_inside_transaction() {
        // If there is no thread, the closure is dropped here, and the values with it.
        let _ = Builder::new().name("candide-values".to_owned()).spawn(move || drop(values));
    }
}
