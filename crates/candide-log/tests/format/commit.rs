use crate::damage::expect;
use crate::draws::{Draws, OwnedChange, write};
use candide_log::format::commit::{
    Change, ChangeKind, CommitRecord, CommitWriter, HEADER_WORDS, Head, RecordBuffer, SAME_ROW,
    entry_words, records,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns what a decoder should say of a change.
fn expected(change: &OwnedChange) -> Change<'_> {
    let Head { kind, table, first, .. } = change.head;
    Change { table, kind, first, key: &change.key, words: &change.words }
}

#[test]
fn a_written_record_is_read_again() {
    let mut draws = Draws::new(1);
    for _ in 0..3000 {
        let changes = draws.changes();
        let (stamp, version) = (draws.number(), draws.number());
        let mut words = write(&changes, stamp, version);
        let length = words.len();
        let rest = draws.words(3);
        words.extend(&rest);
        let (record, behind) = CommitRecord::parse(&words).unwrap();
        assert_eq!((record.stamp, record.version, behind), (stamp, version, &rest[..]));
        assert_eq!(record.words(), &words[..length]);
        assert_eq!(record.entries().len(), changes.len());
        let read: Vec<Change<'_>> = record.entries().collect();
        assert_eq!(read, changes.iter().map(expected).collect::<Vec<_>>());
    }
}

#[test]
fn the_words_of_a_record_are_at_their_places() {
    let head = |kind, first, count| Head { kind, table: 0x1234, first, count };
    let mut buffer = RecordBuffer::new();
    let before = write_one(&mut buffer);
    let mut writer = CommitWriter::begin(&mut buffer);
    writer.change(head(ChangeKind::Put, 5, 2), 1, |_| 100, |place| 200 + place as u64);
    writer.change_same_row(head(ChangeKind::Update, 9, 1), |_| 300);
    writer.entry(ChangeKind::Delete, 0x1234, 0, 0, Some(&[101, 102]));
    assert_eq!(writer.finish(8, 9), 12);
    let record = [
        12 | 3 << 32,
        8,
        9,
        0x1234_0005_0002_0101,
        100,
        200,
        201,
        0x1234_0009_0001_0080,
        300,
        0x1234_0000_0000_0202,
        101,
        102,
    ];
    let (first, second) = buffer.words().split_at(before.len());
    assert_eq!(first, before);
    assert_eq!(second, record);
    assert_eq!(HEADER_WORDS + entry_words(1, 2) + entry_words(0, 1) + entry_words(2, 0), 12);
}

/// Writes a record, and returns its words.
fn write_one(buffer: &mut RecordBuffer) -> Vec<u64> {
    let mut writer = CommitWriter::begin(buffer);
    writer.entry(ChangeKind::Put, 1, 0, 1, Some(&[5]));
    writer.push(6);
    assert_eq!(writer.finish(1, 2), 6);
    buffer.words().to_vec()
}

#[test]
fn a_record_without_entries_or_without_an_end_is_left_out() {
    let mut buffer = RecordBuffer::new();
    let before = write_one(&mut buffer);
    assert_eq!(CommitWriter::begin(&mut buffer).finish(3, 4), 0);
    assert_eq!(buffer.words(), before);
    let mut writer = CommitWriter::begin(&mut buffer);
    writer.entry(ChangeKind::Put, 1, 0, 1, Some(&[5]));
    writer.push(6);
    assert_eq!(buffer.words(), before);
    let panics = AssertUnwindSafe(|| {
        let head = Head { kind: ChangeKind::Put, table: 1, first: 0, count: 3 };
        let mut writer = CommitWriter::begin(&mut buffer);
        writer.change(head, 1, |_| 5, |place| [6, 7][place]);
    });
    assert!(catch_unwind(panics).is_err(), "the third word is not there");
    assert_eq!(buffer.words(), before);
    buffer.clear();
    assert!(buffer.is_empty() && buffer.capacity() > 0);
}

#[test]
fn neighbouring_words_of_a_row_become_one_entry() {
    let mut buffer = RecordBuffer::new();
    let mut writer = CommitWriter::begin(&mut buffer);
    let head = Head { kind: ChangeKind::Put, table: 1, first: 0, count: 2 };
    writer.change_slice(head, 1, |_| 5, &[6, 7]);
    writer.extend_last(&[8]);
    writer.extend_last(&[]);
    writer.change_same_row_slice(Head { first: 9, count: 1, ..head }, &[10]);
    writer.extend_last(&[11, 12]);
    writer.finish(3, 4);
    let (record, rest) = CommitRecord::parse(buffer.words()).unwrap();
    let read: Vec<_> = record.entries().map(|change| (change.first, change.words)).collect();
    assert_eq!(read, [(0, &[6, 7, 8][..]), (9, &[10, 11, 12])]);
    assert!(rest.is_empty());
}

