//! The description that makes a type a row.

#![forbid(unsafe_code)]

use super::field::{Buffer, Private};
use super::field_type::FieldInfo;
use super::group::{Group, image_words};
use super::hash::{HASH_SEED, hash_numbers, mix, mix_text};
use super::index_spec::{IndexKind, IndexSpec};
use super::key::Key;
use super::key_text::Show;
use super::long::{LongColumns, LongSink, LongWriter};
use super::meta::Meta;
use super::row_words::{RowReader, RowWriter};
use crate::error::Abort;
use std::any::TypeId;

/// A row type: a key, and plain data in one or more column groups. Usually derived:
/// `#[derive(Record)]`. Code that copies rows of any type asks for that: `R: Record + Copy`.
///
/// A hand-written implementation looks as follows. The columns outside the key lie in the words of
/// their groups, group after group. A [`Column`](super::column::Column) constant gives the exact
/// place of each column, and `store` and `load` use these constants:
///
/// ```
/// use candide::schema::{Meta, RowReader, RowWriter};
/// use candide::{Column, Group, Hashed, Record};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Account {
///     id: u64,
///     limit: u32,
///     frozen: bool,
///     cents: i64,
/// }
///
/// impl Account {
///     // Fields of less than a word may share one; they say where in it they begin.
///     const LIMIT: Column<Account, u32> = Column::packed(0, 0, 0, "limit");
///     const FROZEN: Column<Account, bool> = Column::packed(0, 0, 32, "frozen");
///     const CENTS: Column<Account, i64> = Column::new(1, 0, "cents");
/// }
///
/// impl Record for Account {
///     type Key = u64;
///     type Index = Hashed;
///     type Image = [u64; 2];
///     const META: Meta =
///         Meta::new("Account", &[Group::new("profile", 1), Group::new("balance", 1)]);
///
///     fn key(&self) -> u64 {
///         self.id
///     }
///     fn store(&self, row: &mut RowWriter<'_>) {
///         Self::LIMIT.put(row, &self.limit);
///         Self::FROZEN.put(row, &self.frozen);
///         Self::CENTS.put(row, &self.cents);
///     }
///     fn load(key: &u64, row: &RowReader<'_>) -> Account {
///         Account {
///             id: *key,
///             limit: Self::LIMIT.take(row),
///             frozen: Self::FROZEN.take(row),
///             cents: Self::CENTS.take(row),
///         }
///     }
/// }
///
/// let account = Account { id: 7, limit: 500, frozen: true, cents: -3 };
/// let mut words = [0; 2];
/// account.store(&mut RowWriter::new(&mut words));
/// assert_eq!(Account::load(&7, &RowReader::new(&words)), account);
/// ```
pub trait Record: Clone + Send + Sync + 'static {
    /// The primary key.
    type Key: Key;
    /// The kind of index by which tables find rows of this type:
    /// [`Hashed`](super::index_spec::Hashed) or [`Ordered`](super::index_spec::Ordered).
    type Index: IndexKind;
    /// A buffer for all words outside the key: `[u64; N]` with `N` the sum of the groups' words.
    type Image: Buffer;
    /// The type's name, its column groups, and the descriptions of its indexes and fields.
    const META: Meta;

    /// Returns the row's key.
    fn key(&self) -> Self::Key;

    /// Writes every column outside the key to `row`, whose words are zeros before the call.
    fn store(&self, row: &mut RowWriter<'_>);

    /// Returns the row with `key` whose other columns are in `row`.
    fn load(key: &Self::Key, row: &RowReader<'_>) -> Self;
}

/// The declarations of a row type as constants. Every [`Record`] has them; since this is a trait of
/// its own, they are not in the way of a program's own constants of these names.
pub trait RowMeta: Record {
    /// The type's name, which each table of this type keeps.
    const NAME: &'static str = Self::META.name;
    /// The column groups.
    const GROUPS: &'static [Group] = Self::META.groups;
    /// The secondary indexes that every table of this type has.
    const INDEXES: &'static [IndexSpec] = Self::META.indexes;
    /// A number that differs between row types with different layouts and is the same in every
    /// build. It is compared where a row type, or a file or stream of an earlier version, does not
    /// describe the fields ([`RowMeta::FIELDS`]). The
    /// default covers the layout of the key's type and the groups. A derived number covers the
    /// names of fields, groups and types as written, and the layouts of the key's type and of each
    /// column's type. The layout of a struct that derives [`Key`] or
    /// [`Field`](macro@crate::Field) includes the names and types of
    /// its fields. These numbers do not cover the meaning of bits. So an import does not notice if
    /// variants of an enum were exchanged, if a variant was added that needs no further bit, or if
    /// a type was replaced by another one with the same name and layout.
    const SCHEMA: u64 = match Self::META.schema {
        Some(schema) => schema,
        None => default_schema(Self::Key::KEY_LAYOUT, Self::META.groups),
    };
    /// The descriptions of all fields: the parts of the key in their order, and the columns.
    /// Files and exports have them, so that messages can name the columns that differ, and tools
    /// show rows by name. Empty if the row type does not describe them; then [`RowMeta::SCHEMA`] is
    /// compared instead.
    const FIELDS: &'static [FieldInfo] = Self::META.fields;
    /// The columns of strings and bytes of any length.
    #[doc(hidden)]
    const LONG_COLUMNS: &'static LongColumns =
        &LongColumns::of(Self::META.fields, Self::META.groups);
    /// The numbers of the words of these columns among all words outside of the key.
    #[doc(hidden)]
    const LONG: &'static [u16] = Self::LONG_COLUMNS.words();
    /// Whether a field is [encoded](crate::Codec), or JSON, so that stored words of a row may be
    /// refused.
    #[doc(hidden)]
    const CODED: bool = has_codec(Self::META.fields);
}

impl<R: Record> RowMeta for R {}

/// The properties of a row type that a database needs, as a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowType {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
    /// The type's name, with its modules.
    pub(crate) path: &'static str,
    /// [`RowMeta::SCHEMA`].
    pub(crate) schema: u64,
    /// [`RowMeta::FIELDS`].
    pub(crate) fields: &'static [FieldInfo],
    pub(crate) groups: &'static [Group],
    pub(crate) indexes: &'static [IndexSpec],
    /// The number of words of the key; and, in `key_widths`, the number of bits used in each.
    pub(crate) key_words: usize,
    pub(crate) key_widths: &'static [u32],
    pub(crate) show_key: Show,
    /// Whether tables keep keys in order.
    pub(crate) ordered: bool,
    /// The number of words of [`Record::Image`].
    pub(crate) image_words: usize,
    /// [`RowMeta::LONG`].
    pub(crate) long: &'static [u16],
    /// Whether [`Record::Image`] is an array of words.
    pub(crate) is_plain_image: bool,
}

