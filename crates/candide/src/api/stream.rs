//! Export and import: the rows of a table as a stream of bytes.

#![forbid(unsafe_code)]

use super::row_values::for_each_long_row;
use super::session::Session;
use super::stream_words::{
    checksum, checksum_from, read_word, read_words, write_line, write_piece, write_words,
};
use super::table::Table;
use crate::catalog::schema_of;
use crate::engine::{Protocol, TableCore};
use crate::error::{Abort, Error, StreamError};
use crate::handle::Handle;
use crate::schema::{Record, RowType, image_words};
use crate::shared::Inner;
use crate::txn::Tx;
use candide_log::LongColumns;
use candide_log::format::long_row::LongRow;
use candide_log::format::manifest::{table_bytes, table_of_bytes};
use candide_log::format::value::VALUE_BYTES_MAX;
use candide_log::schema::{FieldPlace, FieldSchema, Sides, TableSchema};
use std::io::{self, Read, Write};

const MAGIC: u64 = u64::from_le_bytes(*b"candide\x04");
/// The first word of streams of rows with columns of any length.
const MAGIC_WITH_VALUES: u64 = u64::from_le_bytes(*b"candide\x05");
/// The first word of streams with texts of fields.
const MAGIC_WITH_TEXTS: u64 = u64::from_le_bytes(*b"candide\x03");
/// The first word of streams without texts of fields.
const MAGIC_WITHOUT_FIELDS: u64 = u64::from_le_bytes(*b"candide\x02");
/// The largest number of bytes of the description of a table, or of the descriptions of all its
/// fields. No row type has one of this length.
const DESCRIPTION_BYTES_MAX: u64 = 1 << 24;
/// The number of rows in one piece of the stream. The last piece may have fewer rows.
const ROWS_AT_ONCE: usize = 1_024;
/// The number of words from which on a piece of rows with columns of any length has no more rows.
const WORDS_AT_ONCE: usize = 1 << 16;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Writes all rows to a stream, in no particular order; returns their number. No transaction
    /// may run meanwhile.
    ///
    /// The call writes small pieces; a [`BufWriter`](std::io::BufWriter) combines them into large
    /// ones.
    ///
    /// # Format
    /// Numbers are 64-bit words in little-endian order.
    ///
    /// ```text
    /// | "candide\x04" | schema | words of a key | words of a row outside its key | bytes of the description | description | checksum |
    /// | n > 0 | n times: key words, other words | checksum |        any number of times
    /// | 0 | number of rows in all | checksum |
    /// ```
    ///
    /// If a column is a `String` or a `Vec<u8>`, or an option of one, the stream begins with
    /// `"candide\x05"`, and the line of rows is
    ///
    /// ```text
    /// | n > 0 | words of the rows | checksum | n times: words of the values, key words, other words, values | checksum |
    /// ```
    ///
    /// The words of such columns are zeros. Each that has a value has in `values`, in the order of
    /// their words, a word and the bytes, with zeros in the last word: in this word, the number of
    /// bytes is in bits 0 to 31, the number of the column's word in the row in bits 32 to 47, and
    /// bit 63 is set in the last one. A column without a value is empty, or `None`.
    ///
    /// The key words are those of [`Key::words`](crate::schema::Key::words), the other words are
    /// those of [`Record::store`]. The description is that of a table in the files of a database,
    /// by [`RowMeta::FIELDS`](crate::schema::RowMeta::FIELDS), and the schema is the hash in it;
    /// zeros fill the last word. A stream can be read as long as the row type keeps its fields'
    /// names, types and places, on every machine and with every compiler. If a stream begins with
    /// `"candide\x03"`, the schema is [`RowMeta::SCHEMA`](crate::schema::RowMeta::SCHEMA), and
    /// texts of the fields take the place of the description; if it begins with `"candide\x02"`,
    /// the first line ends after its fourth word. Another format would begin with another word. A
    /// checksum covers all words before it on its line. The checksum begins with `sum =
    /// 0xcbf29ce484222325`; each word then sets `sum = rotate_left((sum ^ word) * 0x100000001b3,
    /// 29)`, modulo 2<sup>64</sup>.
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if transactions were running or have run meanwhile, and errors of
    /// writing. The stream written so far is then incomplete, and import refuses it.
    pub fn export(&self, to: &mut impl Write) -> Result<u64, StreamError> {
        let shape = Shape::of(&RowType::of::<R>(), &self.core().name);
        export(self.inner(), self.core(), &shape, to)
    }

    /// Inserts the rows of a stream that [`Table::export`] has written, in the format described
    /// there; returns the number of rows. Each piece of the stream is inserted in a transaction of
    /// its own, after its checksum has been verified.
    ///
    /// The call reads pieces of some kilobytes, and single words between them; a
    /// [`BufReader`](std::io::BufReader) combines these reads into large ones.
    ///
    /// # Errors
    /// [`StreamError::Format`], [`StreamError::Schema`], errors of reading,
    /// [`Error::SecondSession`]. [`Error::Load`] if a row cannot be inserted (see
    /// [`Table::insert`]); the number of rows in this error is that of all earlier pieces, which
    /// have been inserted.
    ///
    /// # Panics
    /// If words of the stream are no value of the field's type. The error can occur if the stream
    /// was made by hand, or by a program in which types of the same names were different; the
    /// checksum does not detect it. A damaged [`Text`](crate::Text) panics only when it is used.
    pub fn import(&self, from: &mut impl Read) -> Result<u64, StreamError> {
        let shape = Shape::of(&RowType::of::<R>(), &self.core().name);
        let row_words = shape.key_words + shape.row_words;
        let insert = &mut |tx: &Tx<'_, P>, rows: &[u64]| self.insert_words(tx, rows, row_words);
        import(self.inner(), &shape, from, insert)
    }
}

