//! Waits and retries that end, and what programs are told of them.

mod conflicts;
mod counts;
mod locked_rows;
mod waiting;
