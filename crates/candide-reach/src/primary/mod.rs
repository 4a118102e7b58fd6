//! A database of `candide` whose log is in a place.

#![forbid(unsafe_code)]

mod compare;
mod note;
mod options;
mod remote;
mod replicate;

pub use options::ReplicateOptions;
pub use replicate::Replicate;
