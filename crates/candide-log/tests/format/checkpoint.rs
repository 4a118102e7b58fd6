use crate::damage::{
    every_flip_is_refused, every_truncation_is_refused, expect, seal_again, store,
};
use crate::draws::Draws;
use crate::samples;
use candide_log::format::bytes::word_bytes;
use candide_log::format::checkpoint::{
    Contents, PartBlockHeader, PartDecoder, PartEncoder, PartHeader,
};
use candide_log::format::long_row::put_long_row;
use candide_log::format::manifest::Part;
use candide_log::format::value::LongValue;
use candide_log::format::{Fault, Malformed};
use std::borrow::Cow;

/// The rows of a table: its number, the words of a key and of a row, and the rows.
type Rows = (u32, u16, u16, Vec<u64>);

/// The rows of a table with values: its number, the number of rows, the words of a key and of a
/// row, and the rows.
type LongRows = (u32, u64, u16, u16, Vec<u64>);

/// A row with values: its table, its key, its words, and the values.
type LongRow = (u32, Vec<u64>, Vec<u64>, Vec<(u16, Option<Vec<u8>>)>);

/// All that a part contains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whole {
    /// Rows, with the numbers of their tables.
    pub rows: Vec<(u32, Vec<u64>, Vec<u64>)>,
    /// Rows with values.
    pub long: Vec<LongRow>,
    /// Pending commit records.
    pub records: Vec<Vec<u64>>,
}

/// Returns a part that contains these blocks.
pub fn encode(
    header: &PartHeader,
    rows: &[Rows],
    long: &[LongRows],
    records: &[Vec<u64>],
) -> (Vec<u8>, Part) {
    let (mut encoder, start) = PartEncoder::new(header);
    let mut bytes = start.to_vec();
    for (table, key_words, row_words, rows) in rows {
        bytes.extend_from_slice(&encoder.rows(*table, *key_words, *row_words, rows));
        bytes.extend_from_slice(&word_bytes(rows));
        assert_eq!(encoder.bytes(), bytes.len() as u64);
    }
    for (table, count, key_words, row_words, rows) in long {
        let block = encoder.long_rows((*table, *count), *key_words, *row_words, rows);
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(&word_bytes(rows));
    }
    for records in records.chunks(2) {
        let records: Vec<&[u64]> = records.iter().map(Vec::as_slice).collect();
        bytes.extend_from_slice(&encoder.pending(&records));
        bytes.extend_from_slice(&word_bytes(&records.concat()));
    }
    let (end, part) = encoder.end();
    bytes.extend_from_slice(&end);
    assert_eq!(part.bytes, bytes.len() as u64);
    (bytes, part)
}

/// Reads a whole part. Offsets of errors count from the beginning of the part.
pub fn decode(bytes: &[u8], part: Part) -> Result<(PartHeader, Whole), Malformed> {
    let (mut decoder, header) = PartDecoder::new(bytes, part)?;
    let mut whole = Whole::default();
    while decoder.left() > 0 {
        let at = decoder.offset();
        let rest = bytes.get(at as usize..).unwrap_or_default();
        let block = decoder.block(rest).map_err(|error| error.after(at))?;
        if let Contents::Rows { table, .. } = block.contents {
            let rows = block.rows().map(|(key, row)| (table, key.to_vec(), row.to_vec()));
            whole.rows.extend(rows);
        }
        if let Contents::LongRows { table, count, .. } = block.contents {
            let value = |value: LongValue<'_>| (value.place, value.bytes().map(Cow::into_owned));
            let rows = block.long_rows().map(|row| {
                let values = row.values().map(value).collect();
                (table, row.key.to_vec(), row.words.to_vec(), values)
            });
            let before = whole.long.len();
            whole.long.extend(rows);
            assert_eq!((whole.long.len() - before) as u64, count);
        }
        whole.records.extend(block.records().map(|record| record.words().to_vec()));
        if let Contents::End { .. } = block.contents {
            assert_eq!(decoder.left(), 0);
        }
    }
    Ok((header, whole))
}

fn header(draws: &mut Draws) -> PartHeader {
    PartHeader {
        uuid: draws.uuid(),
        checkpoint: draws.number(),
        part: draws.word() as u32,
        generation: draws.number().max(1),
        cut: draws.number(),
    }
}

