//! The handles by which a program uses a database.

mod bulk;
mod database;
mod health;
mod index;
mod index_changes;
mod index_entry;
mod log_options;
mod open;
mod pending;
mod quiescent;
mod recovery;
mod scan;
mod sequence;
mod session;
mod snapshot;
mod stream;
mod table;
mod table_policy;
#[cfg(any(test, feature = "experiments"))]
mod table_words;

pub use bulk::LoadOptions;
pub use database::{Builder, Database, MemoryUse};
pub use health::{Health, OldestPin, OldestSnapshot, TableUse};
pub use index::{Index, IndexOptions, IndexScan};
pub use log_options::LogOptions;
pub use open::Durability;
pub use pending::Pending;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use quiescent::for_each_row;
pub use scan::Scan;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use scan::Way;
pub use sequence::Sequence;
pub use session::Session;
pub use snapshot::Snapshot;
pub use stream::StreamError;
pub use table::{Row, Table};
#[cfg(any(test, feature = "experiments"))]
pub use table_words::TableWords;
