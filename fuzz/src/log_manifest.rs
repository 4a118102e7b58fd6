//! MANIFEST: bytes of any kind are read or refused, and a manifest that was read is written
//! unchanged.

use crate::choices::{Choices, sealed};
use candide_log::format::manifest::{
    Checkpoint, Entry, Front, Manifest, Part, VERSION, fields_hash, table_bytes, table_of_bytes,
};
use candide_log::schema::{
    EnumSchema, FieldPlace, FieldSchema, IndexSchema, PartSchema, Sides, StructSchema,
    TYPE_DEPTH_MAX, TableSchema, TableState, TypeSchema, VariantSchema,
};

/// Reads the bytes, and a manifest with contents that the bytes choose.
pub fn run(bytes: &[u8]) {
    again(bytes);
    if let Ok(table) = table_of_bytes(bytes) {
        read_values(&mut Choices::new(bytes), &table);
        assert_eq!(table_bytes(&table).as_deref(), Ok(bytes));
    }
    // The same bytes behind the first fields of a MANIFEST.
    let mut whole = vec![0; 24];
    whole.extend_from_slice(bytes);
    again(&with_length(whole));
    let choices = &mut Choices::new(bytes);
    let mut manifest = manifest(choices);
    let Ok(mut written) = manifest.encode() else { return };
    assert_eq!(Manifest::decode(&written).as_ref(), Ok(&manifest));
    manifest.tables.iter().filter(|table| table.is_in_use()).for_each(|table| {
        read_values(choices, table);
        let bytes = table_bytes(table).expect("a table that was read");
        assert_eq!(table_of_bytes(&bytes).as_ref(), Ok(table));
    });
    damaged(choices, written.clone());
    let base = written.len();
    for _ in 0..choices.below(4) {
        let entry = entry(choices, &manifest);
        let Ok(bytes) = entry.encode(&manifest) else { continue };
        let is_new = match &entry {
            Entry::Table(new) | Entry::Changed(new) if new.is_in_use() => {
                let mut others =
                    manifest.tables.iter().filter(|table| table.number != new.number);
                others.all(|table| table.name != new.name)
            }
            Entry::Table(_) | Entry::Changed(_) | Entry::LastSegment(_) => true,
        };
        written.extend_from_slice(&bytes);
        if !is_new {
            Front::decode(&written).expect_err("two tables have the same name");
            return;
        }
        manifest.apply(entry);
        assert_eq!(Manifest::decode(&written).as_ref(), Ok(&manifest));
    }
    damaged_entries(choices, base, &written);
}

/// Reads bytes. If they are a manifest, checks that writing it gives the same bytes.
fn again(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    let written = manifest.encode().expect("as it was read");
    // Entries become a part of the base, and the first version is not written any more.
    if bytes[8] == VERSION as u8 && bytes[16..24] == (bytes.len() as u64).to_le_bytes() {
        assert_eq!(written, bytes);
    }
    assert_eq!(Manifest::decode(&written), Ok(manifest));
}

/// Returns the bytes with the length and the checksum that they should have.
fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&[0; 4]);
    let length = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    sealed(bytes, b"candiMAN", VERSION)
}

/// Checks that a damaged byte is refused; and reads the bytes when their checksum fits again.
fn damaged(choices: &mut Choices<'_>, mut bytes: Vec<u8>) {
    let place = choices.word() as usize % bytes.len();
    Manifest::decode(&bytes[..place]).expect_err("MANIFEST is cut off");
    bytes[place] ^= choices.byte().max(1);
    Manifest::decode(&bytes).expect_err("a byte is damaged");
    again(&sealed(bytes.clone(), b"candiMAN", VERSION));
    bytes.truncate(place.max(24));
    again(&with_length(bytes));
}

/// Checks that the entries before a damaged one are read, and no entry after it.
fn damaged_entries(choices: &mut Choices<'_>, base: usize, whole: &[u8]) {
    if whole.len() == base {
        return;
    }
    let place = base + choices.word() as usize % (whole.len() - base);
    let cut = Front::decode(&whole[..place]).expect("the base is whole");
    assert!((base..=place).contains(&cut.bytes) && cut.tail.is_none() == (cut.bytes == place));
    let mut bytes = whole.to_vec();
    bytes[place] ^= choices.byte().max(1);
    let front = Front::decode(&bytes).expect("the base is whole");
    assert!((base..=place).contains(&front.bytes) && front.tail.is_some());
    assert_eq!(front.manifest, Manifest::decode(&whole[..front.bytes]).expect("a front"));
}

fn entry(choices: &mut Choices<'_>, before: &Manifest) -> Entry {
    let more = choices.byte().max(1);
    if choices.below(3) == 0 {
        return Entry::LastSegment(before.last_segment.saturating_add(more.into()));
    }
    let last = before.tables.last().map_or(0, |table| table.number);
    if last > 0 && choices.below(3) == 0 {
        return Entry::Changed(table(choices, last));
    }
    Entry::Table(table(choices, last + u32::from(more)))
}