/// Returns blocks of rows whose tables and keys ascend.
fn blocks_of_rows(draws: &mut Draws) -> Vec<Rows> {
    let mut blocks = Vec::new();
    let mut table = 0;
    for _ in 0..draws.below(4) {
        table += draws.below(3) as u32 + 1;
        let (key_words, row_words) = (1 + draws.below(3), draws.below(4));
        let mut key = 0;
        for _ in 0..1 + draws.below(3) {
            let mut rows = Vec::new();
            for _ in 0..1 + draws.below(5) {
                key += 1 + draws.below(100) as u64;
                // Compared from the first word on: the second one decides.
                rows.extend((0..key_words).map(|place| match place + 2 > key_words {
                    true => key,
                    false => 7,
                }));
                rows.extend((0..row_words).map(|_| draws.number()));
            }
            blocks.push((table, key_words as u16, row_words as u16, rows));
        }
    }
    blocks
}

#[test]
fn a_written_checkpoint_is_read_again() {
    let mut draws = Draws::new(40);
    for _ in 0..1000 {
        let (header, rows, records) =
            (header(&mut draws), blocks_of_rows(&mut draws), draws.records(5));
        let (bytes, part) = encode(&header, &rows, &[], &records);
        let (read, whole) = decode(&bytes, part).unwrap();
        assert_eq!((read, whole.records), (header, records));
        let words = rows.iter().flat_map(|(.., words)| words);
        let again = whole.rows.iter().flat_map(|(_, key, row)| key.iter().chain(row));
        assert!(words.eq(again));
        let count =
            |(table, key, row, words): &Rows| (*table, words.len() / usize::from(key + row));
        for (table, rows) in rows.iter().map(count) {
            let is = whole.rows.iter().filter(|(of, ..)| *of == table).count();
            assert!(is >= rows, "table {table}");
        }
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_checkpoint_part_is_refused() {
    for (bytes, part) in [samples::part(), samples::part_with_values()] {
        let decode = |bytes: &[u8]| decode(bytes, part);
        every_flip_is_refused(&bytes, decode);
        every_truncation_is_refused(&bytes, decode);
    }
}

#[test]
fn rows_with_values_are_read_again() {
    let mut draws = Draws::new(44);
    for _ in 0..300 {
        let mut rows = Vec::new();
        let mut words = Vec::new();
        for key in 0..1 + draws.below(5) as u64 {
            let mut values: Vec<(u16, Option<Vec<u8>>)> = Vec::new();
            for place in 0..3 {
                if draws.below(2) == 0 {
                    let bytes = vec![b'x'; draws.below(30)];
                    values.push((place, (draws.below(4) > 0).then_some(bytes)));
                }
            }
            let row = vec![0, 0, 0, draws.number()];
            let of: Vec<_> =
                values.iter().map(|(place, bytes)| (*place, bytes.as_deref())).collect();
            put_long_row(&mut words, &[key], &row, &of);
            rows.push((2, vec![key], row, values));
        }
        let header = header(&mut draws);
        let count = rows.len() as u64;
        let (bytes, part) = encode(&header, &[], &[(2, count, 1, 4, words.clone())], &[]);
        let (_, whole) = decode(&bytes, part).unwrap();
        assert_eq!(whole.long, rows);
        // A changed word is refused, or gives another row.
        let place = draws.below(words.len());
        words[place] ^= 1 << draws.below(64);
        let (bytes, part) = encode(&header, &[], &[(2, count, 1, 4, words)], &[]);
        assert!(decode(&bytes, part).map_or(true, |(_, whole)| whole.long != rows));
    }
}

#[test]
fn each_mistake_in_rows_with_values_has_its_own_error() {
    let header = header(&mut Draws::new(45));
    let refused = |count, rows: &[u64], at: u64, what: &str| {
        let (bytes, part) = encode(&header, &[], &[(2, count, 1, 1, rows.to_vec())], &[]);
        expect(decode(&bytes, part), 64 + at, what);
    };
    let last = 1 << 63;
    refused(1, &[0, 1], 40, "a row with values is cut off");
    refused(1, &[2, 1, 0, last], 40, "a row with values is cut off");
    refused(1, &[u64::MAX, 1, 0, last], 40, "a row with values is cut off");
    refused(1, &[1, 1, 0, 0], 40, "a value is cut off");
    refused(1, &[1, 1, 7, last], 40, "the word of a value is not 0");
    refused(1, &[1, 1, 0, last | 1 << 32], 40, "a value is beyond the row");
    refused(1, &[2, 1, 0, last, 5], 40, "there are words behind the values of a row");
    refused(2, &[0, 1, 0], 16, "the block has 1 rows, not 2");
    refused(2, &[0, 1, 0, 0, 1, 0], 40 + 24, "row 1 of the block does not have a larger key");
}

#[test]
fn a_checkpoint_part_that_the_manifest_does_not_name_is_refused() {
    let (bytes, part) = samples::part();
    let end = bytes.len() as u64 - 40;
    let error = decode(&bytes, Part { crc: part.crc ^ 1, ..part }).unwrap_err();
    assert_eq!(error.offset, end + 36);
    assert!(error.what.starts_with("the part has checksum 0x"), "{error}");
    let error = decode(&bytes, Part { bytes: part.bytes + 8, ..part }).unwrap_err();
    expect(Err::<(), _>(error), end + 40, "there are 8 bytes behind the end of the part");
    for shorter in 0..part.bytes {
        decode(&bytes, Part { bytes: shorter, ..part }).unwrap_err();
    }
    let last = bytes.len() as u64 - 40;
    expect(decode(&bytes, Part { bytes: last, ..part }), last, "the part has no end");
    let what = "MANIFEST says that the part has 103 bytes";
    expect(decode(&bytes, Part { bytes: 103, ..part }), 103, what);
}

#[test]
fn a_block_of_another_part_is_refused() {
    let rows = [(1, 1, 1, vec![1, 2])];
    let mut draws = Draws::new(41);
    let (one, part) = encode(&header(&mut draws), &rows, &[], &[]);
    let (other, _) = encode(&header(&mut draws), &rows, &[], &[]);
    let mixed = [&one[..64], &other[64..]].concat();
    let error = decode(&mixed, part).unwrap_err();
    assert_eq!(error.offset, 64 + 32);
    assert!(error.what.starts_with("the checksum before the block is 0x"), "{error}");
}

#[test]
fn keys_and_tables_out_of_order_are_refused() {
    let header = header(&mut Draws::new(42));
    let refused = |rows: &[Rows], offset, what: &str| {
        let (bytes, part) = encode(&header, rows, &[], &[]);
        expect(decode(&bytes, part), offset, what);
    };
    let row = "row 1 of the block does not have a larger key";
    refused(&[(1, 1, 1, vec![2, 0, 2, 0])], 64 + 40 + 16, row);
    refused(&[(1, 2, 0, vec![2, 3, 2, 2])], 64 + 40 + 16, row);
    let first = "row 0 of the block does not have a larger key";
    refused(&[(1, 1, 1, vec![2, 0]), (1, 1, 1, vec![2, 0])], 64 + 56 + 40, first);
    let table = "table 1 comes after table 2";
    refused(&[(2, 1, 1, vec![2, 0]), (1, 1, 1, vec![3, 0])], 64 + 56 + 8, table);
    // Keys of another table begin anew.
    let (bytes, part) = encode(&header, &[(1, 1, 1, vec![2, 0]), (2, 1, 1, vec![1, 0])], &[], &[]);
    decode(&bytes, part).unwrap();
}

#[test]
fn rows_after_commit_records_and_damaged_records_are_refused() {
    let header = header(&mut Draws::new(43));
    let (mut encoder, start) = PartEncoder::new(&header);
    let mut bytes = start.to_vec();
    let records = [3 | 1 << 32, 0, 0];
    bytes.extend_from_slice(&encoder.pending(&[&records]));
    bytes.extend_from_slice(&word_bytes(&records));
    let part = Part { bytes: 1000, crc: 0 };
    let what = "a commit record has fewer entries than it states";
    expect(decode(&bytes, part), 64 + 40 + 24, what);
    let record = [4 | 1 << 32, 0, 0, 1 << 48 | 2];
    let (mut encoder, start) = PartEncoder::new(&header);
    let mut bytes = start.to_vec();
    bytes.extend_from_slice(&encoder.pending(&[&record[..2], &record[2..]]));
    bytes.extend_from_slice(&word_bytes(&record));
    expect(decode(&bytes, part), 64 + 16, "the block has 1 records, not 2");
    let (mut encoder, start) = PartEncoder::new(&header);
    let mut bytes = start.to_vec();
    bytes.extend_from_slice(&encoder.pending(&[&record]));
    bytes.extend_from_slice(&word_bytes(&record));
    bytes.extend_from_slice(&encoder.rows(1, 1, 0, &[1]));
    bytes.extend_from_slice(&word_bytes(&[1]));
    let offset = 64 + 40 + 32 + 4;
    expect(decode(&bytes, part), offset, "a block of rows comes after commit records");
}

#[test]
fn false_lengths_in_a_checkpoint_part_are_refused_before_use() {
    let (bytes, part) = samples::part();
    let lie = |offset: usize, size, value| {
        let mut bytes = bytes.clone();
        store(&mut bytes, 64 + offset, size, value);
        decode(&bytes, part).map(|_| ())
    };
    let room = part.bytes - 64;
    let what = format!("a block of {} bytes does not fit into {room}", u64::MAX);
    expect(lie(24, 8, u64::MAX), 64 + 24, &what);
    let what = format!("a block of {} bytes does not fit into {room}", (1_u64 << 40) + 40);
    expect(lie(24, 8, 1 << 40), 64 + 24, &what);
    let what = format!("{} rows of 4 words do not have 96 bytes", u64::MAX);
    expect(lie(16, 8, u64::MAX), 64 + 24, &what);
    expect(lie(14, 2, 9), 64 + 24, "3 rows of 11 words do not have 96 bytes");
    // What MANIFEST says may lie, too.
    let (decoder, _) = PartDecoder::new(&bytes, Part { bytes: u64::MAX, crc: 0 }).unwrap();
    let header = decoder.header(&bytes[64..]).unwrap();
    assert_eq!(header.size(), 40 + 96);
}

#[test]
fn each_mistake_in_the_header_of_a_checkpoint_part_has_its_own_error() {
    let start = samples::part_header().encode();
    let with = |offset, size, value| {
        let mut start = start;
        store(&mut start, offset, size, value);
        seal_again(&mut start);
        PartHeader::decode(&start)
    };
    expect(PartHeader::decode(&start[..63]), 63, "the header of a checkpoint ends after 63 bytes");
    expect(PartHeader::decode(&[0; 64]), 0, "this is not the header of a checkpoint");
    expect(with(56, 1, 1), 56, "a reserved byte is not zero");
    expect(with(40, 8, 0), 40, "the generation is 0");
    assert_eq!(with(8, 4, 7).unwrap_err().fault, Fault::Version { found: 7, known: 2 });
    let (bytes, _) = samples::part();
    let with = |changes: &[(usize, usize, u64)]| {
        let mut bytes = bytes[64..].to_vec();
        changes.iter().for_each(|(offset, size, value)| store(&mut bytes, *offset, *size, *value));
        PartBlockHeader::parse(&bytes, 1000)
    };
    expect(PartBlockHeader::parse(&[0; 39], 99), 39, "the header of a block ends after 39 bytes");
    expect(PartBlockHeader::parse(&[0; 40], 99), 0, "no block begins here");
    expect(with(&[(4, 4, 5)]), 4, "a block has the unknown kind 5");
    expect(with(&[(4, 4, 2)]), 8, "a reserved byte is not zero");
    expect(with(&[(8, 4, 65_536)]), 8, "table 65536 is above the largest number of a table");
    expect(with(&[(16, 8, 0)]), 16, "the block has no contents");
    expect(with(&[(12, 2, 0)]), 16, "several rows have keys of no words");
    expect(
        with(&[(12, 4, 0), (16, 8, 1), (24, 8, 0)]),
        12,
        "neither the keys nor the rows have a word",
    );
    let other = |kind, payload| with(&[(4, 4, kind), (8, 8, 0), (24, 8, payload)]);
    expect(other(2, 9), 24, "9 bytes are not whole words");
    expect(other(3, 8), 24, "the end has 8 bytes");
    let end = [(4, 4, 3), (8, 8, 0), (24, 8, 0)];
    assert_eq!(with(&end).unwrap().contents, Contents::End { blocks: 3 });
}

#[test]
fn an_end_that_miscounts_its_blocks_is_refused() {
    let (mut bytes, _) = encode(&samples::part_header(), &[(1, 1, 0, vec![1])], &[], &[]);
    let end = bytes.len() - 40;
    store(&mut bytes, end + 16, 8, 2);
    store(&mut bytes, end + 36, 4, 0);
    let crc = crc32c::crc32c(&bytes[end..]);
    store(&mut bytes, end + 36, 4, crc.into());
    let part = Part { bytes: bytes.len() as u64, crc };
    expect(decode(&bytes, part), end as u64 + 16, "the part has 1 blocks, and states 2");
}
