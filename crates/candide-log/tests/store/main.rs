//! Tests of whole databases, on simulated disks and on real ones.

#![forbid(unsafe_code)]

mod basics;
mod crashes;
mod damage;
mod dropped;
mod faults;
mod manifest;
mod model;
#[cfg(unix)]
mod moved;
mod paced;
mod parallel;
mod reopening;
mod support;
mod together;
mod tools;
mod values;
