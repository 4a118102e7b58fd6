//! MANIFEST: the tables, the checkpoint in force, and the segments that recovery needs. A file is a
//! base, which has all of that as of one moment, and entries, which are later changes.

#![forbid(unsafe_code)]

// Layers, lowest first: texts, contents, fields, table, entry.
mod contents;
mod entry;
mod fields;
mod table;
mod texts;

pub use contents::{BASE_BYTES_MAX, Checkpoint, Manifest, Part, VERSION};
pub use entry::{ENTRY_FIELDS, Entry};
pub use fields::fields_hash;

use super::bytes::{self, Field, Reader};
use super::{Malformed, Uuid};
use crate::schema::TableSchema;
use contents::CRC_BYTES;
use std::collections::HashSet;
use table::{check_table, put_table, take_table};

/// The first version, in which a file is a base.
const WITHOUT_ENTRIES: u32 = 1;

/// The name of the file in errors.
const NAME: &str = "MANIFEST";
const MAGIC_BYTES: &[u8; 8] = b"candiMAN";
const RESERVED: Field = Field::new("reserved", 12, 4);
const BYTES: Field = Field::new("length", 16, 8);
const UUID: Field = Field::new("database", 24, 16);
const SEQUENCE: Field = Field::new("sequence number", 40, 8);
const FIRST_SEGMENT: Field = Field::new("first segment", 48, 8);
const CHECKPOINT: Field = Field::new("checkpoint: number", 56, 8);
const GENERATION: Field = Field::new("checkpoint: generation", 64, 8);
const CUT: Field = Field::new("checkpoint: cut", 72, 8);
const PARTS: Field = Field::new("checkpoint: parts", 80, 4);
const TABLES: Field = Field::new("tables", 84, 4);
const LAST_SEGMENT: Field = Field::new("last segment", 88, 8);

/// The fields with which MANIFEST begins.
pub const FIELDS: &[Field] = &[
    bytes::MAGIC,
    bytes::FORMAT,
    RESERVED,
    BYTES,
    UUID,
    SEQUENCE,
    FIRST_SEGMENT,
    CHECKPOINT,
    GENERATION,
    CUT,
    PARTS,
    TABLES,
    LAST_SEGMENT,
];

/// The number of bytes of these fields.
pub const HEADER_BYTES: usize = 96;
/// The least number of bytes for which a base counts in the limit of the length of its entries.
const BASE_BYTES_USUAL: u64 = 4096;
/// The number of bytes for each part of a checkpoint.
const PART_ENTRY_BYTES: usize = 12;

/// The front of a file: its base, and the entries behind it up to the first incomplete entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The contents.
    pub manifest: Manifest,
    /// The number of bytes.
    pub bytes: usize,
    /// The reason why the bytes behind the front are no entry. `None` if there are no such bytes.
    pub tail: Option<Malformed>,
}

/// Returns the most bytes of a file whose base has `base` bytes: the entries together may be as
/// long as the base.
pub fn file_bytes_max(base: u64) -> u64 {
    2 * base.max(BASE_BYTES_USUAL)
}

/// Checks that a file can have this length, before the whole file is read. `start` are its first
/// [`HEADER_BYTES`], or all its bytes if it has fewer.
///
/// # Errors
/// The file has another length than its first bytes state, or does not begin as a MANIFEST does.
pub fn check_length(start: &[u8], length: u64) -> Result<(), Malformed> {
    let version = bytes::begins(start, MAGIC_BYTES, NAME)?;
    let mut most = file_bytes_max(BASE_BYTES_MAX);
    if is_known(version) {
        if start.len() < HEADER_BYTES {
            return Err(Malformed::new(length, "MANIFEST is too short"));
        }
        let (base, least) = (BYTES.get(start), (HEADER_BYTES + CRC_BYTES) as u64);
        if !(least..=BASE_BYTES_MAX).contains(&base) {
            return Err(BYTES.wrong(format!(
                "MANIFEST has a base of {base} bytes; {least} are the least, and {BASE_BYTES_MAX} \
                 the most"
            )));
        }
        if base > length || version == WITHOUT_ENTRIES && base != length {
            let what = format!("MANIFEST has {length} bytes, and states {base}");
            return Err(BYTES.wrong(what));
        }
        most = file_bytes_max(base);
    }
    if length > most {
        let what = format!("MANIFEST has {length} bytes, and {most} are the most");
        return Err(Malformed::new(most, what));
    }
    Ok(())
}

fn is_known(version: u32) -> bool {
    (WITHOUT_ENTRIES..=VERSION).contains(&version)
}

