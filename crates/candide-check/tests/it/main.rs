//! Tests of the checkers and of the files that they read. One binary holds them all: linking a
//! binary takes seconds, and the tests of one binary run side by side.

mod anomalies;
mod black;
mod black_oracle;
mod black_orders;
mod black_stores;
mod common;
mod edn;
#[cfg(feature = "formats")]
mod formats;
mod growth;
mod opacity;
mod oracle;
mod store;
mod windows;
