//! The files of which `tests/golden` keeps the bytes. They must not change.

use crate::block::block;
use crate::checkpoint;
use crate::draws::{OwnedChange, write};
use candide_log::format::block::BlockHeader;
use candide_log::format::checkpoint::PartHeader;
use candide_log::format::commit::{ChangeKind, Head};
use candide_log::format::long_row::put_long_row;
use candide_log::format::manifest::{Checkpoint, Entry, Manifest, Part, fields_hash};
use candide_log::format::segment::{GenerationEnd, SegmentHeader};
use candide_log::schema::{
    EnumSchema, FieldPlace, FieldSchema, IndexSchema, PartSchema, StructSchema, TableSchema,
    TableState, TypeSchema, VariantSchema,
};

const UUID: [u8; 16] = *b"\x00\x01golden example";

fn index(name: &str, unique: bool) -> IndexSchema {
    IndexSchema { name: name.into(), unique, ordered: false, columns: vec![] }
}

/// The part in version 1.
const PART: Part = Part { bytes: 504, crc: 809_403_746 };

/// A MANIFEST with a checkpoint and two tables.
pub fn manifest() -> Manifest {
    let accounts = TableSchema {
        number: 1,
        name: "accounts".into(),
        row_type: "bank::Account".into(),
        schema: 0x0123_4567_89ab_cdef,
        key_words: 2,
        key_widths: vec![32, 64],
        groups: vec![("row".into(), 1), ("größe".into(), 1)],
        ordered: true,
        splitting: Some(true),
        policy: Some("mocc".into()),
        indexes: vec![],
        fields: vec![],
        state: TableState::InUse,
    };
    let lines = TableSchema {
        number: 2,
        name: "lines".into(),
        row_type: "bank::Line".into(),
        schema: 1,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("row".into(), 3)],
        ordered: false,
        splitting: None,
        policy: None,
        indexes: vec![index("by_day", false), index("by_number", true)],
        fields: vec![],
        state: TableState::InUse,
    };
    Manifest {
        uuid: UUID,
        sequence: 5,
        first_segment: 4,
        last_segment: 6,
        checkpoint: Some(Checkpoint { number: 1, generation: 2, cut: 1000, parts: vec![PART] }),
        tables: vec![accounts, lines],
    }
}

/// Entries that can follow it: a table, a segment, and another table.
pub fn entries() -> [Entry; 3] {
    let [accounts, lines] = <[TableSchema; 2]>::try_from(manifest().tables).unwrap();
    [
        Entry::Table(TableSchema { number: 3, name: "days".into(), ..lines }),
        Entry::LastSegment(7),
        Entry::Table(TableSchema { number: 5, name: "branches".into(), ..accounts }),
    ]
}

/// Further entries, which earlier versions do not have: a table with fields; another name of the
/// second table; the end of the first one; and a table that is being made.
pub fn later_entries() -> [Entry; 4] {
    let [accounts, lines] = <[TableSchema; 2]>::try_from(manifest().tables).unwrap();
    let state = TableState::Unfinished { from: 2 };
    [
        Entry::Table(described()),
        Entry::Changed(TableSchema { name: "order lines".into(), ..lines.clone() }),
        Entry::Changed(accounts.dropped()),
        Entry::Table(TableSchema { number: 4, name: String::new(), state, ..lines }),
    ]
}

/// A table with fields.
pub fn described() -> TableSchema {
    let part = |ty| vec![PartSchema { name: "0".into(), bit: 0, ty }];
    let code = StructSchema { name: "Code".into(), bits: 128, parts: part(TypeSchema::Text(2)) };
    let variant =
        |(tag, name): (u64, &&str)| VariantSchema { name: (*name).into(), tag, parts: vec![] };
    let variants = (0..).zip(&["Open", "Frozen", "Closed"]).map(variant).collect();
    let state = EnumSchema { name: "State".into(), bits: 2, tag_bits: 2, variants };
    let key = |word| FieldPlace::Key { word };
    let column = |group, word, shift| FieldPlace::Column { group, word, shift };
    let months = TypeSchema::Array(Box::new(TypeSchema::Unsigned(32)), 2);
    let fields = [
        ("branch", key(0), TypeSchema::Signed(32)),
        ("code", key(1), TypeSchema::Struct(Box::new(code))),
        ("cents", column(0, 0, 0), TypeSchema::Signed(64)),
        ("limit", column(0, 1, 0), TypeSchema::Option(Box::new(TypeSchema::Unsigned(64)))),
        ("state", column(0, 3, 1), TypeSchema::Enum(Box::new(state))),
        ("is_frozen", column(0, 3, 0), TypeSchema::Bool),
        ("owner", column(1, 0, 0), TypeSchema::Text(8)),
        ("months", column(1, 2, 0), months),
    ];
    let field = |(name, place, ty): (&str, FieldPlace, TypeSchema)| FieldSchema {
        name: name.into(),
        place,
        ty,
        default: (name == "cents").then(|| 500u64.to_le_bytes().to_vec()),
    };
    let fields: Vec<FieldSchema> = fields.into_iter().map(field).collect();
    TableSchema {
        number: 9,
        name: "described".into(),
        row_type: "bank::Account".into(),
        schema: fields_hash(&fields),
        key_words: 3,
        key_widths: vec![32, 64, 64],
        groups: vec![("row".into(), 4), ("name".into(), 3)],
        ordered: true,
        splitting: None,
        policy: None,
        indexes: vec![IndexSchema {
            name: "by_owner".into(),
            unique: true,
            ordered: true,
            columns: vec![6, 0],
        }],
        fields,
        state: TableState::InUse,
    }
}