#[test]
fn keys_and_rows_of_the_largest_size_are_written() {
    let change = OwnedChange {
        head: Head { kind: ChangeKind::Put, table: u16::MAX, first: 0, count: u16::MAX },
        key: (0..255).collect(),
        words: (0..65_535).collect(),
        same_row: false,
    };
    let words = write(std::slice::from_ref(&change), u64::MAX, u64::MAX);
    let (record, _) = CommitRecord::parse(&words).unwrap();
    assert_eq!(record.entries().next(), Some(expected(&change)));
}

#[test]
fn every_flipped_bit_is_refused_or_changes_the_record() {
    let mut draws = Draws::new(2);
    for _ in 0..30 {
        let words = write(&draws.changes(), draws.number(), draws.number());
        let whole = CommitRecord::parse(&words).unwrap().0;
        let changes: Vec<_> = whole.entries().collect();
        let mut damaged = words.clone();
        for bit in 0..64 * words.len() {
            damaged[bit / 64] ^= 1 << (bit % 64);
            if let Ok((record, _)) = CommitRecord::parse(&damaged) {
                let read: Vec<_> = record.entries().collect();
                let is_same = (record.stamp, record.version) == (whole.stamp, whole.version)
                    && read == changes;
                assert!(!is_same, "bit {} of word {} has no meaning", bit % 64, bit / 64);
            }
            damaged[bit / 64] ^= 1 << (bit % 64);
        }
    }
}

#[test]
fn random_words_never_panic() {
    let mut draws = Draws::new(3);
    for _ in 0..20_000 {
        let mut words = draws.words(12);
        if let Some(first) = words.first_mut().filter(|_| draws.below(4) > 0) {
            *first = ((3 + draws.below(10)) | (draws.below(4) << 32)) as u64;
        }
        for record in records(&words).flatten() {
            assert_eq!(record.entries().count(), record.entries().len());
        }
    }
}

#[test]
fn records_follow_one_another_up_to_the_first_error() {
    let mut draws = Draws::new(4);
    for _ in 0..200 {
        let each = draws.records(5);
        let mut words = each.concat();
        let read: Vec<_> = records(&words).map(|record| record.unwrap().words()).collect();
        assert_eq!(read, each);
        let end = 8 * words.len() as u64;
        words.extend([1, 2, 3]);
        let read: Vec<_> = records(&words).collect();
        assert_eq!(read.len(), each.len() + 1);
        let last = read.into_iter().next_back().unwrap();
        expect(last, end, "a commit record has 1 words");
    }
}

#[test]
fn each_mistake_in_a_commit_record_has_its_own_error() {
    let entry = |table: u64, first: u64, count: u64, key: u64, kind: u64| {
        table << 48 | first << 32 | count << 16 | key << 8 | kind
    };
    let same = u64::from(SAME_ROW);
    let parse = |words: &[u64]| CommitRecord::parse(words).map(|_| ());
    let record = |entries: u64, words: &[u64]| {
        let counts = (3 + words.len()) as u64 | entries << 32;
        CommitRecord::parse(&[&[counts, 0, 0], words].concat()).map(|_| ())
    };
    let put = entry(1, 0, 0, 1, 1);
    expect(parse(&[]), 0, "a commit record ends after 0 words");
    expect(parse(&[3, 0]), 16, "a commit record ends after 2 words");
    expect(parse(&[2, 0, 0]), 0, "a commit record has 2 words");
    expect(parse(&[4, 0, 0]), 0, "a commit record has 4 words, and 3 are left");
    expect(parse(&[u64::MAX; 3]), 0, "a commit record has 4294967295 words, and 3 are left");
    expect(record(0, &[]), 0, "a commit record has no entries");
    expect(record(1, &[]), 24, "a commit record has fewer entries than it states");
    expect(record(2, &[put, 7]), 40, "a commit record has fewer entries than it states");
    expect(record(1, &[put, 7, 8]), 40, "a commit record has 1 entries, and words behind them");
    expect(record(1, &[put]), 24, "a key of 1 words is cut off");
    expect(record(1, &[entry(1, 0, 2, 1, 1), 7, 8]), 24, "an entry of 2 words is cut off");
    expect(record(1, &[entry(1, 0, 0, 0, 1 | same)]), 24, "the first entry has no key");
    expect(record(1, &[entry(1, 0, 0, 1, 3), 7]), 24, "an entry has the unknown kind 3");
    expect(record(1, &[entry(1, 0, 1, 1, 2), 7, 8]), 24, "a delete has words");
    expect(record(1, &[entry(1, 1, 0, 1, 2), 7]), 24, "a delete has words");
    expect(
        record(1, &[entry(1, 0xffff, 1, 1, 0), 7, 8]),
        24,
        "1 words from word 65535 on are beyond any row",
    );
    expect(
        record(2, &[put, 7, entry(2, 0, 0, 0, 1 | same)]),
        40,
        "an entry of table 2 continues a row of table 1",
    );
    expect(
        record(2, &[put, 7, entry(1, 0, 0, 1, 1 | same), 8]),
        40,
        "an entry has a key, although it is of the same row as the entry before",
    );
}