fn manifest(choices: &mut Choices<'_>) -> Manifest {
    let part =
        |choices: &mut Choices<'_>| Part { bytes: choices.word(), crc: choices.byte().into() };
    let checkpoint = (choices.below(2) == 0).then(|| Checkpoint {
        number: choices.word(),
        generation: choices.byte().into(),
        cut: choices.word(),
        parts: (0..choices.below(3)).map(|_| part(choices)).collect(),
    });
    let mut number = 0;
    let mut tables = Vec::new();
    for _ in 0..choices.below(4) {
        // Tables out of order are refused.
        number += u32::from(choices.byte() % 200);
        tables.push(table(choices, number));
    }
    let uuid = std::array::from_fn(|_| choices.byte());
    let [sequence, first_segment, last_segment] = std::array::from_fn(|_| choices.word());
    Manifest { uuid, sequence, first_segment, last_segment, checkpoint, tables }
}

fn table(choices: &mut Choices<'_>, number: u32) -> TableSchema {
    let fields: Vec<FieldSchema> = (0..choices.below(4)).map(|_| field(choices)).collect();
    let state = match choices.below(6) {
        0 => TableState::Dropped,
        1 => TableState::Unfinished { from: choices.byte().into() },
        _ => TableState::InUse,
    };
    TableSchema {
        number,
        name: if state == TableState::InUse { text(choices) } else { String::new() },
        row_type: text(choices),
        schema: if fields.is_empty() { choices.word() } else { fields_hash(&fields) },
        key_words: choices.byte().into(),
        key_widths: (0..choices.below(3)).map(|_| choices.below(66) as u32).collect(),
        groups: (0..choices.below(3))
            .map(|_| (text(choices), u32::from(choices.byte()) << choices.below(10)))
            .collect(),
        ordered: choices.below(2) == 0,
        splitting: [None, Some(false), Some(true)][choices.below(3)],
        policy: (choices.below(2) == 0).then(|| text(choices)),
        indexes: (0..choices.below(3))
            .map(|_| IndexSchema {
                name: text(choices),
                unique: choices.below(2) == 0,
                ordered: choices.below(2) == 0,
                columns: (0..choices.below(3)).map(|_| choices.below(4) as u16).collect(),
            })
            .collect(),
        fields,
        state,
    }
}

/// Returns a field. One that does not fit its table is refused.
fn field(choices: &mut Choices<'_>) -> FieldSchema {
    let place = match choices.below(3) {
        0 => FieldPlace::Key { word: choices.below(3) as u8 },
        _ => FieldPlace::Column {
            group: choices.below(3) as u16,
            word: choices.byte().into(),
            shift: choices.below(65) as u8,
        },
    };
    let default = (choices.below(4) == 0).then(|| vec![1; choices.below(17)]);
    FieldSchema { name: text(choices), place, ty: ty(choices, 1), default }
}

fn ty(choices: &mut Choices<'_>, depth: usize) -> TypeSchema {
    let bits = [8, 16, 32, 64, 128, choices.byte()][choices.below(6)];
    let size = u32::from(choices.byte()) << choices.below(25);
    match choices.below(if depth > TYPE_DEPTH_MAX { 9 } else { 15 }) {
        0 => TypeSchema::Opaque { bits: size, key_words: bits, layout: choices.word() },
        1 => TypeSchema::Bool,
        2 => TypeSchema::Unsigned(bits),
        3 => TypeSchema::Signed(bits),
        4 => TypeSchema::Float(bits),
        5 => TypeSchema::Char,
        6 => TypeSchema::Text(size),
        7 => TypeSchema::Bytes(size),
        8 => [TypeSchema::LongText, TypeSchema::LongBytes, TypeSchema::Json][choices.below(3)]
            .clone(),
        9 | 10 => TypeSchema::Option(Box::new(ty(choices, depth + 1))),
        11 => TypeSchema::Array(Box::new(ty(choices, depth + 1)), size),
        12 | 13 => {
            let parts = parts(choices, depth);
            TypeSchema::Struct(Box::new(StructSchema { name: text(choices), bits: size, parts }))
        }
        _ => {
            let variants = (0..choices.below(4))
                .map(|_| VariantSchema {
                    name: text(choices),
                    tag: choices.byte().into(),
                    parts: parts(choices, depth),
                })
                .collect();
            let name = text(choices);
            let tag_bits = choices.below(66) as u8;
            TypeSchema::Enum(Box::new(EnumSchema { name, bits: size, tag_bits, variants }))
        }
    }
}

fn parts(choices: &mut Choices<'_>, depth: usize) -> Vec<PartSchema> {
    let count = choices.below(3);
    let part = |_| PartSchema {
        name: text(choices),
        bit: choices.byte().into(),
        ty: ty(choices, depth + 1),
    };
    (0..count).map(part).collect()
}

/// Reads values of all fields from words that the bytes choose.
fn read_values(choices: &mut Choices<'_>, table: &TableSchema) {
    let words = [choices.word(), choices.word(), choices.byte().into(), 0];
    let row: Vec<u64> = words.iter().copied().cycle().take(table.row_words().min(300)).collect();
    let key: Vec<u64> = words.iter().copied().cycle().take(table.key_words.into()).collect();
    for value in table.key_values(&key).into_iter().chain(table.column_values(0, &row)).flatten() {
        let _ = value.1.to_string();
    }
    assert!(table.differences(table, Sides::FILES).is_empty());
}

fn text(choices: &mut Choices<'_>) -> String {
    (0..choices.below(5)).map(|_| char::from(choices.byte())).collect()
}