impl Manifest {
    /// Returns the contents as the bytes of a base.
    ///
    /// # Errors
    /// The contents are not what a MANIFEST can have: a table breaks a limit
    /// ([`TableSchema::check`]), tables are not in order or have the same name, the generation
    /// of the checkpoint is 0, or all of it is longer than [`BASE_BYTES_MAX`].
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        for table in &self.tables {
            check_table(table, TABLES.offset as u64)?;
        }
        let mut to = vec![0; HEADER_BYTES];
        let none = Checkpoint { number: 0, generation: 0, cut: 0, parts: Vec::new() };
        let checkpoint = self.checkpoint.as_ref().unwrap_or(&none);
        for part in &checkpoint.parts {
            to.extend_from_slice(&part.bytes.to_le_bytes());
            to.extend_from_slice(&part.crc.to_le_bytes());
        }
        self.tables.iter().for_each(|table| put_table(&mut to, table));
        to.extend_from_slice(&[0; CRC_BYTES]);
        let length = to.len() as u64;
        BYTES.put(&mut to, length);
        UUID.put_bytes(&mut to, &self.uuid);
        SEQUENCE.put(&mut to, self.sequence);
        FIRST_SEGMENT.put(&mut to, self.first_segment);
        LAST_SEGMENT.put(&mut to, self.last_segment);
        CHECKPOINT.put(&mut to, checkpoint.number);
        GENERATION.put(&mut to, checkpoint.generation);
        CUT.put(&mut to, checkpoint.cut);
        PARTS.put(&mut to, checkpoint.parts.len() as u64);
        TABLES.put(&mut to, self.tables.len() as u64);
        bytes::seal(&mut to, MAGIC_BYTES, VERSION);
        // Bytes that cannot be read back must not replace a MANIFEST that can be read.
        let decoded = Manifest::decode(&to)?;
        if decoded != *self {
            return Err(Malformed::new(0, "MANIFEST would not be read back as it is"));
        }
        Ok(to)
    }

    /// Reads a whole file, of any version.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn decode(file: &[u8]) -> Result<Manifest, Malformed> {
        let Front { manifest, tail, .. } = Front::decode(file)?;
        tail.map_or(Ok(manifest), Err)
    }

    /// Makes the change that an entry describes.
    pub fn apply(&mut self, entry: Entry) {
        self.sequence += 1;
        match entry {
            Entry::Table(table) => {
                let (Ok(place) | Err(place)) = self.place_of(table.number);
                self.tables.insert(place, table);
            }
            Entry::Changed(table) => {
                // An entry that changes another table cannot be read.
                if let Ok(place) = self.place_of(table.number) {
                    self.tables[place] = table;
                }
            }
            Entry::LastSegment(number) => self.last_segment = number,
        }
    }
}

impl Front {
    /// Reads a file of any version, up to an entry that is cut off or has a wrong checksum.
    ///
    /// # Errors
    /// Returns an error if the base, or an entry that is whole, is invalid.
    pub fn decode(file: &[u8]) -> Result<Front, Malformed> {
        check_length(&file[..file.len().min(HEADER_BYTES)], file.len() as u64)?;
        let version = bytes::FORMAT.get_u32(file);
        if !is_known(version) {
            bytes::check_crc(file, NAME)?;
            return Err(bytes::unknown(NAME, version, VERSION));
        }
        let base = &file[..BYTES.get(file) as usize];
        bytes::check_crc(base, NAME)?;
        let (mut manifest, mut names) = take_base(base, version)?;
        let mut front = base.len();
        while front < file.len() {
            let at = front as u64;
            let entry = match entry::whole(&file[front..]) {
                Ok(entry) => entry,
                Err(error) => {
                    let tail = Some(error.after(at));
                    return Ok(Front { manifest, bytes: front, tail });
                }
            };
            let change = entry::take(entry, &manifest, version).and_then(|change| {
                check_change(&manifest, &mut names, &change)?;
                Ok(change)
            });
            manifest.apply(change.map_err(|error| error.after(at))?);
            front += entry.len();
        }
        Ok(Front { manifest, bytes: front, tail: None })
    }
}

/// Returns a table as the bytes by which a base describes it.
///
/// # Errors
/// The table breaks a limit ([`TableSchema::check`]), or has another hash than its fields.
pub fn table_bytes(table: &TableSchema) -> Result<Vec<u8>, Malformed> {
    check_table(table, 0)?;
    let mut to = Vec::new();
    put_table(&mut to, table);
    Ok(to)
}

