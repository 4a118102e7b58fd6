//! Tests that waits and retries end, and of the reports about them to programs.

mod conflicts;
mod counts;
mod locked_rows;
mod waiting;
