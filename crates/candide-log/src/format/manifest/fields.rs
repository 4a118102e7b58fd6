//! Fields and their types as bytes of MANIFEST.

use super::texts::{put, put_text, take_text};
use crate::format::Malformed;
use crate::format::bytes::Reader;
use crate::schema::{
    EnumSchema, FieldPlace, FieldSchema, PartSchema, StructSchema, TYPE_DEPTH_MAX, TypeSchema,
    VariantSchema,
};

/// The flags of a field.
const IN_KEY: u64 = 1;
const HAS_DEFAULT: u64 = 2;

const OPAQUE: u64 = 0;
const BOOL: u64 = 1;
const UNSIGNED: u64 = 2;
const SIGNED: u64 = 3;
const FLOAT: u64 = 4;
const CHAR: u64 = 5;
const TEXT: u64 = 6;
const BYTES: u64 = 7;
const ENUM: u64 = 8;
const OPTION: u64 = 9;
const ARRAY: u64 = 10;
const STRUCT: u64 = 11;
const LONG_TEXT: u64 = 12;
const LONG_BYTES: u64 = 13;
const JSON: u64 = 14;

/// Returns the hash of fields: FNV-1a of their bytes without defaults.
pub fn fields_hash(fields: &[FieldSchema]) -> u64 {
    let mut bytes = Vec::new();
    fields.iter().for_each(|field| put_field(&mut bytes, field, false));
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes a field that has been checked.
pub(super) fn put_field(to: &mut Vec<u8>, field: &FieldSchema, with_default: bool) {
    let default = field.default.as_ref().filter(|_| with_default);
    put_text(to, &field.name);
    let flags = if default.is_some() { HAS_DEFAULT } else { 0 };
    match field.place {
        FieldPlace::Key { word } => {
            put(to, 1, flags | IN_KEY);
            put(to, 1, word.into());
        }
        FieldPlace::Column { group, word, shift } => {
            put(to, 1, flags);
            put(to, 2, group.into());
            put(to, 2, word.into());
            put(to, 1, shift.into());
        }
    }
    put_type(to, &field.ty);
    if let Some(default) = default {
        put(to, 4, default.len() as u64);
        to.extend_from_slice(default);
    }
}

fn put_type(to: &mut Vec<u8>, ty: &TypeSchema) {
    match ty {
        TypeSchema::Opaque { bits, key_words, layout } => {
            put(to, 1, OPAQUE);
            put(to, 4, (*bits).into());
            put(to, 1, (*key_words).into());
            put(to, 8, *layout);
        }
        TypeSchema::Bool => put(to, 1, BOOL),
        TypeSchema::Unsigned(bits) => put_bits(to, UNSIGNED, *bits),
        TypeSchema::Signed(bits) => put_bits(to, SIGNED, *bits),
        TypeSchema::Float(bits) => put_bits(to, FLOAT, *bits),
        TypeSchema::Char => put(to, 1, CHAR),
        TypeSchema::Text(bytes) => put_count(to, TEXT, *bytes),
        TypeSchema::Bytes(bytes) => put_count(to, BYTES, *bytes),
        TypeSchema::Enum(of) => {
            put(to, 1, ENUM);
            put_text(to, &of.name);
            put(to, 4, of.bits.into());
            put(to, 1, of.tag_bits.into());
            put(to, 4, of.variants.len() as u64);
            for variant in &of.variants {
                put_text(to, &variant.name);
                put(to, 8, variant.tag);
                put_parts(to, &variant.parts);
            }
        }
        TypeSchema::Option(ty) => {
            put(to, 1, OPTION);
            put_type(to, ty);
        }
        TypeSchema::Array(ty, count) => {
            put_count(to, ARRAY, *count);
            put_type(to, ty);
        }
        TypeSchema::Struct(of) => {
            put(to, 1, STRUCT);
            put_text(to, &of.name);
            put(to, 4, of.bits.into());
            put_parts(to, &of.parts);
        }
        TypeSchema::LongText => put(to, 1, LONG_TEXT),
        TypeSchema::LongBytes => put(to, 1, LONG_BYTES),
        TypeSchema::Json => put(to, 1, JSON),
    }
}

fn put_bits(to: &mut Vec<u8>, kind: u64, bits: u8) {
    put(to, 1, kind);
    put(to, 1, bits.into());
}

fn put_count(to: &mut Vec<u8>, kind: u64, count: u32) {
    put(to, 1, kind);
    put(to, 4, count.into());
}

fn put_parts(to: &mut Vec<u8>, parts: &[PartSchema]) {
    put(to, 2, parts.len() as u64);
    for part in parts {
        put_text(to, &part.name);
        put(to, 4, part.bit.into());
        put_type(to, &part.ty);
    }
}

/// Reads fields that [`put_field`] has written with their defaults. Whether they are those of a
/// table remains to be checked.
pub(super) fn take_fields(
    from: &mut Reader<'_>,
    count: u64,
) -> Result<Vec<FieldSchema>, Malformed> {
    (0..count).map(|_| take_field(from)).collect()
}

fn take_field(from: &mut Reader<'_>) -> Result<FieldSchema, Malformed> {
    let name = take_text(from, "a field's name")?;
    let at = from.offset();
    let flags = from.number(1, "a field's flags")?;
    if flags & !(IN_KEY | HAS_DEFAULT) != 0 {
        return Err(Malformed::new(at, format!("a field has the flags {flags:#04x}")));
    }
    let place = match flags & IN_KEY {
        0 => FieldPlace::Column {
            group: from.number(2, "a field's group")? as u16,
            word: from.number(2, "a field's word")? as u16,
            shift: from.number(1, "a field's bit")? as u8,
        },
        _ => FieldPlace::Key { word: from.number(1, "a field's word")? as u8 },
    };
    let ty = take_type(from, 1)?;
    let default = match flags & HAS_DEFAULT {
        0 => None,
        _ => {
            let length = from.number(4, "the length of a default")? as usize;
            Some(from.take(length, "a default")?.to_vec())
        }
    };
    Ok(FieldSchema { name, place, ty, default })
}

/// Reads a type that `depth - 1` types contain.
fn take_type(from: &mut Reader<'_>, depth: usize) -> Result<TypeSchema, Malformed> {
    let at = from.offset();
    if depth > TYPE_DEPTH_MAX {
        return Err(Malformed::new(at, format!("types are nested more than {depth} deep")));
    }
    let bits = |from: &mut Reader<'_>| Ok(from.number(1, "the bits of a type")? as u8);
    let size = |from: &mut Reader<'_>| Ok(from.number(4, "the size of a type")? as u32);
    Ok(match from.number(1, "a type")? {
        OPAQUE => TypeSchema::Opaque {
            bits: size(from)?,
            key_words: bits(from)?,
            layout: from.number(8, "the hash of a type")?,
        },
        BOOL => TypeSchema::Bool,
        UNSIGNED => TypeSchema::Unsigned(bits(from)?),
        SIGNED => TypeSchema::Signed(bits(from)?),
        FLOAT => TypeSchema::Float(bits(from)?),
        CHAR => TypeSchema::Char,
        TEXT => TypeSchema::Text(size(from)?),
        BYTES => TypeSchema::Bytes(size(from)?),
        ENUM => {
            let name = take_text(from, "an enum's name")?;
            let (all, tag_bits) = (size(from)?, bits(from)?);
            let count = from.number(4, "the number of variants")?;
            let variant = |_| {
                Ok(VariantSchema {
                    name: take_text(from, "a variant's name")?,
                    tag: from.number(8, "a variant's tag")?,
                    parts: take_parts(from, depth)?,
                })
            };
            let variants = (0..count).map(variant).collect::<Result<_, Malformed>>()?;
            TypeSchema::Enum(Box::new(EnumSchema { name, bits: all, tag_bits, variants }))
        }
        OPTION => TypeSchema::Option(Box::new(take_type(from, depth + 1)?)),
        ARRAY => {
            let count = size(from)?;
            TypeSchema::Array(Box::new(take_type(from, depth + 1)?), count)
        }
        STRUCT => {
            let name = take_text(from, "a struct's name")?;
            let bits = size(from)?;
            let parts = take_parts(from, depth)?;
            TypeSchema::Struct(Box::new(StructSchema { name, bits, parts }))
        }
        LONG_TEXT => TypeSchema::LongText,
        LONG_BYTES => TypeSchema::LongBytes,
        JSON => TypeSchema::Json,
        kind => return Err(Malformed::new(at, format!("a type has the unknown kind {kind}"))),
    })
}

fn take_parts(from: &mut Reader<'_>, depth: usize) -> Result<Vec<PartSchema>, Malformed> {
    let count = from.number(2, "the number of parts")?;
    let part = |_| {
        Ok(PartSchema {
            name: take_text(from, "a part's name")?,
            bit: from.number(4, "the place of a part")? as u32,
            ty: take_type(from, depth + 1)?,
        })
    };
    (0..count).map(part).collect()
}
