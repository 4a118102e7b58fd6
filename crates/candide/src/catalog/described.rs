//! Descriptions of row types as files have them.

#![forbid(unsafe_code)]

use crate::schema::{
    FieldInfo, FieldType, LongColumn, PartType, Place, PutLong, RowType, RowWriter, StoreDefault,
    image_words, start_of,
};
use candide_log::schema::{
    EnumSchema, FieldPlace, FieldSchema, PartSchema, StructSchema, TypeSchema, VariantSchema,
};

/// Returns the fields of a row type.
pub(super) fn fields_of(row: &RowType) -> Vec<FieldSchema> {
    let mut key = 0;
    let field = |info: &FieldInfo| {
        let ty = type_of(info.ty);
        let place = match info.place {
            Some(Place { group, word, shift, .. }) => {
                FieldPlace::Column { group: group.into(), word, shift }
            }
            None => {
                let word = key;
                key += ty.key_words().unwrap_or(0) as u8;
                FieldPlace::Key { word }
            }
        };
        let default = info.place.zip(info.default);
        let default = default.and_then(|(place, default)| match info.ty.is_long() {
            true => {
                let is_optional = matches!(info.ty, FieldType::Optional(_));
                DefaultBytes::of(default).or_else(|| (!is_optional).then(Vec::new))
            }
            false => Some(default_of(row, place, default)),
        });
        FieldSchema { name: info.name.to_owned(), place, ty, default }
    };
    row.fields.iter().map(field).collect()
}

/// Returns the words of a column's default, which `default` writes into the words of a row.
fn default_of(row: &RowType, place: Place, default: StoreDefault) -> Vec<u8> {
    let mut words = vec![0; image_words(row.groups)];
    default(&mut RowWriter::new(&mut words));
    let first = start_of(row.groups, place.group.into()) + usize::from(place.word);
    let own = &words[first..first + usize::from(place.words)];
    own.iter().flat_map(|word| (word >> place.shift & place.mask).to_le_bytes()).collect()
}

/// The bytes of the default of a column of any length; `None` if it is the empty value, or none of
/// an option.
struct DefaultBytes(Option<Vec<u8>>);

impl DefaultBytes {
    fn of(default: StoreDefault) -> Option<Vec<u8>> {
        let mut bytes = DefaultBytes(None);
        default(&mut RowWriter::with_long(&mut [], &mut bytes));
        bytes.0
    }
}

impl PutLong for DefaultBytes {
    fn put(&mut self, _: LongColumn, bytes: Option<&[u8]>) {
        self.0 = bytes.map(<[u8]>::to_vec);
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    fn refuse(&mut self, column: LongColumn, problem: String) {
        panic!("the default of column `{}` cannot be stored: {problem}", column.name);
    }
}

fn type_of(ty: &FieldType) -> TypeSchema {
    match *ty {
        FieldType::Opaque { bits, key_words, layout } => {
            TypeSchema::Opaque { bits, key_words: key_words as u8, layout }
        }
        FieldType::Bool => TypeSchema::Bool,
        FieldType::Unsigned { bits } => TypeSchema::Unsigned(bits as u8),
        FieldType::Signed { bits } => TypeSchema::Signed(bits as u8),
        FieldType::Float { bits } => TypeSchema::Float(bits as u8),
        FieldType::Char => TypeSchema::Char,
        FieldType::ShortText { bytes } => TypeSchema::Text(bytes as u32),
        FieldType::FixedBytes { bytes } => TypeSchema::Bytes(bytes as u32),
        FieldType::LongText => TypeSchema::LongText,
        FieldType::LongBytes => TypeSchema::LongBytes,
        FieldType::Enum { name, bits, variants } => {
            let variant = |(tag, name): (u64, &&str)| VariantSchema {
                name: (*name).to_owned(),
                tag,
                parts: Vec::new(),
            };
            let variants = (0..).zip(variants).map(variant).collect();
            let (name, tag_bits) = (name.to_owned(), bits as u8);
            TypeSchema::Enum(Box::new(EnumSchema { name, bits, tag_bits, variants }))
        }
        FieldType::Optional(ty) => TypeSchema::Option(Box::new(type_of(ty))),
        FieldType::Array(ty, count) => TypeSchema::Array(Box::new(type_of(ty)), count as u32),
        FieldType::Struct { name, bits, parts } => {
            let part = |(name, ty): &(&str, &FieldType)| PartSchema {
                name: (*name).to_owned(),
                bit: 0,
                ty: type_of(ty),
            };
            let parts = parts.iter().map(part).collect();
            TypeSchema::Struct(Box::new(StructSchema { name: name.to_owned(), bits, parts }))
        }
        FieldType::Nested { name, bits, parts } => {
            let parts = parts_of(parts);
            TypeSchema::Struct(Box::new(StructSchema { name: name.to_owned(), bits, parts }))
        }
        FieldType::Variants { name, bits, tag_bits, variants } => {
            let variant = |(tag, (name, parts)): (u64, &(&str, &[PartType]))| VariantSchema {
                name: (*name).to_owned(),
                tag,
                parts: parts_of(parts),
            };
            let variants = (0..).zip(variants).map(variant).collect();
            let (name, tag_bits) = (name.to_owned(), tag_bits as u8);
            TypeSchema::Enum(Box::new(EnumSchema { name, bits, tag_bits, variants }))
        }
    }
}

fn parts_of(parts: &[PartType]) -> Vec<PartSchema> {
    let part = |&PartType { name, bit, ty }: &PartType| PartSchema {
        name: name.to_owned(),
        bit,
        ty: type_of(ty),
    };
    parts.iter().map(part).collect()
}

/// Returns the parts of the key.
pub(super) fn key_parts(fields: &[FieldSchema]) -> Box<[FieldSchema]> {
    fields.iter().filter(|field| field.is_key()).cloned().collect()
}
