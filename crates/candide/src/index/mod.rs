//! From keys to records.

mod hash;

pub use hash::NodeAt;
pub(crate) use hash::{Found, HashIndex, Linked, Retire};
