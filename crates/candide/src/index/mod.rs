//! Indexes, which find the records of keys.

mod deleted_index;
mod hash;
mod node;
mod ordered;
mod table_index;

pub(crate) use deleted_index::DeletedIndex;
pub(crate) use hash::{HashIndex, Size};
pub(crate) use node::{Advance, Found, Linked, Retire, Supplies};
pub use node::{NodeAt, NodeChange};
pub use ordered::Direction;
pub(crate) use ordered::{OrderedIndex, Place, Start};
pub(crate) use table_index::{Cursor, TableIndex, check_width};
