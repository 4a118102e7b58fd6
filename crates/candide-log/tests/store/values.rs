//! Values of any length, in the log and in checkpoints.

use crate::support::{Map, Opened, open, schema};
use candide_log::format::commit::{ChangeKind, CommitWriter, RecordBuffer};
use candide_log::format::long_row::put_long_row;
use candide_log::format::manifest::fields_hash;
use candide_log::schema::{FieldPlace, FieldSchema, TypeSchema};
use candide_log::{OpenError, TableSchema};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeMap;

/// The places of the columns in a row: a number, a text, and bytes that may be absent.
const TEXT: u16 = 1;
const NOTE: u16 = 2;
const LENGTHS: [usize; 8] = [0, 1, 7, 8, 100, 5_000, 20_000, 70_000];

/// Returns the schema of the table.
fn stories() -> TableSchema {
    let field =
        |name: &str, place, ty| FieldSchema { name: name.to_owned(), place, ty, default: None };
    let column = |word| FieldPlace::Column { group: 0, word, shift: 0 };
    let fields = vec![
        field("id", FieldPlace::Key { word: 0 }, TypeSchema::Unsigned(64)),
        field("number", column(0), TypeSchema::Unsigned(64)),
        field("text", column(TEXT), TypeSchema::LongText),
        field("note", column(NOTE), TypeSchema::Option(Box::new(TypeSchema::LongBytes))),
    ];
    TableSchema {
        groups: vec![("row".to_owned(), 3)],
        indexes: Vec::new(),
        schema: fields_hash(&fields),
        fields,
        ..schema("stories")
    }
}

type Values = Vec<(u16, Option<Vec<u8>>)>;

/// A change of a row.
#[derive(Debug, Clone)]
struct Write {
    kind: ChangeKind,
    key: u64,
    first: u16,
    words: Vec<u64>,
    values: Values,
}

/// The number of a row, and its values.
type Row = (u64, BTreeMap<u16, Vec<u8>>);

impl Write {
    fn apply(&self, rows: &mut BTreeMap<u64, Row>) {
        if self.kind == ChangeKind::Delete {
            rows.remove(&self.key);
            return;
        }
        let (number, values) = rows.entry(self.key).or_default();
        for (place, word) in (self.first..).zip(&self.words) {
            match place {
                0 => *number = *word,
                _ if self.kind == ChangeKind::Put => _ = values.remove(&place),
                _ => {}
            }
        }
        for (place, bytes) in &self.values {
            match bytes {
                Some(bytes) => _ = values.insert(*place, bytes.clone()),
                None => _ = values.remove(place),
            }
        }
    }
}

fn commit(version: u64, writes: &[Write]) -> Vec<u64> {
    let mut buffer = RecordBuffer::new();
    let mut record = CommitWriter::begin(&mut buffer);
    for Write { kind, key, first, words, values } in writes {
        record.entry(*kind, 1, *first, words.len() as u16, Some(&[*key]));
        record.push_all(words);
        values.iter().for_each(|(place, bytes)| record.value(*place, bytes.as_deref()));
    }
    record.finish(version, version);
    buffer.words().to_vec()
}

/// Returns rows as an opening finds them.
fn found(rows: &BTreeMap<u64, Row>) -> Map {
    let row = |(key, (number, values)): (&u64, &Row)| {
        let values: Vec<_> = values.iter().map(|(at, bytes)| (*at, Some(&bytes[..]))).collect();
        let mut words = Vec::new();
        put_long_row(&mut words, &[], &[*number, 0, 0], &values);
        ((1, vec![*key]), words.split_off(1))
    };
    rows.iter().map(row).collect()
}

fn text(number: usize) -> Vec<u8> {
    let length = LENGTHS[number % LENGTHS.len()];
    (0..length).map(|place| b'a' + ((place + number) % 26) as u8).collect()
}

