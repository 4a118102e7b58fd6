//! The bodies of the fuzz targets, as functions of bytes. Each is a plain function, so that `cargo
//! test` runs it, too.

#![forbid(unsafe_code)]

// Layers, lowest first: choices, edn, keys, log_blocks, log_checkpoint, log_commits, log_manifest,
// operations, schedules.
mod choices;
pub mod edn;
pub mod keys;
pub mod log_blocks;
pub mod log_checkpoint;
pub mod log_commits;
pub mod log_manifest;
pub mod operations;
#[cfg(test)]
mod random;
pub mod schedules;

pub use choices::Choices;
