//! Tests that look for states in which a database loses something, refuses to open without damage,
//! or passes over damage.

#![forbid(unsafe_code)]

mod full;
mod large_rounds;
mod large_spares;
mod last_block;
mod leftovers;
mod manifest;
mod scripts;
#[allow(dead_code)]
#[path = "../store/support.rs"]
mod support;
