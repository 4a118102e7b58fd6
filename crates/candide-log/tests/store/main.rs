//! Tests of whole databases, on simulated disks and on real ones.

#![forbid(unsafe_code)]

mod basics;
mod crashes;
mod damage;
mod faults;
mod manifest;
mod model;
#[cfg(unix)]
mod moved;
// Other builds have no deliberate defects.
#[cfg(debug_assertions)]
mod mutants;
mod parallel;
mod support;
mod together;
mod tools;
