//! Schemas: a program's declarations of rows, keys and indexes.
//!
//! The root of the crate exports the names that most programs use. This module exports the other
//! ones: types in signatures, and the traits of a program's own keys, fields and updaters.

mod as_key;
pub(crate) mod column;
pub(crate) mod column_type;
pub(crate) mod field;
pub(crate) mod field_type;
mod field_value;
pub(crate) mod group;
mod hash;
mod index_of;
pub(crate) mod index_spec;
pub(crate) mod key;
mod key_joint;
mod key_packing;
pub(crate) mod key_text;
mod key_tuple;
mod key_words;
mod meta;
pub(crate) mod nested;
mod number_range;
mod operation;
pub(crate) mod packing;
pub(crate) mod place;
pub(crate) mod prefix;
pub(crate) mod range;
pub(crate) mod record;
mod standard;
mod strings;
mod summand;
mod unit;
mod update;
mod words;

pub use as_key::AsKeys;
pub(crate) use column::Column;
pub use column::{ColumnKind, Free, Indexed, KeyColumn, Projection, ReadOnly, Updatable};
pub use field::{Buffer, Field, Number, TextTooLong};
pub(crate) use field::{Bytes, Text};
pub use field_type::{FieldInfo, FieldType, PartType};
pub use field_value::FieldValue;
pub(crate) use group::{Group, all_groups, image_words, start_of};
pub use index_of::IndexOf;
pub(crate) use index_spec::{Hashed, Ordered};
pub use index_spec::{InOrder, IndexKind, IndexSpec};
pub use key::AsKey;
pub(crate) use key::Key;
pub use key_joint::Before;
pub(crate) use key_packing::KeyPacking;
pub(crate) use key_text::{Show, Shown};
pub(crate) use key_words::{KEY_WORDS_MAX, KeyWords};
pub use meta::Meta;
pub use nested::{Part, Tag, Tagged};
pub use number_range::NumberRange;
pub(crate) use operation::{Arithmetic, Code, NUMBER_OPERANDS, Op, Sink};
pub(crate) use place::Place;
pub use prefix::PrefixEnd;
pub(crate) use range::{Edge, WordRange};
pub use range::{KeyPrefix, KeyRange};
pub use record::RowMeta;
pub(crate) use record::{Record, RowType, store_in};
pub use summand::Summand;
pub(crate) use unit::{Unit, Units};
pub use update::{ColumnUpdate, Refused, Update, Updater};
pub(crate) use update::{DryRun, ImageSink};
pub(crate) use words::Words;
