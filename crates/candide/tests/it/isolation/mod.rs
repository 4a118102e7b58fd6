//! Tests of what transactions see of their own changes and of other transactions' changes.

mod aggregates;
mod both_ends;
mod effects;
mod scans;
mod single_reads;
mod validation;