/// The shape of a stream's rows, as the first line of the stream states it.
struct Shape {
    /// [`RowMeta::SCHEMA`](crate::schema::RowMeta::SCHEMA), by which streams of earlier versions recognise the row type.
    schema: u64,
    /// The number of words of a key, as [`Key::words`] returns them.
    key_words: usize,
    /// The number of words of a row outside its key.
    row_words: usize,
    /// The description of the table, and its columns of any length.
    table: TableSchema,
    long: LongColumns,
}

impl Shape {
    fn of(row: &RowType, table: &str) -> Shape {
        let (key_words, row_words) = (row.key_words, image_words(row.groups));
        let table = schema_of(table, row);
        let long = LongColumns::of(&table);
        Shape { schema: row.schema, key_words, row_words, table, long }
    }

    /// Returns the first word of a stream.
    fn magic(&self) -> u64 {
        if self.long.is_empty() { MAGIC } else { MAGIC_WITH_VALUES }
    }

    /// Returns the largest number of words of a piece of rows with columns of any length.
    fn piece_words_max(&self) -> usize {
        let of_values = self.long.places().count() * (1 + VALUE_BYTES_MAX / size_of::<u64>());
        WORDS_AT_ONCE + 1 + self.key_words + self.row_words + of_values
    }

    /// Checks that rows with this description are rows of the table.
    fn check(&self, found: &TableSchema) -> Result<(), StreamError> {
        let wanted = &self.table;
        let difference = match (found.fields.is_empty(), wanted.fields.is_empty()) {
            (true, true) if found.schema == wanted.schema => return Ok(()),
            (false, false) => found.differences(wanted, Sides::STREAM),
            _ => Vec::new(),
        };
        if difference.is_empty() && !found.fields.is_empty() && !wanted.fields.is_empty() {
            return Ok(());
        }
        Err(StreamError::Schema {
            wanted: wanted.schema,
            found: found.schema,
            difference: (!difference.is_empty()).then(|| difference.join("; ")),
        })
    }

    /// Describes the first field in which the rows of a stream differ from the row type. `found` is
    /// the texts of the stream's fields. `None` if the stream or the row type has no texts, or if
    /// the texts agree.
    fn difference(&self, found: &str) -> Option<String> {
        let wanted: Vec<String> = self.table.fields.iter().map(|field| self.text(field)).collect();
        let found: Vec<&str> = found.lines().collect();
        if found.is_empty() || wanted.is_empty() {
            return None;
        }
        let name = |field: &str| field.split(':').next().map(str::to_owned);
        let is_wanted = |field: &str| wanted.iter().any(|other| other == field);
        if let Some(field) = found.iter().find(|field| !is_wanted(field)) {
            return Some(match wanted.iter().find(|other| name(other) == name(field)) {
                Some(other) => format!("{field:?} in the stream, {other:?} in the table"),
                None => format!("the table has no field {field:?}"),
            });
        }
        let missing = wanted.iter().find(|field| !found.contains(&&***field));
        missing.map(|field| format!("the stream has no field {field:?}"))
    }

    /// Returns the text of a field as streams have it.
    fn text(&self, field: &FieldSchema) -> String {
        let ty: String = field.ty.to_string().split_whitespace().collect();
        let place = match field.place {
            FieldPlace::Key { .. } => "key".to_owned(),
            FieldPlace::Column { group, .. } => {
                format!("group {}", self.table.groups[usize::from(group)].0)
            }
        };
        format!("{}: {ty} ({place})", field.name)
    }
}

