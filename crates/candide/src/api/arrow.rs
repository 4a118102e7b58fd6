//! Rows as record batches of Apache Arrow: the feature `arrow`.

#![forbid(unsafe_code)]

use super::row_values::for_each_long_row;
use super::table::Table;
use crate::catalog::schema_of;
use crate::engine::{Protocol, TableCore};
use crate::error::{Error, StreamError};
use crate::schema::{Record, RowType};
use crate::shared::Inner;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringBuilder,
    StringDictionaryBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use candide_log::format::long_row::LongRow;
use candide_log::schema::{FieldPlace, FieldSchema, TableSchema, TypeSchema, Value};
use candide_log::text::json_of;
use std::marker::PhantomData;
use std::sync::Arc;

/// The largest number of rows of a record batch.
const ROWS_AT_ONCE: usize = 8_192;
/// The number of words of values of any length from which on a record batch has no more rows. With
/// the row behind it, a column has less than the 2<sup>31</sup> bytes that Arrow counts.
const VALUE_WORDS_AT_ONCE: usize = 1 << 23;

impl<R: Record, P: Protocol> Table<R, P> {
    /// Returns the schema of the table's record batches: a column for each field, those of the key
    /// included, in the order of their declaration. Exists with the cargo feature `arrow`.
    ///
    /// | field | column |
    /// |---|---|
    /// | `bool`, numbers up to 64 bits | of the same type |
    /// | texts, `String`, `char` | `Utf8` |
    /// | `Vec<u8>` | `Binary` |
    /// | [`Bytes<N>`](crate::Bytes), `u128`, `i128`, types that do not describe themselves | `FixedSizeBinary`; numbers with their highest byte first |
    /// | enums without data | `Dictionary(Int32, Utf8)` |
    /// | an option of one of these | nullable |
    /// | arrays, structs, enums with data, options of options | `Utf8`: JSON, as [`Table::export_json`] writes it |
    pub fn arrow_schema(&self) -> SchemaRef {
        let table = schema_of(&self.core().name, &RowType::of::<R>());
        Columns::new(&table).schema
    }

    /// Passes all rows to `each` as record batches of at most 8,192 rows, in no particular order;
    /// returns the number of rows. A batch that has 64 MiB of strings and bytes of any length has
    /// no more rows. No transaction may run meanwhile. Exists with the cargo feature `arrow`.
    ///
    /// # Errors
    /// [`Error::NotQuiescent`] if transactions were running or have run meanwhile.
    /// [`StreamError::Format`] if words are no values of their columns, or if the row type does not
    /// describe its fields ([`RowMeta::FIELDS`](crate::schema::RowMeta::FIELDS)).
    pub fn export_arrow(&self, mut each: impl FnMut(RecordBatch)) -> Result<u64, StreamError> {
        let table = schema_of(&self.core().name, &RowType::of::<R>());
        if table.fields.is_empty() {
            let name = table.row_type;
            let what = format!("row type {name} does not describe its fields");
            return Err(StreamError::Format(what));
        }
        export(self.inner(), self.core(), Columns::new(&table), &mut each)
    }
}

/// Passes all rows of a table to `each`.
fn export<P: Protocol>(
    inner: &Inner<P>,
    table: &TableCore,
    mut columns: Columns<'_>,
    each: &mut dyn FnMut(RecordBatch),
) -> Result<u64, StreamError> {
    let (mut total, mut failed) = (0, None);
    let commits = inner.stats().commits;
    let mut pass = |columns: &mut Columns<'_>| match columns.take() {
        Ok(batch) => {
            each(batch);
            None
        }
        Err(what) => Some(what),
    };
    for_each_long_row(inner, table, &mut |row| {
        if failed.is_some() {
            return;
        }
        columns.rows.push(row);
        total += 1;
        if columns.rows.is_full() {
            failed = pass(&mut columns);
        }
    })?;
    if let Some(what) = failed {
        return Err(StreamError::Format(what));
    }
    if !inner.is_quiescent() || inner.stats().commits != commits {
        return Err(Error::NotQuiescent.into());
    }
    if columns.rows.count > 0
        && let Some(what) = pass(&mut columns)
    {
        return Err(StreamError::Format(what));
    }
    Ok(total)
}

/// The words of rows, one row after another: first those of the key.
struct Rows {
    key_words: usize,
    /// The number of words of a row with its key.
    all_words: usize,
    words: Vec<u64>,
    /// The words of the rows' values, and their ends, one for each row; none if rows have none.
    values: Vec<u64>,
    value_ends: Vec<usize>,
    count: usize,
}