fn change(kind: ChangeKind, table: u16, key: &[u64], first: u16, words: &[u64]) -> OwnedChange {
    let head = Head { kind, table, first, count: words.len() as u16 };
    let (key, words) = (key.to_vec(), words.to_vec());
    OwnedChange { head, key, words, values: vec![], same_row: false }
}

/// A commit record with values.
pub fn record_with_values() -> Vec<u64> {
    let mut put = change(ChangeKind::Put, 3, &[11], 0, &[5, 0, 0]);
    put.values = vec![(1, Some(b"Eldorado".to_vec())), (2, Some(b"in the best of".to_vec()))];
    let mut update = change(ChangeKind::Update, 3, &[11], 0, &[]);
    update.values = vec![(1, None)];
    update.same_row = true;
    write(&[put, update], 1004, 4004)
}

/// Two commit records with all kinds of changes.
pub fn records() -> [Vec<u64>; 2] {
    let put = change(ChangeKind::Put, 1, &[7, 8], 0, &[100, 200]);
    let mut update = change(ChangeKind::Update, 1, &[7, 8], 1, &[201]);
    update.same_row = true;
    let delete = change(ChangeKind::Delete, 2, &[9], 0, &[]);
    [write(&[put, update], 1001, 4001), write(&[delete], 1003, 4002)]
}

/// The header of the segment.
pub fn segment_header() -> SegmentHeader {
    SegmentHeader {
        uuid: UUID,
        number: 4,
        generation: 3,
        end_before: GenerationEnd { cut: 1000, segment: 3, offset: 8192 },
        salt: 0x5a17_5a17_5a17_5a17,
        bytes: 4096 + 4096 + 8192 + 4096,
    }
}

/// A segment with three blocks: two records, one large record, and a confirmation. Returns the
/// headers of the blocks, too.
pub fn segment() -> (Vec<u8>, [BlockHeader; 3]) {
    let salt = segment_header().salt;
    let [one, two] = records();
    let words: Vec<u64> = (0..600).collect();
    let large = write(&[change(ChangeKind::Put, 2, &[10], 0, &words)], 1004, 4003);
    let first = BlockHeader { sequence: 1, generation: 3, cut: 1002, ..BlockHeader::default() };
    let (first, first_bytes) = block(first, salt, &[&one, &two]);
    let second = BlockHeader { sequence: 2, cut: 1004, synced: 1002, before: first.crc, ..first };
    let (second, second_bytes) = block(second, salt, &[&large]);
    let third = BlockHeader { sequence: 3, synced: 1004, before: second.crc, ..second };
    let (third, third_bytes) = block(third, salt, &[]);
    let header = segment_header().encode().to_vec();
    ([header, first_bytes, second_bytes, third_bytes].concat(), [first, second, third])
}

/// The same segment with a further block, which has values.
pub fn segment_with_values() -> (Vec<u8>, [BlockHeader; 4]) {
    let (bytes, [first, second, third]) = segment();
    let header = SegmentHeader { bytes: segment_header().bytes + 4096, ..segment_header() };
    let fourth = BlockHeader { sequence: 4, before: third.crc, ..third };
    let (fourth, fourth_bytes) = block(fourth, header.salt, &[&record_with_values()]);
    let bytes = [&header.encode(), &bytes[4096..], &fourth_bytes].concat();
    (bytes, [first, second, third, fourth])
}

/// The header of the part.
pub fn part_header() -> PartHeader {
    PartHeader { uuid: UUID, checkpoint: 1, part: 0, generation: 2, cut: 1000 }
}

/// A part of a checkpoint, with rows of two tables and pending records.
pub fn part() -> (Vec<u8>, Part) {
    let accounts = vec![1, 1, 50, 60, 1, 2, 51, 61, 7, 0, 52, 62];
    let lines = vec![3, 10, 20, 30, 4, 11, 21, 31];
    let rows = [(1, 2, 2, accounts), (2, 1, 3, lines)];
    checkpoint::encode(&part_header(), &rows, &[], &records())
}

/// The same part with rows of a further table, which has values.
pub fn part_with_values() -> (Vec<u8>, Part) {
    let accounts = vec![1, 1, 50, 60, 1, 2, 51, 61, 7, 0, 52, 62];
    let mut long = Vec::new();
    put_long_row(&mut long, &[11], &[5, 0, 0], &[(1, Some(b"Eldorado")), (2, None)]);
    put_long_row(&mut long, &[12], &[6, 0, 0], &[]);
    let records = [record_with_values()];
    checkpoint::encode(&part_header(), &[(1, 2, 2, accounts)], &[(3, 2, 1, 3, long)], &records)
}
