//! More threads than cores.

mod totals;