/// Writes all rows of a table, for [`Table::export`].
fn export<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    shape: &Shape,
    to: &mut dyn Write,
) -> Result<u64, StreamError> {
    let description = table_bytes(&shape.table)
        .map_err(|error| StreamError::Io(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let mut head = vec![
        shape.magic(),
        shape.table.schema,
        shape.key_words as u64,
        shape.row_words as u64,
        description.len() as u64,
    ];
    head.extend(description.chunks(size_of::<u64>()).map(|bytes| {
        let mut word = [0; size_of::<u64>()];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }));
    write_words(to, &head)?;
    write_words(to, &[checksum(&head)])?;
    // The first word is room for the number of rows.
    let (mut piece, mut count, mut total) = (vec![0], 0, 0);
    let has_values = !shape.long.is_empty();
    let mut written = Ok(());
    let commits = inner.stats().commits;
    let mut write = |count: usize, piece: &mut Vec<u64>| match has_values {
        true => write_piece(to, count, &piece[1..]),
        false => write_line(to, count, piece),
    };
    for_each_long_row(inner, table, &mut |row| {
        if written.is_err() {
            return;
        }
        if has_values {
            row.append_to(&mut piece);
        } else {
            piece.extend_from_slice(row.key);
            piece.extend_from_slice(row.words);
        }
        (count, total) = (count + 1, total + 1);
        if count == ROWS_AT_ONCE || has_values && piece.len() > WORDS_AT_ONCE {
            written = write(count, &mut piece);
            piece.truncate(1);
            count = 0;
        }
    })?;
    written?;
    if !inner.is_quiescent() || inner.stats().commits != commits {
        return Err(Error::NotQuiescent.into());
    }
    if count > 0 {
        write(count, &mut piece)?;
    }
    write_line(to, 0, &mut [0, total])?;
    to.flush()?;
    Ok(total)
}

/// A function that inserts the rows with these words.
pub(super) type InsertWords<'a, P> = dyn FnMut(&Tx<'_, P>, &[u64]) -> Result<(), Abort> + 'a;

/// Reads a stream that [`export`] has written, and calls `insert` with the words of the rows of
/// each piece.
fn import<P: Protocol>(
    inner: &Handle<P>,
    shape: &Shape,
    from: &mut dyn Read,
    insert: &mut InsertWords<'_, P>,
) -> Result<u64, StreamError> {
    read_head(shape, from)?;
    let mut session = Session::new(inner)?;
    let mut total = 0;
    loop {
        let line = match shape.long.is_empty() {
            true => read_line(shape, from, total)?,
            false => read_piece(shape, from, total)?,
        };
        let count = line[0];
        if count == 0 {
            let claimed = line[1];
            return match claimed == total {
                true => Ok(total),
                false => {
                    Err(StreamError::Format(format!("it states {claimed} rows but has {total}")))
                }
            };
        }
        let inserted = session.run_body(&mut |tx| insert(tx, &line[1..]));
        inserted.map_err(|cause| Error::Load { rows: total as usize, cause })?;
        total += count;
    }
}

/// Reads the first line of a stream, and checks that the stream's rows have this shape.
fn read_head(shape: &Shape, from: &mut dyn Read) -> Result<(), StreamError> {
    let mut head = Vec::new();
    read_words(from, 4, &mut head)?;
    let (magic, found) = (head[0], head[1]);
    let bytes = match magic {
        MAGIC | MAGIC_WITH_VALUES | MAGIC_WITH_TEXTS => read_description(from, &mut head)?,
        MAGIC_WITHOUT_FIELDS => Vec::new(),
        _ => return Err(StreamError::Format("it does not begin as an export does".into())),
    };
    if magic == MAGIC || magic == MAGIC_WITH_VALUES {
        let table = table_of_bytes(&bytes).map_err(|error| {
            StreamError::Format(format!("the description of its rows is wrong {error}"))
        })?;
        if table.schema != found {
            let what = "it has another hash than the description of its rows";
            return Err(StreamError::Format(what.into()));
        }
        shape.check(&table)?;
        if magic != shape.magic() {
            let what = "its first word is not that of such rows";
            return Err(StreamError::Format(what.into()));
        }
    } else if found != shape.schema {
        let difference = shape.difference(&String::from_utf8_lossy(&bytes));
        return Err(StreamError::Schema { wanted: shape.schema, found, difference });
    }
    if head[2..4] != [shape.key_words as u64, shape.row_words as u64] {
        return Err(StreamError::Format(
            "its rows have another size than their schema says".into(),
        ));
    }
    Ok(())
}

/// Reads the rest of a stream's first line, and returns the description of the stream's rows.
fn read_description(from: &mut dyn Read, head: &mut Vec<u64>) -> Result<Vec<u8>, StreamError> {
    let length = read_word(from)?;
    head.push(length);
    if length > DESCRIPTION_BYTES_MAX {
        return Err(StreamError::Format(format!(
            "a row has a description of {length} bytes; at most {DESCRIPTION_BYTES_MAX} are possible"
        )));
    }
    let (length, begin) = (length as usize, head.len());
    read_words(from, length.div_ceil(size_of::<u64>()), head)?;
    if read_word(from)? != checksum(head) {
        return Err(StreamError::Format("the checksum of its first line is wrong".into()));
    }
    Ok(head[begin..].iter().flat_map(|word| word.to_le_bytes()).take(length).collect())
}

/// Reads the line that follows `total` rows. Returns the number of rows in the line, followed by
/// their words; or zero, followed by the number of all rows.
fn read_line(shape: &Shape, from: &mut dyn Read, total: u64) -> Result<Vec<u64>, StreamError> {
    let mut line = vec![read_word(from)?];
    let count = line[0];
    if count > ROWS_AT_ONCE as u64 {
        return Err(StreamError::Format(format!(
            "a piece has {count} rows; at most {ROWS_AT_ONCE} are possible"
        )));
    }
    let words = if count == 0 { 1 } else { count as usize * (shape.key_words + shape.row_words) };
    read_words(from, words, &mut line)?;
    if read_word(from)? != checksum(&line) {
        return Err(StreamError::Format(format!(
            "the checksum after row {} is wrong",
            total + count
        )));
    }
    Ok(line)
}

/// As [`read_line`], for rows with columns of any length.
fn read_piece(shape: &Shape, from: &mut dyn Read, total: u64) -> Result<Vec<u64>, StreamError> {
    let wrong = |what: String| Err(StreamError::Format(what));
    let mut head = Vec::new();
    read_words(from, 2, &mut head)?;
    let (count, words, sum) = (head[0], head[1], checksum(&head));
    if read_word(from)? != sum {
        return wrong(format!("the checksum before row {} is wrong", total + 1));
    }
    if count == 0 {
        return Ok(head);
    }
    let most = shape.piece_words_max() as u64;
    if count > ROWS_AT_ONCE as u64 || words > most {
        return wrong(format!(
            "a piece has {count} rows of {words} words; at most {ROWS_AT_ONCE} rows of {most} words \
             are possible"
        ));
    }
    let mut line = vec![count];
    read_words(from, words as usize, &mut line)?;
    if read_word(from)? != checksum_from(checksum_from(sum, &[sum]), &line[1..]) {
        return wrong(format!("the checksum after row {} is wrong", total + count));
    }
    let mut rest = &line[1..];
    for number in total + 1..=total + count {
        let row = LongRow::take(rest, shape.key_words, shape.row_words);
        let checked = row.map_err(str::to_owned).and_then(|(row, behind)| {
            rest = behind;
            shape.long.check(0, row.words, row.values())
        });
        if let Err(what) = checked {
            return wrong(format!("row {number}: {what}"));
        }
    }
    match rest.is_empty() {
        true => Ok(line),
        false => wrong(format!("there are words behind row {}", total + count)),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[derive(crate::Record, Clone, Copy)]
    #[record(crate = crate)]
    #[allow(dead_code)]
    struct Sample {
        #[key]
        id: u64,
        a: i64,
        b: u8,
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let shape = Shape::of(&RowType::of::<Sample>(), "samples");
        let difference = |fields: &[&str]| shape.difference(&fields.join("\n")).unwrap_or_default();
        let [id, a, b] = ["id: u64 (key)", "a: i64 (group row)", "b: u8 (group row)"];
        for (fields, expected) in [
            (
                &[id, "a: i32 (group row)", b][..],
                r#""a: i32 (group row)" in the stream, "a: i64 (group row)" in the table"#,
            ),
            (
                &[id, a, "b: u8 (group cold)"],
                r#""b: u8 (group cold)" in the stream, "b: u8 (group row)" in the table"#,
            ),
            (&[id, a, b, "c: bool (group row)"], r#"the table has no field "c: bool (group row)""#),
            (&[id, a], r#"the stream has no field "b: u8 (group row)""#),
            // The texts agree, but a type of the same name has another layout. Below: a stream
            // without texts.
            (&[id, a, b], ""),
            (&[], ""),
        ] {
            assert_eq!(difference(fields), expected);
        }
    }
}
