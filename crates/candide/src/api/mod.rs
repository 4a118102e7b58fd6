//! The handles by which a program uses a database.

mod aggregate;
mod any;
#[cfg(feature = "arrow")]
mod arrow;
mod bulk;
mod changes;
mod close;
mod database;
mod deferred;
mod deferred_late;
mod deferred_run;
mod health;
mod index;
mod index_changes;
mod index_entry;
mod index_lookup;
mod index_scan;
mod index_turn;
#[cfg(feature = "histograms")]
mod latencies;
mod later;
mod left;
mod log_options;
mod long_rows;
#[cfg(feature = "metrics")]
mod metrics;
mod migrate;
mod migration;
mod open;
mod pending;
mod quiescent;
mod recovery;
mod replica;
mod row;
mod row_values;
mod runner;
mod scan;
mod sequence;
mod session;
mod snapshot;
mod stream;
mod stream_words;
mod table;
mod table_end;
mod table_freeze;
mod table_handle;
mod table_names;
mod table_policy;
mod table_ranges;
mod table_rows;
#[cfg(any(test, feature = "experiments"))]
mod table_words;
mod table_writes;
#[cfg(feature = "text")]
mod text_rows;
#[allow(dead_code, reason = "no program can name these tables yet")]
mod value_table;
mod values_of;
mod views;
mod way;

pub use any::{AnyDatabase, AnyIndex, AnySequence, AnySession, AnyTable, AnyTx};
pub use bulk::LoadOptions;
pub use close::CloseError;
pub(crate) use database::find_table;
pub use database::{Builder, Database, MemoryUse};
pub use health::{Health, OldestPin, OldestSnapshot, TableUse};
pub use index::{Index, IndexOptions};
pub use index_scan::IndexScan;
pub use later::{Arithmetic, Inputs, Later, Settle, Values};
pub use log_options::LogOptions;
pub use open::Durability;
pub use pending::{Pending, Position};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use quiescent::for_each_row;
pub use replica::{ChangedElsewhere, NOTE_WORDS, Note, Replica, ReplicaError, is_own_table};
pub use row::Row;
pub use runner::Runner;
pub use scan::Scan;
pub use sequence::Sequence;
pub use session::Session;
pub(crate) use session::run_cached;
pub use snapshot::Snapshot;
pub use table::Table;
pub use table_handle::TableHandle;
#[cfg(any(test, feature = "experiments"))]
pub use table_words::TableWords;
pub(crate) use value_table::ValueTable;
pub use values_of::ValuesOf;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use way::Way;