impl Rows {
    fn new(table: &TableSchema) -> Rows {
        let key_words = table.key_words.into();
        let all_words = key_words + table.row_words();
        let words = Vec::with_capacity(all_words * ROWS_AT_ONCE);
        let (values, value_ends) = (Vec::new(), Vec::new());
        Rows { key_words, all_words, words, values, value_ends, count: 0 }
    }

    fn push(&mut self, row: LongRow<'_>) {
        self.words.extend_from_slice(row.key);
        self.words.extend_from_slice(row.words);
        self.values.extend_from_slice(row.value_words());
        self.value_ends.push(self.values.len());
        self.count += 1;
    }

    /// Returns whether no more rows belong to the batch.
    fn is_full(&self) -> bool {
        self.count == ROWS_AT_ONCE || self.values.len() >= VALUE_WORDS_AT_ONCE
    }

    fn clear(&mut self) {
        self.words.clear();
        self.values.clear();
        self.value_ends.clear();
        self.count = 0;
    }

    /// Returns all rows.
    fn split(&self) -> impl Iterator<Item = LongRow<'_>> {
        let mut begin = 0;
        self.words.chunks_exact(self.all_words).zip(&self.value_ends).map(move |(row, end)| {
            let (key, words) = row.split_at(self.key_words);
            let values = &self.values[std::mem::replace(&mut begin, *end)..*end];
            LongRow::of(key, words, values).expect("the values of a row")
        })
    }
}

/// The columns of record batches, and the rows of the next batch. Rows are collected as words, and
/// a column goes through all of them at once.
struct Columns<'a> {
    table: &'a TableSchema,
    schema: SchemaRef,
    columns: Vec<Box<dyn Column>>,
    rows: Rows,
}

/// A column of record batches.
trait Column {
    /// Returns the values of rows.
    fn values(&mut self, table: &TableSchema, rows: &Rows) -> Result<ArrayRef, String>;
}