/// Reads a table that [`table_bytes`] has written.
///
/// # Errors
/// The bytes are no table.
pub fn table_of_bytes(bytes: &[u8]) -> Result<TableSchema, Malformed> {
    let mut from = Reader::new(bytes, 0);
    let table = take_table(&mut from, VERSION)?;
    check_table(&table, 0)?;
    match from.left() {
        0 => Ok(table),
        left => {
            Err(Malformed::new(from.offset(), format!("there are {left} bytes behind a table")))
        }
    }
}

/// Reads a base whose checksum is right. Returns the names of the tables, too.
fn take_base(base: &[u8], version: u32) -> Result<(Manifest, HashSet<String>), Malformed> {
    RESERVED.is_zero(base)?;
    let mut uuid = Uuid::default();
    uuid.copy_from_slice(UUID.of(base));
    let mut from = Reader::new(&base[..base.len() - CRC_BYTES], HEADER_BYTES);
    let checkpoint = take_checkpoint(&mut from, base)?;
    let (tables, names) = take_tables(&mut from, TABLES.get(base), version)?;
    if from.left() > 0 {
        let error = format!("there are {} bytes behind the last table", from.left());
        return Err(Malformed::new(from.offset(), error));
    }
    let (sequence, first_segment) = (SEQUENCE.get(base), FIRST_SEGMENT.get(base));
    let last_segment = LAST_SEGMENT.get(base);
    Ok((Manifest { uuid, sequence, first_segment, last_segment, checkpoint, tables }, names))
}

/// Reads the checkpoint that the header describes.
fn take_checkpoint(from: &mut Reader<'_>, header: &[u8]) -> Result<Option<Checkpoint>, Malformed> {
    let (number, generation) = (CHECKPOINT.get(header), GENERATION.get(header));
    let (cut, count) = (CUT.get(header), PARTS.get(header));
    if generation == 0 {
        let is_none = number == 0 && cut == 0 && count == 0;
        return match is_none {
            true => Ok(None),
            false => Err(GENERATION.wrong("there is a checkpoint, and its generation is 0")),
        };
    }
    // The bytes are taken before the parts are counted, so a wrong number allocates nothing.
    let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(PART_ENTRY_BYTES);
    let (entries, _) = from.take(bytes, "the list of parts")?.as_chunks::<PART_ENTRY_BYTES>();
    let parts = entries.iter().map(|entry| Part {
        bytes: Field::new("", 0, 8).get(entry),
        crc: Field::new("", 8, 4).get_u32(entry),
    });
    Ok(Some(Checkpoint { number, generation, cut, parts: parts.collect() }))
}

/// Reads the tables. Returns their names, too.
fn take_tables(
    from: &mut Reader<'_>,
    count: u64,
    version: u32,
) -> Result<(Vec<TableSchema>, HashSet<String>), Malformed> {
    let mut tables: Vec<TableSchema> = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        let at = from.offset();
        let table = take_table(from, version)?;
        check_next(&tables, &mut names, &table, at)?;
        tables.push(table);
    }
    Ok((tables, names))
}

/// Checks that a table, which was read at `at`, can come after these tables, whose names are
/// `names`: it keeps the limits, comes later in order, and has another name. Adds its name.
fn check_next(
    tables: &[TableSchema],
    names: &mut HashSet<String>,
    table: &TableSchema,
    at: u64,
) -> Result<(), Malformed> {
    if let Some(last) = tables.last().filter(|last| last.number >= table.number) {
        let error = format!("table {} comes after table {}", table.number, last.number);
        return Err(Malformed::new(at, error));
    }
    check_table(table, at)?;
    add_name(names, table, at)
}

/// Adds the name of a table, which no other table has.
fn add_name(names: &mut HashSet<String>, table: &TableSchema, at: u64) -> Result<(), Malformed> {
    if table.is_in_use() && !names.insert(table.name.clone()) {
        return Err(Malformed::new(at, format!("two tables have the name {:?}", table.name)));
    }
    Ok(())
}

/// Checks that an entry can follow these contents, whose tables have these names. Changes the
/// names.
fn check_change(
    before: &Manifest,
    names: &mut HashSet<String>,
    change: &Entry,
) -> Result<(), Malformed> {
    let known = |number| before.table(number);
    match change {
        Entry::Table(table) if known(table.number).is_some() => {
            Err(Malformed::new(0, format!("there is a table {} already", table.number)))
        }
        Entry::Table(table) => {
            check_table(table, 0)?;
            add_name(names, table, 0)
        }
        Entry::Changed(table) => {
            let Some(known) = known(table.number) else {
                return Err(Malformed::new(0, format!("there is no table {}", table.number)));
            };
            check_table(table, 0)?;
            if known.is_in_use() {
                names.remove(&known.name);
            }
            add_name(names, table, 0)
        }
        Entry::LastSegment(_) => Ok(()),
    }
}
