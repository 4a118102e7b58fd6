//! Tests of the engine that use only its public interface. Each module holds the tests of one kind
//! of property.

// The files that these tests share with the engine's own tests name the engine as `crate`.
#[allow(unused_imports)]
use candide::*;
// The macro looks here for the functions that run tests.
use common as tests;

#[path = "../../src/tests/protocol_tests.rs"]
#[macro_use]
mod protocol_tests;

mod api;
mod bulk;
mod common;
mod deferred;
mod durable;
mod first_attempts;
mod indexes;
mod isolation;
mod keys;
mod memory;
mod misuse;
mod phantoms;
mod progress;
mod sequences;
mod snapshots;
mod stress;
