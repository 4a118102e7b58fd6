//! Values of any Rust type in objects.

#![forbid(unsafe_code)]

/// A value of any type `T` that is `Send`, `Sync` and `'static`, for transactional objects:
/// `TBox<Boxed<String>>`, `TMap<u64, Boxed<Session>>`.
///
/// Objects of boxed values are in memory only, also in a database that is
/// [open](crate::Database::open) in a directory: the type says so. Keys, in maps and sets, are
/// [`Key`](macro@crate::Key)s in any case, and not any type that has a hash.
///
/// An operation reads a value by reference, without a copy; the reference lives as long as the
/// borrow of the transaction. A value is never changed in place, since other transactions may be
/// reading it: it is replaced. The memory limit of a database counts the objects, and not what
/// their values own.
///
/// # Drops
/// A value is dropped exactly once: after it was replaced or deleted, or its object has ended, and
/// no transaction and no snapshot can see it any more; or after the attempt that was to write it,
/// if that failed. Threads that end a transaction drop the values that are due, also those of
/// others; closing the database drops the rest, on a thread of its own if the last handle is
/// dropped in a transaction of another database. At that moment the thread is in no transaction, so
/// the `drop` of a value may run transactions, and may panic. Drops are not nested: values that
/// become due meanwhile, or within another transaction of the thread, are dropped by a later one.
///
/// A value may contain objects of its own database: `next: Option<TBox<Boxed<Node>>>`. When a value
/// that has the last handle of an object is dropped, the object ends, and its values are due some
/// milliseconds later: a list of unnamed boxes goes node by node. Other handles, such as
/// [`Database`](crate::Database) and [`Table`](crate::Table), keep the database open as long as
/// the value lives, so the database is not closed before the value is deleted.
///
/// ```
/// use candide::objects::{Boxed, TMap};
/// use candide::Database;
///
/// let db = Database::new();
/// let names = TMap::<u64, Boxed<String>>::new(&db)?;
/// db.run(|tx| names.put(tx, 7, "Ann".to_owned()))?;
/// let length = db.run(|tx| Ok(names.get(tx, 7)?.map_or(0, |name| name.len())))?;
/// assert_eq!(length, 3);
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Boxed<T>(
    /// The value.
    pub T,
);

impl<T> From<T> for Boxed<T> {
    fn from(value: T) -> Boxed<T> {
        Boxed(value)
    }
}
