//! Tests of garbage that waits for snapshots, of rows that every session collects, and of the index
//! of deleted records.

mod deleted_index;
mod hot_rows;
pub(crate) mod parked_records;
