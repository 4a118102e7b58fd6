//! The declarations of a row type, as values.

#![forbid(unsafe_code)]

use super::field_type::FieldInfo;
use super::group::Group;
use super::index_spec::IndexSpec;

/// The declarations of a row type: its name, groups, indexes and fields.
/// [`Record::META`](super::Record::META) has them, and [`RowMeta`](super::RowMeta) returns them one
/// by one.
#[derive(Debug, Clone, Copy)]
pub struct Meta {
    pub(super) name: &'static str,
    pub(super) groups: &'static [Group],
    pub(super) indexes: &'static [IndexSpec],
    pub(super) schema: Option<u64>,
    pub(super) fields: &'static [FieldInfo],
}

impl Meta {
    /// Returns the declarations of a row type with this name and these column groups: at least one
    /// and at most [`Group::COUNT_MAX`], with at most 65,000 words in all. The type has no indexes,
    /// and its fields are not described.
    pub const fn new(name: &'static str, groups: &'static [Group]) -> Meta {
        Meta { name, groups, indexes: &[], schema: None, fields: &[] }
    }

    /// Declares the secondary indexes that every table of the type has, at most 32. Their places
    /// do not come from columns of the same type, since these are checked against the groups.
    #[must_use]
    pub const fn with_indexes(self, indexes: &'static [IndexSpec]) -> Meta {
        Meta { indexes, ..self }
    }

    /// Declares the [`RowMeta::SCHEMA`](super::RowMeta::SCHEMA).
    #[must_use]
    pub const fn with_schema(self, schema: u64) -> Meta {
        Meta { schema: Some(schema), ..self }
    }

    /// Declares the descriptions of all fields: the parts of the key in their order, and the
    /// columns.
    #[must_use]
    pub const fn with_fields(self, fields: &'static [FieldInfo]) -> Meta {
        Meta { fields, ..self }
    }
}