impl RowType {
    pub(crate) fn of<R: Record>() -> RowType {
        let mut image = R::Image::ZERO;
        RowType {
            id: TypeId::of::<R>(),
            name: R::NAME,
            path: std::any::type_name::<R>(),
            schema: R::SCHEMA,
            fields: R::FIELDS,
            groups: R::GROUPS,
            indexes: R::INDEXES,
            key_words: R::Key::WORDS,
            key_widths: R::Key::WIDTHS,
            show_key: R::Key::show,
            ordered: R::Index::ORDERED,
            image_words: image.words().len(),
            long: R::LONG,
            is_plain_image: R::Image::is_plain(Private),
        }
    }
}

const fn has_codec(fields: &[FieldInfo]) -> bool {
    let mut index = 0;
    while index < fields.len() {
        if fields[index].check.is_some() || fields[index].long_check.is_some() {
            return true;
        }
        index += 1;
    }
    false
}

/// Returns the schema of a derived row type: a hash of `texts`, which are the declaration as
/// written, of the [`Key::KEY_LAYOUT`] of the key, and of `layouts`, which are the columns'
/// [`Field::LAYOUT`](super::field::Field::LAYOUT).
#[doc(hidden)]
pub const fn schema_hash<R: Record>(texts: &[&str], layouts: &[u64]) -> u64 {
    mix(mix(hash_texts(texts), R::Key::KEY_LAYOUT), hash_numbers(layouts))
}

/// Returns the [`Key::KEY_LAYOUT`] of a derived struct: a hash of `texts`, which are the names and
/// types of its components as written, and of `layouts`, which are those of the components.
#[doc(hidden)]
pub const fn key_layout(texts: &[&str], layouts: &[u64]) -> u64 {
    mix(hash_texts(texts), hash_numbers(layouts))
}

const fn hash_texts(texts: &[&str]) -> u64 {
    let (mut hash, mut index) = (HASH_SEED, 0);
    while index < texts.len() {
        hash = mix_text(hash, texts[index]);
        index += 1;
    }
    hash
}

const fn default_schema(key_layout: u64, groups: &[Group]) -> u64 {
    let (mut hash, mut index) = (mix_text(HASH_SEED ^ key_layout, "key"), 0);
    while index < groups.len() {
        hash = mix_text(hash ^ groups[index].words as u64, groups[index].name);
        index += 1;
    }
    hash
}

/// Writes the columns of a row outside the key to an image of zeros, and returns the words. `sink`
/// keeps the bytes of columns of any length, and its error is returned.
///
/// # Panics
/// If the image has another number of words than the groups. When the table was created,
/// [`Buffer::words`] returned the right number.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn store_in<'a, R: Record>(
    row: &R,
    image: &'a mut R::Image,
    sink: &mut impl LongSink,
) -> Result<&'a [u64], Abort> {
    let words = image.words();
    assert!(
        words.len() == const { image_words(R::GROUPS) },
        "the image of a row has another number of words than before"
    );
    if R::LONG.is_empty() {
        row.store(&mut RowWriter::new(words));
        return Ok(words);
    }
    let mut long = LongWriter::new(R::LONG, sink);
    row.store(&mut RowWriter::with_long(words, &mut long));
    long.finish(words)?;
    Ok(words)
}
