//! Converting columns of any length to one another, and from and to texts and bytes that lie in the
//! words of a row.

use super::conversion_step::{check_length, copy, get, put, text_bits};
use super::types::TypeSchema;
use std::borrow::Cow;

/// The bits of a word.
const WORD: u64 = 64;

/// The bytes of a column, if it has a value.
pub(super) type Bytes<'a> = Option<Cow<'a, [u8]>>;

/// The way in which a text becomes a text, or bytes become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LongStep {
    from: Form,
    to: Form,
}

/// How a column has bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    kind: Kind,
    is_optional: bool,
    is_text: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Outside of the row.
    Long,
    /// A text of at most so many bytes.
    Text(u32),
    /// So many bytes.
    Bytes(u32),
}

impl Form {
    fn of(ty: &TypeSchema) -> Option<Form> {
        let form = |kind, is_text| Some(Form { kind, is_optional: false, is_text });
        match ty {
            TypeSchema::LongText | TypeSchema::Json => form(Kind::Long, true),
            TypeSchema::LongBytes => form(Kind::Long, false),
            TypeSchema::Text(most) => form(Kind::Text(*most), true),
            TypeSchema::Bytes(count) => form(Kind::Bytes(*count), false),
            TypeSchema::Option(inner) => match Form::of(inner)? {
                Form { is_optional: true, .. } => None,
                form => Some(Form { is_optional: true, ..form }),
            },
            _ => None,
        }
    }
}

fn is_json(ty: &TypeSchema) -> bool {
    match ty {
        TypeSchema::Option(inner) => is_json(inner),
        ty => *ty == TypeSchema::Json,
    }
}

impl LongStep {
    /// Returns the step from one type to another. `None` if neither has values of any length.
    ///
    /// # Errors
    /// There is none; the text says so.
    pub(super) fn between(from: &TypeSchema, to: &TypeSchema) -> Result<Option<LongStep>, String> {
        if !from.is_value() && !to.is_value() {
            return Ok(None);
        }
        match (Form::of(from), Form::of(to)) {
            (Some(old), Some(new))
                if old.is_text == new.is_text && (is_json(from) || !is_json(to)) =>
            {
                Ok(Some(LongStep { from: old, to: new }))
            }
            _ => Err(format!("`{from}` does not become `{to}`")),
        }
    }

    /// Converts a column. `from` and `to` are the words of the rows, with the bits where the
    /// columns begin; the new bits are zeros before. `value` is what the old row has outside.
    /// Returns what the new row has there.
    pub(super) fn convert<'a>(
        &self,
        (words, from): (&[u64], u64),
        value: Bytes<'a>,
        (out, to): (&mut [u64], u64),
    ) -> Result<Bytes<'a>, String> {
        let LongStep { from: old, to: new } = *self;
        let bytes = match old.read((words, from), value)? {
            Some(bytes) => bytes,
            None if new.is_optional => return Ok(None),
            None => return Err("None is no value any more".to_owned()),
        };
        if new.kind == Kind::Long {
            return Ok(Some(bytes).filter(|bytes| new.is_optional || !bytes.is_empty()));
        }
        let begin = if new.is_optional { to + WORD } else { to };
        if new.is_optional {
            put(out, to, 1, 1);
        }
        let length = bytes.len() as u64;
        match new.kind {
            Kind::Text(most) => {
                check_length(length, most)?;
                put(out, begin + text_bits(most), WORD, length);
            }
            Kind::Bytes(count) if length != u64::from(count) => {
                return Err(format!("{length} bytes do not fit Bytes<{count}>"));
            }
            _ => {}
        }
        copy(&words_of(&bytes), 0, (out, begin), length.div_ceil(8) * WORD);
        Ok(None)
    }
}

impl Form {
    /// Returns the bytes of a column that begins at a bit of a row. `None` if it is optional, and
    /// has none.
    fn read<'a>(
        self,
        (words, begin): (&[u64], u64),
        value: Bytes<'a>,
    ) -> Result<Bytes<'a>, String> {
        if self.kind == Kind::Long {
            return Ok(value.or((!self.is_optional).then_some(Cow::Borrowed(&[]))));
        }
        if self.is_optional && get(words, begin, 1) == 0 {
            return Ok(None);
        }
        let begin = if self.is_optional { begin + WORD } else { begin };
        let length = match self.kind {
            Kind::Text(most) => {
                let length = get(words, begin + text_bits(most), WORD);
                check_length(length, most)?;
                length as usize
            }
            Kind::Bytes(count) => count as usize,
            Kind::Long => 0,
        };
        let own = words.get((begin / WORD) as usize..).unwrap_or_default();
        let mut bytes: Vec<u8> =
            own.iter().take(length.div_ceil(8)).flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        match self.is_text && str::from_utf8(&bytes).is_err() {
            true => Err("the text is not UTF-8".to_owned()),
            false => Ok(Some(Cow::Owned(bytes))),
        }
    }
}

/// Returns bytes as words, with zeros behind them.
fn words_of(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
