//! Transactional objects: values, counters, arrays, maps, sets, queues, vectors and lists that
//! transactions of a database read and write together with its tables.
//!
//! Objects are rows of tables that the engine makes for them. So everything that is said of
//! tables holds for objects: a transaction may use both, all protocols apply, readers of a
//! [snapshot](crate::Snapshot) see objects as of that moment, and [`Tx::retry`](crate::Tx::retry)
//! waits for them.
//!
//! | object | is | for |
//! |---|---|---|
//! | [`TBox`], [`TVar`] | a value | what belongs together and changes as a whole |
//! | [`TCounter`] | a number | counts, stocks and limits that many transactions change |
//! | [`TArray`] | values by index | grids, slots, shards |
//! | [`TMap`], [`TSet`] | keys by hash | lookups by key |
//! | [`TOrderedMap`] | keys in order | ranges, the first and the last |
//! | [`TQueue`] | values, first in, first out | handing work from some transactions to others |
//! | [`TVec`] | values by index, of any number | logs, stacks |
//! | [`TPriorityQueue`] | values by priority | deadlines, schedules |
//! | [`TList`] | sorted elements, equal ones, too | bids, scores |
//!
//! Objects hold the types that columns can have, or, in memory only, [`Boxed`] values of any Rust
//! type ([`Stored`]). An object has a name, or it has none: `TCounter::named(&db, "hits")?`,
//! `TCounter::new(&db)?`. A named object exists once in a database, and is durable if the database
//! is [open](crate::Database::open) in a directory; the next opening finds it, and refuses it under
//! another type. An object without a name is in memory, and ends with its last handle. A handle is
//! small; its clones refer to the same object, and threads may share them. Handles of objects do
//! not keep the database open, so values of the database may contain them. What has ended is
//! deleted in transactions of its own: under [`Serial`](crate::Serial), which allows one session,
//! when the program has none.
//!
//! # Names
//! A name is of at most 64 bytes, and is never free again: there is no way to delete or rename an
//! object, or to change its type. The type is compared by its name as [`std::any::type_name`] has
//! it, without modules, and by its layout. So a program that renames the type of a durable object's
//! values gets [`Error::ObjectType`](crate::Error::ObjectType).
//!
//! # Types of a program's own
//! All that these objects do, a program can do with the public interface: rows of a table as
//! state, [`Column::add`](crate::Column::add) and other updates for changes that observe nothing,
//! [`Table::is_within`](crate::Table::is_within) for conditions that observe no more than their
//! answer, [`Tx::attempt`](crate::Tx::attempt) for operations that fail as a whole, and
//! [`Tx::check`](crate::Tx::check) for operations that wait. Such a type keeps [`Table`] handles,
//! or objects, and its operations take `&Tx`. A counter of several rows, to which threads add
//! without meeting one another:
//!
//! ```
//! use candide::objects::TArray;
//! use candide::{Abort, Database, Error, Tx};
//!
//! #[derive(Clone)]
//! struct ShardedCounter {
//!     shards: TArray<i64>,
//! }
//!
//! impl ShardedCounter {
//!     fn new(db: &Database, shards: usize) -> Result<ShardedCounter, Error> {
//!         Ok(ShardedCounter { shards: TArray::new(db, shards, |_| 0)? })
//!     }
//!
//!     /// Adds to the shard of a thread, which says its number.
//!     fn add(&self, tx: &Tx<'_>, thread: usize, summand: i64) -> Result<(), Abort> {
//!         self.shards.add(tx, thread % self.shards.len(), summand)
//!     }
//!
//!     /// Returns the sum. Conflicts with all that add.
//!     fn get(&self, tx: &Tx<'_>) -> Result<i64, Abort> {
//!         (0..self.shards.len()).try_fold(0, |sum, shard| Ok(sum + self.shards.get(tx, shard)?))
//!     }
//! }
//!
//! let db = Database::new();
//! let hits = ShardedCounter::new(&db, 4)?;
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         let (db, hits) = (&db, hits.clone());
//!         scope.spawn(move || (0..10).try_for_each(|_| db.run(|tx| hits.add(tx, thread, 1))));
//!     }
//! });
//! assert_eq!(db.run(|tx| hits.get(tx)), Ok(40));
//! # Ok::<(), Error>(())
//! ```
//!
//! The example `bounded_stack.rs` has a type on a table of its own.
//!
//! [`Table`]: crate::Table

#![forbid(unsafe_code)]

// Layers, lowest first: words, boxed, value_types, cell, owner, cells, entry, maps, elements,
// stored, directory, tbox, array, counter, map, boxed_map, set, ends, list, priority_queue,
// sequence, queue, vec.
mod array;
mod boxed;
mod boxed_map;
mod cell;
mod cells;
mod counter;
mod directory;
mod elements;
mod ends;
mod entry;
mod list;
mod map;
mod maps;
mod owner;
mod priority_queue;
mod queue;
mod sequence;
mod set;
mod stored;
mod tbox;
mod value_types;
mod vec;
mod words;

pub use array::TArray;
pub use boxed::Boxed;
pub use counter::TCounter;
pub use entry::{Entry, Member};
pub use list::TList;
pub use map::{Entries, TMap, TOrderedMap};
pub use priority_queue::{Priority, TPriorityQueue};
pub use queue::TQueue;
pub use set::TSet;
pub use stored::Stored;
pub use tbox::{TBox, TVar};
pub use value_types::ValueTypes;
pub use vec::TVec;
