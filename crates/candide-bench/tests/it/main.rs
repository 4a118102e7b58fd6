//! Tests that run the command as a user would, and read what it prints and writes. One binary holds
//! them all: linking a binary takes seconds, and the tests of one binary run side by side.

mod arguments;
mod check;
mod common;
mod crash;
#[cfg(target_os = "linux")]
mod durable;
mod files;
mod hottest;
#[cfg(target_os = "linux")]
mod interrupt;
mod locks;
mod measurement;
#[cfg(target_os = "linux")]
mod printing;
mod reach;
mod reproduce;
mod rows;
mod sets;
mod soak;
mod standard;
