//! Parts of checkpoints: blocks of any kind are read or refused, written rows in order are read
//! unchanged, rows out of order refused.

use crate::choices::{Choices, sealed};
use candide_log::format::Malformed;
use candide_log::format::bytes::word_bytes;
use candide_log::format::checkpoint::{
    self, Contents, PART_BLOCK_HEADER_BYTES, PART_HEADER_BYTES, PartDecoder, PartEncoder,
    PartHeader,
};
use candide_log::format::commit::{ChangeKind, CommitWriter, RecordBuffer};
use candide_log::format::long_row::{LongRow, put_long_row};
use candide_log::format::manifest::Part;

/// Reads the bytes, and a part with contents that the bytes choose.
pub fn run(bytes: &[u8]) {
    let _ = read(bytes, Part { bytes: bytes.len() as u64, crc: 0 });
    forged(bytes);
    let choices = &mut Choices::new(bytes);
    let (written, part, rows) = written(choices);
    let is_in_order = rows.windows(2).all(|pair| (pair[0].0, &pair[0].1) < (pair[1].0, &pair[1].1));
    match read(&written, part) {
        Ok(again) => assert!(is_in_order && again == rows),
        Err(error) => {
            assert!(!is_in_order, "{error}");
            return;
        }
    }
    damaged(choices, written, part);
}

/// A row: its table, its key and its words.
type Row = (u32, Vec<u64>, Vec<u64>);

/// Reads a whole part, and returns its rows.
fn read(bytes: &[u8], part: Part) -> Result<Vec<Row>, Malformed> {
    let (mut decoder, _) = PartDecoder::new(bytes, part)?;
    let mut rows = Vec::new();
    loop {
        let rest = bytes.get(decoder.offset() as usize..).unwrap_or_default();
        let block = decoder.block(rest)?;
        match block.contents {
            Contents::Rows { table, count, .. } => {
                assert_eq!(block.rows().len() as u64, count);
                rows.extend(block.rows().map(|(key, row)| (table, key.to_vec(), row.to_vec())));
            }
            Contents::LongRows { table, count, .. } => {
                let row = |row: LongRow<'_>| (table, row.key.to_vec(), row.words.to_vec());
                assert_eq!(block.long_rows().count() as u64, count);
                for long in block.long_rows() {
                    long.values().for_each(|value| {
                        assert_eq!(value.bytes().map(|bytes| bytes.len()), value.length);
                    });
                }
                rows.extend(block.long_rows().map(row));
            }
            Contents::Pending { count } => assert_eq!(block.records().count() as u64, count),
            Contents::End { .. } => return Ok(rows),
        }
    }
}

/// Reads the bytes as blocks whose magic numbers and checksums are right.
fn forged(bytes: &[u8]) {
    let mut part = bytes.to_vec();
    part.resize(bytes.len().max(PART_HEADER_BYTES), 0);
    let blocks = part.split_off(PART_HEADER_BYTES);
    let mut part = sealed(part, b"candiCHK", checkpoint::VERSION);
    let mut crc = part[PART_HEADER_BYTES - 4..].to_vec();
    for block in blocks.chunks(PART_BLOCK_HEADER_BYTES + 32) {
        let mut block = block.to_vec();
        block.resize(block.len().max(PART_BLOCK_HEADER_BYTES), 0);
        let payload = (block.len() - PART_BLOCK_HEADER_BYTES) as u64;
        block[..4].copy_from_slice(b"cpbk");
        block[4] %= 5;
        block[5..8].fill(0);
        block[24..32].copy_from_slice(&payload.to_le_bytes());
        block[32..36].copy_from_slice(&crc);
        block[36..40].fill(0);
        crc = crc32c::crc32c(&block).to_le_bytes().to_vec();
        block[36..40].copy_from_slice(&crc);
        part.extend_from_slice(&block);
    }
    let crc = u32::from_le_bytes(crc.try_into().expect("4 bytes"));
    let _ = read(&part, Part { bytes: part.len() as u64, crc });
}

/// Writes a part with a few rows, which may be out of order, and a few records.
fn written(choices: &mut Choices<'_>) -> (Vec<u8>, Part, Vec<Row>) {
    let header = PartHeader {
        uuid: std::array::from_fn(|_| choices.byte()),
        checkpoint: choices.word(),
        part: choices.byte().into(),
        generation: choices.word().max(1),
        cut: choices.word(),
    };
    let (mut encoder, start) = PartEncoder::new(&header);
    let mut bytes = start.to_vec();
    let mut rows = Vec::new();
    let (mut table, mut last) = (0, 0);
    for _ in 0..choices.below(4) {
        table += choices.below(2) as u32;
        let (key_words, row_words) = (1 + choices.below(2), choices.below(3));
        let mut words = Vec::new();
        let has_values = row_words > 0 && choices.below(2) == 0;
        let count = 1 + choices.below(3) as u64;
        for _ in 0..count {
            // In order but for one step in 16.
            last = if choices.below(16) == 15 { last } else { last + 1 };
            let key: Vec<u64> = (0..key_words).map(|_| last).collect();
            let row: Vec<u64> = (0..row_words).map(|_| choices.byte().into()).collect();
            if has_values {
                let mut row = row.clone();
                row[0] = 0;
                let bytes = vec![choices.byte(); choices.below(20)];
                let value = (choices.below(3) > 0).then_some(&bytes[..]);
                let values = [(0, value)];
                put_long_row(&mut words, &key, &row, &values[..choices.below(2)]);
                rows.push((table, key, row));
                continue;
            }
            words.extend(key.iter().chain(&row));
            rows.push((table, key, row));
        }
        let (key_words, row_words) = (key_words as u16, row_words as u16);
        let block = match has_values {
            true => encoder.long_rows((table, count), key_words, row_words, &words),
            false => encoder.rows(table, key_words, row_words, &words),
        };
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(&word_bytes(&words));
    }
    for _ in 0..choices.below(3) {
        let mut buffer = RecordBuffer::new();
        let mut writer = CommitWriter::begin(&mut buffer);
        writer.entry(ChangeKind::Put, 1, 0, 1, Some(&[choices.word()]));
        writer.push(choices.word());
        writer.finish(choices.word(), choices.word());
        let record = buffer.words();
        bytes.extend_from_slice(&encoder.pending(&[record, record]));
        bytes.extend_from_slice(&word_bytes(&[record, record].concat()));
    }
    let (end, part) = encoder.end();
    bytes.extend_from_slice(&end);
    (bytes, part, rows)
}

/// Checks that a part is refused with another byte, and when it ends early.
fn damaged(choices: &mut Choices<'_>, mut bytes: Vec<u8>, part: Part) {
    let place = choices.word() as usize % bytes.len();
    read(&bytes[..place], part).expect_err("the part is cut off");
    bytes[place] ^= choices.byte().max(1);
    read(&bytes, part).expect_err("a byte is damaged");
}
