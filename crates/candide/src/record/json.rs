//! Columns of JSON: texts of any length, of which `serde_json` makes values.

#![forbid(unsafe_code)]

use super::long;
use super::long_columns::{Bytes, Long, long_columns, text};
use crate::error::Abort;
use crate::schema::codec::Undecoded;
use crate::schema::column_type::ColumnType;
use crate::schema::field_type::LongCheck;
use crate::schema::hash::hash_numbers;
use crate::schema::packing::Size;
use crate::schema::{
    Column, ColumnKind, FieldType, LongColumn, LongUpdate, LongWord, Pinned, Place, Projection,
    Record, RowMeta, RowReader, RowWriter, Sink, Unit, Updatable, Words,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// A value that a column stores as JSON, in a text as a column of `String` does. With the cargo
/// feature `json`.
///
/// A list of any length is `Json<Vec<T>>`; `T` implements the traits of `serde`.
///
/// ```
/// use candide::{Abort, Database, Json, Record};
///
/// #[derive(Record, Clone)]
/// struct Page {
///     #[key]
///     id: u64,
///     tags: Json<Vec<String>>,
/// }
///
/// let db = Database::new();
/// let pages = db.table::<Page>("pages")?;
/// let tags = ["old", "french"].map(str::to_string).to_vec();
/// db.run(|tx| {
///     pages.insert(tx, Page { id: 1, tags: Json(tags.clone()) })?;
///     pages.modify(tx, 1, Page::TAGS, |tags| tags.retain(|tag| tag != "old"))?;
///     assert_eq!(*pages.read(tx, 1, Page::TAGS)?, ["french"]);
///     pages.read_with(tx, 1, Page::TAGS, |text| assert_eq!(text, r#"["french"]"#))?;
///     pages.update(tx, 1, Page::TAGS.set(&tags))
/// })?;
/// # Ok::<(), candide::Error>(())
/// ```
///
/// Files, exports and the tools have the text, and describe the column as one of `String`: so the
/// type of a column becomes `Json<T>`, another `T`, or `String`, without a migration. The text of
/// rows that were made without the column is empty, and is read as `null`.
///
/// A value that cannot be serialized (its `Serialize` fails, or it is a map whose keys are no
/// strings) is not stored: the operation fails with [`Abort::Unencodable`]. A read of a text that
/// is none of a `T` fails with [`Abort::Undecodable`]. For both,
/// [`last_outcome`](crate::Session::last_outcome) names the table, the column, the key and the
/// reason. JSON has no infinite numbers: they are stored as `null`. There is a panic where there is
/// one for a [`Codec`](crate::Codec) that refuses what is stored.
///
/// A read of the column parses the text once, a read of the [`Whole`](crate::Whole) row twice; a
/// closure ([`Table::read_with`](crate::Table::read_with)) gets the text as it is. A change by
/// `modify` serializes the value twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Json<T> {
        Json(value)
    }
}

fn text_of(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// Returns the bytes of a value, or others if none are wanted.
fn bytes_of(value: &impl Serialize, wanted: bool) -> Result<Bytes<'_>, String> {
    let text = if wanted { text_of(value)? } else { String::new() };
    Ok(Some(Cow::Owned(text.into_bytes())))
}

fn value_of<T: DeserializeOwned>(bytes: &[u8]) -> Result<Json<T>, String> {
    serde_json::from_slice(bytes).map(Json).map_err(|error| error.to_string())
}

impl<T: Serialize + DeserializeOwned> Long for Json<T> {
    type View<'v> = &'v str;
    const CODED: bool = true;

    fn bytes(&self, wanted: bool) -> Result<Bytes<'_>, String> {
        bytes_of(&self.0, wanted)
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<Json<T>, String> {
        value_of(bytes.filter(|bytes| !bytes.is_empty()).unwrap_or(b"null"))
    }

    fn view(bytes: Option<&[u8]>) -> &str {
        bytes.map_or("", text)
    }
}

impl<T: Serialize + DeserializeOwned> Long for Option<Json<T>> {
    type View<'v> = Option<&'v str>;
    const CODED: bool = true;

    fn bytes(&self, wanted: bool) -> Result<Bytes<'_>, String> {
        self.as_ref().map_or(Ok(None), |json| bytes_of(&json.0, wanted))
    }

    fn of_bytes(bytes: Option<&[u8]>) -> Result<Option<Json<T>>, String> {
        bytes.map(value_of).transpose()
    }

    fn view(bytes: Option<&[u8]>) -> Option<&str> {
        bytes.map(text)
    }
}

long_columns! {
    [T: Serialize + DeserializeOwned + Send + Sync + 'static] Json<T>, 1, &FieldType::LongText;
    [T: Serialize + DeserializeOwned + Send + Sync + 'static] Option<Json<T>>, 3,
        &FieldType::Optional(&FieldType::LongText);
}

/// The text of a value, or none of an option; or the reason why there is none.
type Made = Result<Option<String>, String>;

fn made_bytes(made: &Made) -> Result<Option<&[u8]>, &str> {
    made.as_ref().map(|text| text.as_deref().map(str::as_bytes)).map_err(String::as_str)
}

impl<R, T, A> Column<R, Json<T>, A>
where
    R: Record,
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
    A: Updatable,
{
    /// Sets the column to a value. If the value cannot be serialized, the operation that takes the
    /// update fails with [`Abort::Unencodable`]; if its text has more than 16 MiB, with
    /// [`Abort::TextTooLong`].
    pub fn set(self, value: &T) -> LongUpdate<R, Made> {
        LongUpdate::new((self.long_place(), self.called()), text_of(value).map(Some), made_bytes)
    }
}

impl<R, T, A> Column<R, Option<Json<T>>, A>
where
    R: Record,
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
    A: Updatable,
{
    /// Sets the column to a value, or to none. If the value cannot be serialized, the operation
    /// that takes the update fails with [`Abort::Unencodable`]; if its text has more than 16 MiB,
    /// with [`Abort::TextTooLong`].
    pub fn set(self, value: Option<&T>) -> LongUpdate<R, Made> {
        let made = value.map(text_of).transpose();
        LongUpdate::new((self.long_place(), self.called()), made, made_bytes)
    }
}
