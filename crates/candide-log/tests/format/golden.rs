//! Files that version 1 of the format has written. Every later version of this crate must read
//! them: change neither the files nor what these tests expect of them. A new version of the format
//! gets a folder of its own.

use crate::checkpoint;
use crate::samples;
use candide_log::format::block;
use candide_log::format::bytes::byte_words;
use candide_log::format::commit::{Change, ChangeKind, records};
use candide_log::format::manifest::Manifest;
use candide_log::format::segment::SegmentHeader;
use std::fs;
use std::path::PathBuf;

const MANIFEST: &str = "MANIFEST";
const SEGMENT: &str = "log-0000000004";
const PART: &str = "checkpoint-0000000001-0000";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name)
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns what the encoders write today.
fn written() -> [(&'static str, Vec<u8>); 3] {
    let manifest = samples::manifest().encode().unwrap();
    [(MANIFEST, manifest), (SEGMENT, samples::segment().0), (PART, samples::part().0)]
}

/// Writes the files; to be run once for each version of the format.
#[test]
#[ignore = "writes the files that the other tests compare with"]
fn golden_files_are_made() {
    for (name, bytes) in written() {
        fs::write(path(name), bytes).unwrap();
    }
}

#[test]
fn the_encoders_still_write_the_golden_bytes() {
    for (name, bytes) in written() {
        assert!(bytes == golden(name), "{name} is written in another way");
    }
}

#[test]
fn the_golden_manifest_is_read() {
    assert_eq!(Manifest::decode(&golden(MANIFEST)), Ok(samples::manifest()));
}

#[test]
fn the_golden_segment_is_read() {
    let file = golden(SEGMENT);
    let header = SegmentHeader::decode(&file).unwrap();
    assert_eq!(header, samples::segment_header());
    assert_eq!(header.bytes, file.len() as u64);
    let expected = samples::segment().1;
    let (mut at, mut before, mut payloads) = (4096, None, Vec::new());
    for expected in expected {
        let (block, payload) = block::decode(&file[at..], header.salt).unwrap();
        block.follows(before.as_ref()).unwrap();
        assert_eq!(block, expected);
        payloads.push(byte_words(payload).unwrap().into_owned());
        at += block.size() as usize;
        before = Some(block);
    }
    assert_eq!(at, file.len());
    let [first, second] = [0, 1].map(|record| records(&payloads[0]).nth(record).unwrap().unwrap());
    assert_eq!((first.stamp, first.version), (1001, 4001));
    let put: &[u64] = &[100, 200];
    assert_eq!(
        first.entries().collect::<Vec<_>>(),
        [
            Change { table: 1, kind: ChangeKind::Put, first: 0, key: &[7, 8], words: put },
            Change { table: 1, kind: ChangeKind::Update, first: 1, key: &[7, 8], words: &[201] },
        ]
    );
    assert_eq!((second.stamp, second.version), (1003, 4002));
    assert_eq!(
        second.entries().collect::<Vec<_>>(),
        [Change { table: 2, kind: ChangeKind::Delete, first: 0, key: &[9], words: &[] }]
    );
    let large = records(&payloads[1]).next().unwrap().unwrap();
    assert_eq!(large.entries().next().unwrap().words, (0..600).collect::<Vec<u64>>());
    assert_eq!(records(&payloads[2]).count(), 0);
}

#[test]
fn the_golden_part_of_a_checkpoint_is_read() {
    let named = samples::manifest().checkpoint.unwrap().parts[0];
    let (header, whole) = checkpoint::decode(&golden(PART), named).unwrap();
    assert_eq!(header, samples::part_header());
    let row = |table, key: &[u64], row: &[u64]| (table, key.to_vec(), row.to_vec());
    assert_eq!(
        whole.rows,
        [
            row(1, &[1, 1], &[50, 60]),
            row(1, &[1, 2], &[51, 61]),
            row(1, &[7, 0], &[52, 62]),
            row(2, &[3], &[10, 20, 30]),
            row(2, &[4], &[11, 21, 31]),
        ]
    );
    assert_eq!(whole.records, samples::records());
}