/// Returns the writes of a commit: each kind of change comes with each length.
fn writes(number: usize, rows: &BTreeMap<u64, Row>) -> Vec<Write> {
    let key = (number % 5) as u64;
    let write = |kind, first, words: &[u64], values: Values| Write {
        kind,
        key,
        first,
        words: words.to_vec(),
        values,
    };
    let new = number as u64;
    let whole = || {
        let values = vec![
            (TEXT, Some(text(number))),
            (NOTE, (!number.is_multiple_of(3)).then(|| text(new as usize / 3))),
        ];
        write(ChangeKind::Put, 0, &[new, 0, 0], values)
    };
    if !rows.contains_key(&key) {
        return vec![whole()];
    }
    match number % 11 {
        0 => vec![write(ChangeKind::Delete, 0, &[], Vec::new())],
        1 => vec![write(ChangeKind::Delete, 0, &[], Vec::new()), whole()],
        2 | 3 => vec![whole()],
        // An image that repeats what it does not change.
        4 => vec![write(ChangeKind::Update, 0, &[new, 0, 0], vec![(NOTE, None)])],
        5 => vec![write(ChangeKind::Put, TEXT, &[0], Vec::new())],
        6 => vec![write(ChangeKind::Update, 0, &[new], vec![(TEXT, Some(text(number)))])],
        7 => vec![write(ChangeKind::Update, TEXT, &[0], vec![(TEXT, Some(Vec::new()))])],
        _ => vec![
            write(ChangeKind::Update, 0, &[new], Vec::new()),
            write(ChangeKind::Update, TEXT, &[0, 0], vec![(TEXT, Some(text(number)))]),
        ],
    }
}

#[test]
fn the_log_and_checkpoints_have_the_values_of_each_commit() {
    let disk = SimDisk::new();
    let mut opened = open(disk.clone()).unwrap();
    assert_eq!(opened.store.add_table(stories()).unwrap(), 1);
    let mut rows = BTreeMap::new();
    let mut version = 0;
    // The contents after each commit, and the position at which it was durable.
    let mut noted = vec![(0, Map::new())];
    for number in 0..120 {
        let writes = writes(number, &rows);
        writes.iter().for_each(|write| write.apply(&mut rows));
        version += 1;
        noted.push((usize::MAX, found(&rows)));
        opened.log.write(&[&commit(version, &writes)], version).unwrap();
        opened.log.sync().unwrap();
        noted.last_mut().unwrap().0 = disk.position();
        if number % 17 == 10 {
            opened.store.checkpoint().unwrap();
        }
        if number % 13 == 12 {
            let Opened { store, log, .. } = opened;
            log.close().unwrap();
            drop(store);
            opened = open(disk.clone()).unwrap();
            assert!(opened.rows == found(&rows), "after commit {number}");
            version = 0;
        }
    }
    let crashes = CrashOptions { exhaustive: 2, pieces: 2, samples: 1, ..Default::default() };
    let mut states = 0;
    for state in disk.crash_states(&crashes).step_by(7) {
        let position = state.id().position;
        let least = noted.iter().rposition(|(at, _)| *at <= position).unwrap_or(0);
        let now =
            open(state.disk()).unwrap_or_else(|error| panic!("{error}: {}", state.describe()));
        let is_known = noted[least..].iter().take(3).any(|(_, rows)| *rows == now.rows);
        assert!(is_known, "{}", state.describe());
        states += 1;
    }
    assert!(states > 100, "{states} states");
}

#[test]
fn values_of_other_columns_and_texts_that_are_none_are_damage() {
    let refusal = |words: &[u64], values: Values| {
        let disk = SimDisk::new();
        let mut opened = open(disk.clone()).unwrap();
        opened.store.add_table(stories()).unwrap();
        let write =
            Write { kind: ChangeKind::Put, key: 1, first: 0, words: words.to_vec(), values };
        opened.log.write(&[&commit(1, &[write])], 1).unwrap();
        opened.log.close().unwrap();
        drop(opened.store);
        let refused = open(disk).map(|opened| opened.rows).unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
        refused.to_string()
    };
    let of_number = refusal(&[0, 0, 0], vec![(0, Some(b"text".to_vec()))]);
    assert!(of_number.contains("a value of word 0, which has none"), "{of_number}");
    let not_text = refusal(&[1, 0, 0], vec![(TEXT, Some(vec![0xff; 9]))]);
    assert!(not_text.contains("the text of column \"text\" is not UTF-8"), "{not_text}");
    let address = refusal(&[1, 2, 0], Vec::new());
    assert!(address.contains("the word of column \"text\" is not 0"), "{address}");
}
