//! Files that versions of the format have written. Every later version of this crate must read
//! them: change neither the files nor what these tests expect of them. A new version of a kind of
//! file gets a folder of its own. (A whole database of version 1 is opened in `tests/store`.)

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

/// The folders of the versions that are written: that of MANIFEST, and that of the others.
const FOLDERS: [&str; 2] = ["v2", "v1"];

fn path(folder: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder).join(name)
}

fn golden(folder: &str, name: &str) -> Vec<u8> {
    fs::read(path(folder, name)).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"))
}

/// Returns what the encoders write today.
fn written() -> [(PathBuf, Vec<u8>); 3] {
    let [of_manifest, of_others] = FOLDERS;
    let mut manifest = samples::manifest();
    let mut bytes = manifest.encode().unwrap();
    for entry in samples::entries() {
        bytes.extend_from_slice(&entry.encode(&manifest).unwrap());
        manifest.apply(entry);
    }
    [
        (path(of_manifest, MANIFEST), bytes),
        (path(of_others, SEGMENT), samples::segment().0),
        (path(of_others, PART), samples::part().0),
    ]
}

/// Writes the files; to be run once for each version of the format.
#[test]
#[ignore = "writes the files that the other tests compare with"]
fn writing_golden_files_on_request_matches_them() {
    for (path, bytes) in written() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn encoders_write_the_bytes_of_the_golden_files() {
    for (path, bytes) in written() {
        let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(bytes == golden, "{} is written in another way", path.display());
    }
}

#[test]
fn the_golden_manifests_are_read() {
    let mut expected = samples::manifest();
    assert_eq!(Manifest::decode(&golden("v1", MANIFEST)), Ok(expected.clone()));
    samples::entries().into_iter().for_each(|entry| expected.apply(entry));
    assert_eq!(Manifest::decode(&golden("v2", MANIFEST)), Ok(expected));
}

#[test]
fn the_golden_segment_is_read() {
    let file = golden("v1", SEGMENT);
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
    let (header, whole) = checkpoint::decode(&golden("v1", PART), named).unwrap();
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
