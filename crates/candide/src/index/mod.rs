//! From keys to records.

mod hash;
#[cfg_attr(any(not(test), loom, shuttle), expect(dead_code, reason = "no table has an ordered index yet"))]
mod ordered;

pub use hash::NodeAt;
pub(crate) use hash::{Found, HashIndex, Linked, Retire};
#[expect(unused_imports, reason = "no table has an ordered index yet")]
pub(crate) use ordered::{Advance, Bound, Cursor, Direction, Edge, KeyRange, NodeChange, OrderedIndex, Place};
