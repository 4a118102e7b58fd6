//! Records: the words in memory that hold a row, and older versions of the row.

pub(crate) mod delta;
#[cfg(feature = "json")]
mod json;
mod kept_bytes;
mod layout;
pub(crate) mod long;
mod long_columns;
mod long_keys;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;
mod tid;
pub(crate) mod undo_record;
mod user_update;
pub(crate) mod value;
pub(crate) mod version_chain;

#[cfg(feature = "json")]
pub use json::Json;
pub(crate) use kept_bytes::KeptBytes;
pub use layout::CellAt;
pub(crate) use layout::{Layout, Named, PlacedUnit, PlacedUnits, RECORD_WORDS_MAX, RecordAt};
pub(crate) use tid::Tid;
pub(crate) use user_update::UserUpdate;
