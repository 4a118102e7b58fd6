//! A database of `candide` whose log is in a place.

#![forbid(unsafe_code)]

mod checkpoints;
mod compare;
mod note;
mod opening;
mod options;
mod remote;
mod replicate;
mod sender;
mod shared;

pub use options::ReplicateOptions;
pub(crate) use remote::Primary;
pub use replicate::Replicate;
