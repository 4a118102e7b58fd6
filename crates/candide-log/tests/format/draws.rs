//! Random data, the same in every run.

use crate::fields::fields;
use candide_log::format::commit::{ChangeKind, CommitWriter, Head, RecordBuffer};
use candide_log::format::manifest::{Checkpoint, Entry, Manifest, Part, fields_hash};
use candide_log::schema::{IndexSchema, TableSchema, TableState};

/// A generator of random numbers.
pub struct Draws(u64);

/// A change that owns its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedChange {
    pub head: Head,
    pub key: Vec<u64>,
    pub words: Vec<u64>,
    /// The places and the bytes of values.
    pub values: Vec<(u16, Option<Vec<u8>>)>,
    /// Whether the writer omits the key.
    pub same_row: bool,
}

impl Draws {
    /// Returns a generator that begins with a seed.
    pub fn new(seed: u64) -> Draws {
        Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number of 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((self.word() >> 32) as usize) % bound
    }

    /// Returns a number whose size varies: small ones are as likely as large ones.
    pub fn number(&mut self) -> u64 {
        let bits = self.below(64);
        self.word() >> bits
    }

    /// Returns up to `most` words.
    pub fn words(&mut self, most: usize) -> Vec<u64> {
        (0..self.below(most + 1)).map(|_| self.number()).collect()
    }

    /// Returns changes of one commit, at least one.
    pub fn changes(&mut self) -> Vec<OwnedChange> {
        let mut changes: Vec<OwnedChange> = Vec::new();
        for _ in 0..1 + self.below(6) {
            let kind = [ChangeKind::Update, ChangeKind::Put, ChangeKind::Delete][self.below(3)];
            let (first, words) = match kind {
                ChangeKind::Delete => (0, Vec::new()),
                _ => (self.below(1000) as u16, self.words(9)),
            };
            let same_row = self.below(3) == 0 && !changes.is_empty();
            let (table, key) = match changes.last().filter(|_| same_row) {
                Some(last) => (last.head.table, last.key.clone()),
                None => {
                    let key = [vec![self.number()], self.words(4)].concat();
                    (self.word() as u16, key)
                }
            };
            let head = Head { kind, table, first, count: words.len() as u16 };
            let mut change = OwnedChange { head, key, words, values: Vec::new(), same_row };
            if kind != ChangeKind::Delete && self.below(4) == 0 {
                self.add_values(&mut change);
            }
            changes.push(change);
        }
        changes
    }

    /// Adds values to a change.
    fn add_values(&mut self, change: &mut OwnedChange) {
        let mut place = change.head.first.saturating_sub(2);
        for _ in 0..1 + self.below(3) {
            place += 1 + self.below(3) as u16;
            let bytes = (self.below(4) > 0).then(|| vec![b'v'; self.below(20)]);
            change.values.push((place, bytes));
            let at = place.checked_sub(change.head.first);
            if let Some(word) = at.and_then(|at| change.words.get_mut(usize::from(at))) {
                *word = 0;
            }
        }
    }

    /// Returns commit records, each in words of its own.
    pub fn records(&mut self, most: usize) -> Vec<Vec<u64>> {
        let record = |draws: &mut Draws| {
            let changes = draws.changes();
            write(&changes, draws.number(), draws.number())
        };
        (0..self.below(most + 1)).map(|_| record(self)).collect()
    }

    fn text(&mut self) -> String {
        (0..self.below(9)).map(|_| ['a', 'é', '\u{0}', '"', '漢', '𝄞'][self.below(6)]).collect()
    }

