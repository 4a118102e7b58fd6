//! Tests of the engine by its public interface alone, each below what it is a property of.

// Files that the engine's own tests share with these name the engine as `crate`.
#[allow(unused_imports)]
use candide::*;
// Where the macro looks for the functions that run tests.
use common as tests;

#[path = "../../src/tests/protocol_tests.rs"]
#[macro_use]
mod protocol_tests;

mod bulk;
mod common;
mod indexes;
mod isolation;
mod memory;
mod misuse;
mod phantoms;
mod progress;
mod snapshots;
mod stress;
