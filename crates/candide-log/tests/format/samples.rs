//! The files of which `tests/golden` keeps the bytes. They must not change.

use crate::block::block;
use crate::checkpoint;
use crate::draws::{OwnedChange, write};
use candide_log::format::block::BlockHeader;
use candide_log::format::checkpoint::PartHeader;
use candide_log::format::commit::{ChangeKind, Head};
use candide_log::format::manifest::{Checkpoint, Entry, Manifest, Part};
use candide_log::format::segment::{GenerationEnd, SegmentHeader};
use candide_log::schema::{IndexSchema, TableSchema};

const UUID: [u8; 16] = *b"\x00\x01golden example";

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
        indexes: vec![
            IndexSchema { name: "by_day".into(), unique: false },
            IndexSchema { name: "by_number".into(), unique: true },
        ],
    };
    Manifest {
        uuid: UUID,
        sequence: 5,
        first_segment: 4,
        last_segment: 6,
        checkpoint: Some(Checkpoint { number: 1, generation: 2, cut: 1000, parts: vec![part().1] }),
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

fn change(kind: ChangeKind, table: u16, key: &[u64], first: u16, words: &[u64]) -> OwnedChange {
    let head = Head { kind, table, first, count: words.len() as u16 };
    OwnedChange { head, key: key.to_vec(), words: words.to_vec(), same_row: false }
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

/// The header of the part.
pub fn part_header() -> PartHeader {
    PartHeader { uuid: UUID, checkpoint: 1, part: 0, generation: 2, cut: 1000 }
}

/// A part of a checkpoint, with rows of two tables and pending records.
pub fn part() -> (Vec<u8>, Part) {
    let accounts = vec![1, 1, 50, 60, 1, 2, 51, 61, 7, 0, 52, 62];
    let lines = vec![3, 10, 20, 30, 4, 11, 21, 31];
    let rows = [(1, 2, 2, accounts), (2, 1, 3, lines)];
    checkpoint::encode(&part_header(), &rows, &records())
}
