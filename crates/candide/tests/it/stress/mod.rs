//! Tests with more threads than cores.

mod totals;
