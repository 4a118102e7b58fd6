//! MANIFEST: bytes of any kind are read or refused, and a manifest that was read is written
//! unchanged.

use crate::choices::{Choices, sealed};
use candide_log::format::manifest::{Checkpoint, Entry, Front, Manifest, Part, VERSION};
use candide_log::schema::{IndexSchema, TableSchema};

/// Reads the bytes, and a manifest with contents that the bytes choose.
pub fn run(bytes: &[u8]) {
    again(bytes);
    // The same bytes behind the first fields of a MANIFEST.
    let mut whole = vec![0; 24];
    whole.extend_from_slice(bytes);
    again(&with_length(whole));
    let choices = &mut Choices::new(bytes);
    let mut manifest = manifest(choices);
    let Ok(mut written) = manifest.encode() else { return };
    assert_eq!(Manifest::decode(&written).as_ref(), Ok(&manifest));
    damaged(choices, written.clone());
    let base = written.len();
    for _ in 0..choices.below(4) {
        let entry = entry(choices, &manifest);
        let Ok(bytes) = entry.encode(&manifest) else { continue };
        let is_new = match &entry {
            Entry::Table(new) => manifest.tables.iter().all(|table| table.name != new.name),
            Entry::LastSegment(_) => true,
        };
        written.extend_from_slice(&bytes);
        if !is_new {
            Front::decode(&written).expect_err("two tables have the same name");
            return;
        }
        manifest.apply(entry);
        assert_eq!(Manifest::decode(&written).as_ref(), Ok(&manifest));
    }
    damaged_entries(choices, base, &written);
}

/// Reads bytes. If they are a manifest, checks that writing it gives the same bytes.
fn again(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    let written = manifest.encode().expect("as it was read");
    // Entries become a part of the base, and the first version is not written any more.
    if bytes[8] == VERSION as u8 && bytes[16..24] == (bytes.len() as u64).to_le_bytes() {
        assert_eq!(written, bytes);
    }
    assert_eq!(Manifest::decode(&written), Ok(manifest));
}

/// Returns the bytes with the length and the checksum that they should have.
fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&[0; 4]);
    let length = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    sealed(bytes, b"candiMAN", VERSION)
}

/// Checks that a damaged byte is refused; and reads the bytes when their checksum fits again.
fn damaged(choices: &mut Choices<'_>, mut bytes: Vec<u8>) {
    let place = choices.word() as usize % bytes.len();
    Manifest::decode(&bytes[..place]).expect_err("MANIFEST is cut off");
    bytes[place] ^= choices.byte().max(1);
    Manifest::decode(&bytes).expect_err("a byte is damaged");
    again(&sealed(bytes.clone(), b"candiMAN", VERSION));
    bytes.truncate(place.max(24));
    again(&with_length(bytes));
}

/// Checks that the entries before a damaged one are read, and no entry after it.
fn damaged_entries(choices: &mut Choices<'_>, base: usize, whole: &[u8]) {
    if whole.len() == base {
        return;
    }
    let place = base + choices.word() as usize % (whole.len() - base);
    let cut = Front::decode(&whole[..place]).expect("the base is whole");
    assert!((base..=place).contains(&cut.bytes) && cut.tail.is_none() == (cut.bytes == place));
    let mut bytes = whole.to_vec();
    bytes[place] ^= choices.byte().max(1);
    let front = Front::decode(&bytes).expect("the base is whole");
    assert!((base..=place).contains(&front.bytes) && front.tail.is_some());
    assert_eq!(front.manifest, Manifest::decode(&whole[..front.bytes]).expect("a front"));
}

fn entry(choices: &mut Choices<'_>, before: &Manifest) -> Entry {
    let more = choices.byte().max(1);
    if choices.below(3) == 0 {
        return Entry::LastSegment(before.last_segment.saturating_add(more.into()));
    }
    let last = before.tables.last().map_or(0, |table| table.number);
    Entry::Table(table(choices, last + u32::from(more)))
}

fn manifest(choices: &mut Choices<'_>) -> Manifest {
    let part =
        |choices: &mut Choices<'_>| Part { bytes: choices.word(), crc: choices.byte().into() };
    let checkpoint = (choices.below(2) == 0).then(|| Checkpoint {
        number: choices.word(),
        generation: choices.byte().into(),
        cut: choices.word(),
        parts: (0..choices.below(3)).map(|_| part(choices)).collect(),
    });
    let mut number = 0;
    let mut tables = Vec::new();
    for _ in 0..choices.below(4) {
        // Tables out of order are refused.
        number += u32::from(choices.byte() % 200);
        tables.push(table(choices, number));
    }
    let uuid = std::array::from_fn(|_| choices.byte());
    let [sequence, first_segment, last_segment] = std::array::from_fn(|_| choices.word());
    Manifest { uuid, sequence, first_segment, last_segment, checkpoint, tables }
}

fn table(choices: &mut Choices<'_>, number: u32) -> TableSchema {
    TableSchema {
        number,
        name: text(choices),
        row_type: text(choices),
        schema: choices.word(),
        key_words: choices.byte().into(),
        key_widths: (0..choices.below(3)).map(|_| choices.below(66) as u32).collect(),
        groups: (0..choices.below(3))
            .map(|_| (text(choices), u32::from(choices.byte()) << choices.below(10)))
            .collect(),
        ordered: choices.below(2) == 0,
        splitting: [None, Some(false), Some(true)][choices.below(3)],
        policy: (choices.below(2) == 0).then(|| text(choices)),
        indexes: (0..choices.below(3))
            .map(|_| IndexSchema { name: text(choices), unique: choices.below(2) == 0 })
            .collect(),
    }
}

fn text(choices: &mut Choices<'_>) -> String {
    (0..choices.below(5)).map(|_| char::from(choices.byte())).collect()
}
