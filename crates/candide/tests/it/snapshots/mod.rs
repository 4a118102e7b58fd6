//! Tests of the rows that snapshots see.

mod moves;
