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
const FOLDERS: [&str; 2] = ["v3", "v2"];

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
    for entry in samples::entries().into_iter().chain(samples::later_entries()) {
        bytes.extend_from_slice(&entry.encode(&manifest).unwrap());
        manifest.apply(entry);
    }
    [
        (path(of_manifest, MANIFEST), bytes),
        (path(of_others, SEGMENT), samples::segment_with_values().0),
        (path(of_others, PART), samples::part_with_values().0),
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
    assert_eq!(Manifest::decode(&golden("v2", MANIFEST)), Ok(expected.clone()));
    samples::later_entries().into_iter().for_each(|entry| expected.apply(entry));
    assert_eq!(Manifest::decode(&golden("v3", MANIFEST)).as_ref(), Ok(&expected));
    assert_eq!(expected.dropped(), [1]);
    assert_eq!(expected.table(2).unwrap().name, "order lines");
    assert_eq!(
        expected.tables.iter().map(|table| table.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 9]
    );
}

#[test]
fn the_golden_values_are_read() {
    let file = golden("v2", SEGMENT);
    let header = SegmentHeader::decode(&file).unwrap();
    let at = 4096 + 4096 + 8192 + 4096;
    let (_, payload) = block::decode(&file[at..], header.salt).unwrap();
    let words = byte_words(payload).unwrap();
    let changes: Vec<_> = records(&words).next().unwrap().unwrap().entries().collect();
    let values = |change: &Change<'_>| -> Vec<(u16, Option<Vec<u8>>)> {
        change.values().map(|value| (value.place, value.bytes().map(|b| b.into_owned()))).collect()
    };
    let texts = [(1, Some(b"Eldorado".to_vec())), (2, Some(b"in the best of".to_vec()))];
    assert_eq!((values(&changes[0]), changes[0].words), (texts.to_vec(), &[5, 0, 0][..]));
    assert_eq!((values(&changes[1]), changes.len()), (vec![(1, None)], 2));
    let part = samples::part_with_values().1;
    let (_, whole) = checkpoint::decode(&golden("v2", PART), part).unwrap();
    let first = vec![(1, Some(b"Eldorado".to_vec())), (2, None)];
    let rows = [(3, vec![11], vec![5, 0, 0], first), (3, vec![12], vec![6, 0, 0], vec![])];
    assert_eq!(whole.long, rows);
    assert_eq!(whole.records, [samples::record_with_values()]);
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
    let change = |kind, first, words| Change {
        table: 1,
        kind,
        first,
        key: &[7, 8],
        words,
        value_words: &[],
    };
    assert_eq!(
        first.entries().collect::<Vec<_>>(),
        [change(ChangeKind::Put, 0, put), change(ChangeKind::Update, 1, &[201]),]
    );
    assert_eq!((second.stamp, second.version), (1003, 4002));
    assert_eq!(
        second.entries().collect::<Vec<_>>(),
        [Change { table: 2, key: &[9], ..change(ChangeKind::Delete, 0, &[]) }]
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
