//! What transactions see of themselves and of others.

mod effects;
mod scans;
mod single_reads;
mod validation;
