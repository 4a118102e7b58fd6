//! Commit records: words of any kind are read or refused, and written records are read unchanged.

use crate::Choices;
use candide_log::format::bytes::byte_words;
use candide_log::format::commit::{
    Change, ChangeKind, CommitRecord, CommitWriter, Head, RecordBuffer, records,
};
use candide_log::format::value::LongValue;
use std::borrow::Cow;

/// Reads the bytes, and a record with contents that the bytes choose.
pub fn run(bytes: &[u8]) {
    let whole = &bytes[..bytes.len() / 8 * 8];
    let words = byte_words(whole).expect("whole words");
    records(&words).flatten().for_each(again);
    let choices = &mut Choices::new(bytes);
    let (record, changes) = written(choices);
    let (read, rest) = CommitRecord::parse(&record).expect("as it was written");
    assert!(rest.is_empty());
    let read: Vec<_> = read.entries().map(owned).collect();
    assert_eq!(read, changes);
    damaged(choices, record);
}

/// A change that owns its words: the header, the key, the words and the values.
type Owned = (Head, Vec<u64>, Vec<u64>, Vec<OwnedValue>);

/// A value: its place, and its bytes.
type OwnedValue = (u16, Option<Vec<u8>>);

fn owned(change: Change<'_>) -> Owned {
    let Change { table, kind, first, key, words, .. } = change;
    let head = Head { kind, table, first, count: words.len() as u16 };
    (head, key.to_vec(), words.to_vec(), values(change))
}

fn values(change: Change<'_>) -> Vec<OwnedValue> {
    let own = |value: LongValue<'_>| (value.place, value.bytes().map(Cow::into_owned));
    change.values().map(own).collect()
}

fn borrowed(values: &[OwnedValue]) -> Vec<(u16, Option<&[u8]>)> {
    values.iter().map(|(place, bytes)| (*place, bytes.as_deref())).collect()
}

/// Writes a record that was read with all its keys, and reads it again.
fn again(record: CommitRecord<'_>) {
    assert_eq!(record.entries().count(), record.entries().len());
    let mut buffer = RecordBuffer::new();
    let mut writer = CommitWriter::begin(&mut buffer);
    for change in record.entries() {
        let Change { table, kind, first, key, words, .. } = change;
        writer.entry(kind, table, first, words.len() as u16, Some(key));
        writer.push_all(words);
        writer.values(&borrowed(&values(change)));
    }
    writer.finish(record.stamp, record.version);
    let (read, _) = CommitRecord::parse(buffer.words()).expect("as it was written");
    assert_eq!((read.stamp, read.version), (record.stamp, record.version));
    assert!(read.entries().eq(record.entries()));
}

/// Writes a record of the changes that the bytes choose.
fn written(choices: &mut Choices<'_>) -> (Vec<u64>, Vec<Owned>) {
    let mut buffer = RecordBuffer::new();
    let mut changes: Vec<Owned> = Vec::new();
    let mut writer = CommitWriter::begin(&mut buffer);
    for _ in 0..1 + choices.below(4) {
        let kind = [ChangeKind::Update, ChangeKind::Put, ChangeKind::Delete][choices.below(3)];
        let first = if kind == ChangeKind::Delete { 0 } else { choices.byte().into() };
        let count = if kind == ChangeKind::Delete { 0 } else { choices.below(4) };
        let same_row = choices.below(3) == 0;
        let before = changes.last().filter(|_| same_row);
        let (table, key) = match before {
            Some((head, key, ..)) => (head.table, key.clone()),
            None => {
                let key_words = choices.below(4);
                (choices.byte().into(), (0..key_words).map(|_| choices.word()).collect())
            }
        };
        let head = Head { kind, table, first, count: count as u16 };
        let mut words: Vec<u64> = (0..count).map(|_| choices.word()).collect();
        let mut values: Vec<OwnedValue> = Vec::new();
        let mut place = first;
        let most = if kind == ChangeKind::Delete { 1 } else { 3 };
        for _ in 0..choices.below(most) {
            let bytes = vec![choices.byte(); choices.below(20)];
            values.push((place, (choices.below(3) > 0).then_some(bytes)));
            if let Some(word) = words.get_mut(usize::from(place - first)) {
                *word = 0;
            }
            place += 1 + choices.below(3) as u16;
        }
        match before {
            Some(_) => writer.change_same_row(head, |place| words[place]),
            None => writer.change(head, key.len() as u8, |place| key[place], |place| words[place]),
        }
        writer.values(&borrowed(&values));
        changes.push((head, key, words, values));
    }
    writer.finish(choices.word(), choices.word());
    (buffer.words().to_vec(), changes)
}

/// Reads a record of which one word has changed, or which ends early.
fn damaged(choices: &mut Choices<'_>, mut record: Vec<u64>) {
    let place = choices.below(record.len().min(256));
    CommitRecord::parse(&record[..place]).expect_err("the record is cut off");
    record[place] ^= choices.word().max(1);
    records(&record).flatten().for_each(again);
}