    fn table(&mut self, number: u32) -> TableSchema {
        let key_words = 1 + self.below(255) as u16;
        let groups: Vec<_> =
            (0..self.below(4)).map(|_| (self.text(), self.below(99) as u32)).collect();
        let fields = match self.below(2) {
            0 => Vec::new(),
            _ => fields(self, key_words, &groups),
        };
        let schema = if fields.is_empty() { self.word() } else { fields_hash(&fields) };
        let state = match self.below(4) {
            0 => TableState::Dropped,
            1 => TableState::Unfinished { from: self.word() as u32 },
            _ => TableState::InUse,
        };
        let name = match state {
            TableState::InUse => format!("{number}{}", self.text()),
            _ => String::new(),
        };
        TableSchema {
            number,
            name,
            row_type: self.text(),
            schema,
            key_words,
            key_widths: (0..self.below(4)).map(|_| self.below(65) as u32).collect(),
            groups,
            ordered: self.below(2) == 0,
            splitting: [None, Some(false), Some(true)][self.below(3)],
            policy: [None, Some(self.text())][self.below(2)].clone(),
            indexes: (0..self.below(3))
                .map(|_| IndexSchema {
                    name: self.text(),
                    unique: self.below(2) == 0,
                    ordered: self.below(2) == 0,
                    columns: (0..self.below(3).min(fields.len()))
                        .map(|_| self.below(fields.len()) as u16)
                        .collect(),
                })
                .collect(),
            fields,
            state,
        }
    }

    /// Returns the contents of a MANIFEST.
    pub fn manifest(&mut self) -> Manifest {
        let part = |draws: &mut Draws| Part { bytes: draws.number(), crc: draws.word() as u32 };
        let checkpoint = (self.below(2) == 0).then(|| Checkpoint {
            number: self.number(),
            generation: self.number().max(1),
            cut: self.number(),
            parts: (0..self.below(5)).map(|_| part(self)).collect(),
        });
        let mut number = 0;
        let mut tables = Vec::new();
        for _ in 0..self.below(5) {
            number += 1 + self.below(9000) as u32;
            tables.push(self.table(number));
        }
        Manifest {
            uuid: self.uuid(),
            sequence: self.number(),
            first_segment: self.number(),
            last_segment: self.number(),
            checkpoint,
            tables,
        }
    }

    /// Returns an entry that can follow these contents.
    pub fn entry(&mut self, before: &Manifest) -> Entry {
        if self.below(3) == 0 {
            return Entry::LastSegment(before.last_segment + 1 + self.below(9) as u64);
        }
        let last = before.tables.last().map_or(0, |table| table.number);
        if last > 0 && self.below(3) == 0 {
            let number = before.tables[self.below(before.tables.len())].number;
            return Entry::Changed(self.table(number));
        }
        // Behind the last table, or in a gap.
        let number = match self.below(2) {
            0 => (1..last).find(|number| before.table(*number).is_none()).unwrap_or(last + 1),
            _ => last + 1 + self.below(9) as u32,
        };
        Entry::Table(self.table(number))
    }

    /// Returns 16 random bytes.
    pub fn uuid(&mut self) -> [u8; 16] {
        std::array::from_fn(|_| self.word() as u8)
    }
}

/// Returns the commit record of these changes, written in one of the writer's ways or the other.
pub fn write(changes: &[OwnedChange], stamp: u64, version: u64) -> Vec<u64> {
    let mut buffer = RecordBuffer::new();
    let mut writer = CommitWriter::begin(&mut buffer);
    for (number, change) in changes.iter().enumerate() {
        let OwnedChange { head, key, words, values, same_row } = change;
        let values = values.iter().map(|(place, bytes)| (*place, bytes.as_deref()));
        let values: Vec<_> = values.collect();
        if number % 2 == 0 {
            match same_row {
                true => writer.change_same_row(*head, |place| words[place]),
                false => {
                    writer.change(*head, key.len() as u8, |place| key[place], |place| words[place]);
                }
            }
            writer.values(&values);
            continue;
        }
        let key = (!same_row).then_some(key.as_slice());
        writer.entry(head.kind, head.table, head.first, head.count, key);
        match words.as_slice() {
            [one] => writer.push(*one),
            words => writer.push_all(words),
        }
        writer.values(&values);
    }
    let count = writer.finish(stamp, version);
    assert_eq!(count, buffer.words().len());
    buffer.words().to_vec()
}
