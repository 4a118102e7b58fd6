//! What a row is made of: fields, columns, groups, keys; how it lies in words; how it is read and
//! updated.

pub(crate) mod chain;
mod column;
pub(crate) mod delta;
mod field;
mod key;
mod key_packing;
pub mod key_text;
mod layout;
pub mod packing;
mod range;
mod schema;
mod secondary;
mod tid;
pub(crate) mod undo;
mod update;

pub use column::{
    Column, ColumnKind, Free, Indexed, KeyColumn, Place, Projection, Updatable, Whole,
};
pub use field::{Buffer, Bytes, Field, Number, Text, TextTooLong};
pub use key::{Key, OneWord};
pub(crate) use key_packing::KeyPacking;
pub(crate) use key_text::{Show, Shown};
pub use layout::{CellAt, Unit, Words};
pub(crate) use layout::{
    KEY_WORDS_MAX, KeyWords, Layout, PlacedUnit, PlacedUnits, RECORD_WORDS_MAX, RecordAt, Units,
};
pub(crate) use range::Edge;
pub use range::{KeyPrefix, KeyRange, Prefix, WordRange};
pub use schema::{Group, Record, schema_hash};
pub(crate) use schema::{RowType, image_words, store_in};
pub use secondary::{Hashed, InOrder, IndexKind, IndexOf, IndexSpec, Ordered};
pub(crate) use tid::Tid;
pub(crate) use update::DryRun;
pub use update::Op;
pub use update::{Arithmetic, ColumnUpdate, Refused, Sink, Update, Updater};
pub(crate) use update::{Code, ImageSink, NUMBER_OPERANDS, UserUpdate};
