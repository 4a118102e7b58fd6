//! Tests of exports and imports.

use super::{filled, rows};
use crate::common::Item;

use candide::{Abort, Error, Occ, Protocol, Record, StreamError, Whole};
use candide_log::format::manifest::table_of_bytes;

/// A writer that accepts a given number of bytes, and then fails.
struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_error_of_an_export_is_returned() {
    let (_db, table) = filled::<Occ>(5_000);
    assert!(matches!(table.export(&mut Closed(100_000)), Err(StreamError::Io(_))));
}

protocol_tests!(all: an_import_restores_the_exported_rows);
fn an_import_restores_the_exported_rows<P: Protocol>() {
    for count in [0, 1, 1_023, 1_024, 1_025, 5_000] {
        let (_db, table) = filled::<P>(count);
        let mut stream = Vec::new();
        assert_eq!(table.export(&mut stream).unwrap(), count);
        let (_other, copy) = filled::<P>(0);
        assert_eq!(copy.import(&mut stream.as_slice()).unwrap(), count);
        assert_eq!(rows(&copy), rows(&table));
    }
}

/// Streams have exactly the format in the documentation of `export`, so that old streams can always
/// be read.
#[test]
fn the_stream_has_the_bytes_of_its_format() {
    let (db, table) = filled::<Occ>(0);
    db.run(|tx| table.insert(tx, Item::new(5, -1))).unwrap();
    let mut stream = Vec::new();
    assert_eq!(table.export(&mut stream).unwrap(), 1);
    let words: Vec<u64> =
        stream.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let description = words[4] as usize;
    let bytes = &stream[5 * 8..5 * 8 + description];
    let table = table_of_bytes(bytes).unwrap();
    assert_eq!(words[..4], [u64::from_le_bytes(*b"candide\x04"), table.schema, 1, 3]);
    let fields: Vec<_> =
        table.fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    assert_eq!(fields, ["id: u64", "count: i64", "small: u8", "flag: bool", "other: u64"]);
    // The streams of earlier versions.
    let fields = "id: u64 (key)\ncount: i64 (group hot)\nsmall: u8 (group hot)\nflag: bool (group hot)\nother: u64 (group cold)\n";
    let mut begin =
        [u64::from_le_bytes(*b"candide\x03"), 5_650_114_351_007_337_947, 1, 3, fields.len() as u64]
            .to_vec();
    let padded = format!("{fields}\0\0\0\0\0\0\0");
    begin.extend(
        padded.as_bytes().as_chunks().0[..fields.len().div_ceil(8)]
            .iter()
            .map(|&word| u64::from_le_bytes(word)),
    );
    let add = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    begin.push(begin.iter().fold(0xcbf2_9ce4_8422_2325, add));
    let old_begin = [u64::from_le_bytes(*b"candide\x02"), begin[1], 1, 3];
    // The count; the small number and the flag, which share one word; and the other number, which
    // is in a separate group.
    let row = [5, u64::MAX, 7, 100];
    let rest =
        [&[1], &row[..], &[7_645_139_869_971_480_778], &[0, 1, 6_636_593_151_406_678_724]].concat();
    let bytes = |begin: &[u64]| {
        [begin, &rest].concat().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let head = 5 + description.div_ceil(8);
    let sum = words[..head].iter().fold(0xcbf2_9ce4_8422_2325, add);
    assert_eq!((words[head], &words[head + 1..]), (sum, &rest[..]));
    for stream in [bytes(&begin), bytes(&old_begin)] {
        let (_other, copy) = filled::<Occ>(0);
        assert_eq!(copy.import(&mut &stream[..]).unwrap(), 1);
        assert_eq!(rows(&copy), [Item::new(5, -1)]);
    }
}

#[test]
fn a_stream_damaged_at_any_byte_is_refused() {
    let exported = |rows| {
        let mut stream = Vec::new();
        filled::<Occ>(rows).1.export(&mut stream).unwrap();
        stream
    };
    let is_refused = |stream: &[u8], how: &str| {
        let (_db, copy) = filled::<Occ>(0);
        match copy.import(&mut &*stream) {
            Err(StreamError::Format(problem)) => assert!(!problem.is_empty(), "{how}"),
            Err(StreamError::Schema { .. }) => {}
            other => panic!("{how}: {other:?}"),
        }
    };
    let stream = exported(3);
    (0..stream.len())
        .for_each(|length| is_refused(&stream[..length], &format!("cut after {length} bytes")));
    // The stream of one row is tried, too: there one bit turns the number of rows into the end
    // mark.
    for stream in [exported(1), stream] {
        for (byte, bit) in (0..stream.len()).flat_map(|byte| [(byte, 1), (byte, 0x80)]) {
            let mut damaged = stream.clone();
            damaged[byte] ^= bit;
            is_refused(&damaged, &format!("bit {bit:#x} of byte {byte} of {}", stream.len()));
        }
        // The uppermost bits of two words are damaged: a multiplication maps such damage only to
        // uppermost bits.
        let last_bytes = || (7..stream.len()).step_by(8);
        for (first, second) in
            last_bytes().flat_map(|first| last_bytes().map(move |second| (first, second)))
        {
            let mut damaged = stream.clone();
            damaged[first] ^= 0x80;
            damaged[second] ^= 0x80;
            if damaged != stream {
                is_refused(
                    &damaged,
                    &format!("the last bits of words at {first} and {second} of {}", stream.len()),
                );
            }
        }
    }
}

#[test]
fn an_import_refuses_rows_of_another_type_and_existing_rows() {
    #[derive(Record, Debug, Clone, Copy)]
    struct Other {
        #[key]
        _id: u64,
        count: i64,
    }
    let (db, table) = filled::<Occ>(3);
    let mut stream = Vec::new();
    table.export(&mut stream).unwrap();
    let other = db.table::<Other>("others").unwrap();
    let refused = other.import(&mut stream.as_slice()).unwrap_err();
    assert!(matches!(refused, StreamError::Schema { .. }));
    let message = "the rows of the stream are not the table's: the key is `id: u64` in the \
                   stream and `_id: u64` in the table; ";
    assert!(refused.to_string().starts_with(message), "{refused}");
    assert!(
        db.run(|tx| other.get(tx, 1, Other::COUNT)).is_ok_and(|row: Option<i64>| row.is_none())
    );
    match table.import(&mut stream.as_slice()) {
        Err(StreamError::Refused(Error::Load { rows: 0, cause: Abort::Duplicate })) => {}
        refused => panic!("{refused:?}"),
    }
}

#[test]
fn a_table_in_use_is_not_exported() {
    let (db, table) = filled::<Occ>(3);
    let mut session = db.session().unwrap();
    let inside = session.run(|tx| {
        table.read(tx, 1, Whole)?;
        Ok(table.export(&mut Vec::new()))
    });
    assert!(matches!(inside, Ok(Err(StreamError::Refused(Error::NotQuiescent)))));
    assert_eq!(table.export(&mut Vec::new()).unwrap(), 3);
}