impl<'a> Columns<'a> {
    fn new(table: &'a TableSchema) -> Columns<'a> {
        let columns = table.fields.iter().map(|field| column_of(table, field));
        let (types, columns): (Vec<DataType>, Vec<_>) = columns.unzip();
        let fields = table.fields.iter().zip(types).map(|(field, ty)| {
            let is_nullable = matches!(&field.ty, TypeSchema::Option(_)) && !is_json(&field.ty);
            Field::new(&field.name, ty, is_nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Columns { table, schema, columns, rows: Rows::new(table) }
    }

    /// Returns the rows that have been collected, and forgets them.
    fn take(&mut self) -> Result<RecordBatch, String> {
        let arrays = self.columns.iter_mut().map(|column| column.values(self.table, &self.rows));
        let arrays = arrays.collect::<Result<_, _>>()?;
        self.rows.clear();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays);
        Ok(batch.expect("columns of the schema's types"))
    }
}

/// Returns whether values of a type are JSON.
fn is_json(ty: &TypeSchema) -> bool {
    match ty {
        TypeSchema::Option(inner) => matches!(**inner, TypeSchema::Option(_)) || is_json(inner),
        TypeSchema::Enum(of) => of.variants.iter().any(|variant| !variant.parts.is_empty()),
        TypeSchema::Array(..) | TypeSchema::Struct(_) => true,
        _ => false,
    }
}

/// Returns the type of a field's column, and the column without rows.
fn column_of(table: &TableSchema, field: &FieldSchema) -> (DataType, Box<dyn Column>) {
    let (inner, is_optional) = match &field.ty {
        TypeSchema::Option(inner) if !is_json(&field.ty) => (&**inner, true),
        ty => (ty, false),
    };
    let (bits, ty) = (inner.bits(), inner);
    let word = || WordAt::of(table, field, bits.unwrap_or(64), is_optional);
    match ty {
        TypeSchema::Bool => (DataType::Boolean, Box::new(Flags(word()))),
        TypeSchema::Unsigned(8) => number::<UInt8Type>(word(), |word| word as u8),
        TypeSchema::Unsigned(16) => number::<UInt16Type>(word(), |word| word as u16),
        TypeSchema::Unsigned(32) => number::<UInt32Type>(word(), |word| word as u32),
        TypeSchema::Unsigned(64) => number::<UInt64Type>(word(), |word| word),
        TypeSchema::Signed(8) => number::<Int8Type>(word().flipped(7), |word| word as i8),
        TypeSchema::Signed(16) => number::<Int16Type>(word().flipped(15), |word| word as i16),
        TypeSchema::Signed(32) => number::<Int32Type>(word().flipped(31), |word| word as i32),
        TypeSchema::Signed(64) => number::<Int64Type>(word().flipped(63), |word| word as i64),
        TypeSchema::Float(32) if !field.is_key() => {
            number::<Float32Type>(word(), |word| f32::from_bits(word as u32))
        }
        TypeSchema::Float(64) if !field.is_key() => number::<Float64Type>(word(), f64::from_bits),
        _ => {
            let kind = Kind::of(inner);
            let ty = kind.data_type();
            (ty, Box::new(Others { field: field.clone(), kind }))
        }
    }
}

/// The place of a value of at most a word.
#[derive(Debug, Clone, Copy)]
struct WordAt {
    /// The word of the row with its key.
    word: usize,
    shift: u32,
    mask: u64,
    /// The bits that are inverted, so that negative numbers of keys come first.
    flip: u64,
    /// The word and the bit by which an optional value is there.
    presence: Option<(usize, u32)>,
    is_key: bool,
}

impl WordAt {
    fn of(table: &TableSchema, field: &FieldSchema, bits: u64, is_optional: bool) -> WordAt {
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let (word, shift, is_key) = match field.place {
            FieldPlace::Key { word } => (usize::from(word), 0, true),
            FieldPlace::Column { shift, .. } => {
                let word = table.place_in_row(field).unwrap_or(0);
                (usize::from(table.key_words) + word, u32::from(shift), false)
            }
        };
        let whole = WordAt { is_key, word, shift, mask, flip: 0, presence: None };
        match is_optional {
            false => whole,
            true if is_key || bits >= 64 => {
                WordAt { word: word + 1, presence: Some((word, shift)), ..whole }
            }
            true => WordAt { shift: shift + 1, presence: Some((word, shift)), ..whole },
        }
    }

    /// Inverts the highest bit of a key.
    fn flipped(self, bit: u32) -> WordAt {
        WordAt { flip: if self.is_key { 1 << bit } else { 0 }, ..self }
    }

    /// Returns the values of rows. Those that are not there are arbitrary.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn values<T>(self, rows: &Rows, convert: impl Fn(u64) -> T) -> impl Iterator<Item = T> {
        let WordAt { word, shift, mask, flip, .. } = self;
        let words = rows.words[word..].iter().step_by(rows.all_words);
        words.map(move |word| convert((word >> shift & mask) ^ flip))
    }

    /// Returns whether each value is there; `None` if the values are not optional.
    fn are_there(self, rows: &Rows) -> Option<Vec<bool>> {
        let (word, bit) = self.presence?;
        let words = rows.words[word..].iter().step_by(rows.all_words);
        Some(words.map(|word| word >> bit & 1 != 0).collect())
    }
}

/// A column of truth values.
struct Flags(WordAt);

impl Column for Flags {
    fn values(&mut self, _: &TableSchema, rows: &Rows) -> Result<ArrayRef, String> {
        let flags: Vec<bool> = self.0.values(rows, |word| word != 0).collect();
        Ok(match self.0.are_there(rows) {
            None => Arc::new(BooleanArray::from(flags)),
            Some(are_there) => {
                let mut builder = BooleanBuilder::with_capacity(flags.len());
                builder.append_values(&flags, &are_there).map_err(|error| error.to_string())?;
                Arc::new(builder.finish())
            }
        })
    }
}

/// A column of numbers of at most 64 bits.
struct Numbers<T, F> {
    at: WordAt,
    convert: F,
    of: PhantomData<T>,
}

fn number<T: ArrowPrimitiveType>(
    at: WordAt,
    convert: impl Fn(u64) -> T::Native + 'static,
) -> (DataType, Box<dyn Column>) {
    (T::DATA_TYPE, Box::new(Numbers::<T, _> { at, convert, of: PhantomData }))
}

impl<T: ArrowPrimitiveType, F: Fn(u64) -> T::Native> Column for Numbers<T, F> {
    fn values(&mut self, _: &TableSchema, rows: &Rows) -> Result<ArrayRef, String> {
        let values = self.at.values(rows, &self.convert);
        Ok(match self.at.are_there(rows) {
            None => Arc::new(PrimitiveArray::<T>::from_iter_values(values)),
            Some(are_there) => {
                let mut builder = PrimitiveBuilder::<T>::with_capacity(are_there.len());
                builder.append_values(&values.collect::<Vec<_>>(), &are_there);
                Arc::new(builder.finish())
            }
        })
    }
}

/// A column of values that take more than a word, or that need a name.
struct Others {
    field: FieldSchema,
    kind: Kind,
}

/// The values of [`Others`].
enum Kind {
    Texts(StringBuilder),
    LongBytes(BinaryBuilder),
    Names(StringDictionaryBuilder<Int32Type>),
    Bytes(i32, FixedSizeBinaryBuilder),
    Floats32(PrimitiveBuilder<Float32Type>),
    Floats64(PrimitiveBuilder<Float64Type>),
}

impl Kind {
    fn of(ty: &TypeSchema) -> Kind {
        let bytes =
            |count: u64| Kind::Bytes(count as i32, FixedSizeBinaryBuilder::new(count as i32));
        match ty {
            TypeSchema::Float(32) => Kind::Floats32(PrimitiveBuilder::new()),
            TypeSchema::Float(_) => Kind::Floats64(PrimitiveBuilder::new()),
            TypeSchema::Bytes(count) => bytes((*count).into()),
            TypeSchema::LongBytes => Kind::LongBytes(BinaryBuilder::new()),
            TypeSchema::Unsigned(_) | TypeSchema::Signed(_) => bytes(16),
            TypeSchema::Opaque { .. } => bytes(8 * ty.words().or(ty.key_words()).unwrap_or(0)),
            TypeSchema::Enum(_) if !is_json(ty) => Kind::Names(StringDictionaryBuilder::new()),
            _ => Kind::Texts(StringBuilder::new()),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Kind::Texts(_) => DataType::Utf8,
            Kind::LongBytes(_) => DataType::Binary,
            Kind::Names(_) => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Kind::Bytes(count, _) => DataType::FixedSizeBinary(*count),
            Kind::Floats32(_) => DataType::Float32,
            Kind::Floats64(_) => DataType::Float64,
        }
    }

    fn push_none(&mut self) {
        match self {
            Kind::Texts(texts) => texts.append_null(),
            Kind::LongBytes(bytes) => bytes.append_null(),
            Kind::Names(names) => names.append_null(),
            Kind::Bytes(_, bytes) => bytes.append_null(),
            Kind::Floats32(floats) => floats.append_null(),
            Kind::Floats64(floats) => floats.append_null(),
        }
    }
}

impl Column for Others {
    fn values(&mut self, table: &TableSchema, rows: &Rows) -> Result<ArrayRef, String> {
        rows.split().try_for_each(|row| self.push(table, row))?;
        Ok(match &mut self.kind {
            Kind::Texts(texts) => Arc::new(texts.finish()),
            Kind::LongBytes(bytes) => Arc::new(bytes.finish()),
            Kind::Names(names) => Arc::new(names.finish()),
            Kind::Bytes(_, bytes) => Arc::new(bytes.finish()),
            Kind::Floats32(floats) => Arc::new(floats.finish()),
            Kind::Floats64(floats) => Arc::new(floats.finish()),
        })
    }
}

impl Others {
    /// Appends the value of a row.
    fn push(&mut self, table: &TableSchema, row: LongRow<'_>) -> Result<(), String> {
        let Others { field, kind } = self;
        let mut value = row.value_of(table, field)?;
        if !is_json(&field.ty) {
            value = match value {
                Value::None => {
                    kind.push_none();
                    return Ok(());
                }
                Value::Some(value) => *value,
                value => value,
            };
        }
        match (kind, value) {
            (Kind::Texts(texts), Value::Text(text)) => texts.append_value(text),
            (Kind::Texts(texts), Value::Char(one)) => {
                texts.append_value(one.encode_utf8(&mut [0; 4]));
            }
            (Kind::Texts(texts), value) => texts.append_value(json_of(&field.ty, &value)),
            (Kind::LongBytes(to), Value::Bytes(bytes)) => to.append_value(bytes),
            (Kind::Names(names), Value::Parts(name, _)) => names.append_value(name),
            (Kind::Floats32(floats), Value::Float32(float)) => floats.append_value(float),
            (Kind::Floats64(floats), Value::Float64(float)) => floats.append_value(float),
            (Kind::Bytes(_, bytes), value) => {
                let value = match value {
                    Value::Bytes(bytes) => bytes,
                    Value::Unsigned(number) => number.to_be_bytes().to_vec(),
                    Value::Signed(number) => number.to_be_bytes().to_vec(),
                    Value::Words(words) => {
                        words.iter().flat_map(|word| word.to_be_bytes()).collect()
                    }
                    other => return Err(format!("field {:?} is {other}", field.name)),
                };
                bytes.append_value(value).map_err(|error| error.to_string())?;
            }
            (_, other) => return Err(format!("field {:?} is {other}", field.name)),
        }
        Ok(())
    }
}
