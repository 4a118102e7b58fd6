//! MANIFEST: the tables, the checkpoint in force, and the segments that recovery needs.

#![forbid(unsafe_code)]

use super::bytes::{self, Field, Reader};
use super::{Malformed, Uuid};
use crate::schema::{IndexSchema, TableSchema};
use std::collections::HashSet;

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
const HEADER_BYTES: usize = 96;
/// The number of bytes of the checksum at the end.
const CRC_BYTES: usize = 4;
/// The number of bytes for each part of a checkpoint.
const PART_ENTRY_BYTES: usize = 12;

/// The bits of a table's flags.
const ORDERED: u64 = 1;
const HAS_SPLITTING: u64 = 2;
const SPLITTING: u64 = 4;
const HAS_POLICY: u64 = 8;
const FLAGS: u64 = ORDERED | HAS_SPLITTING | SPLITTING | HAS_POLICY;

/// The contents of MANIFEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The database.
    pub uuid: Uuid,
    /// A number that grows with each MANIFEST that is written.
    pub sequence: u64,
    /// The number of the first segment that recovery needs.
    pub first_segment: u64,
    /// The number of the last segment that is known to contain a durable block; it may be smaller
    /// than that of the first segment needed. Recovery needs all segments up to it, so that the
    /// loss of the last file is noticed.
    pub last_segment: u64,
    /// The checkpoint in force, if there is one.
    pub checkpoint: Option<Checkpoint>,
    /// The tables, in ascending order of their numbers, with different names.
    pub tables: Vec<TableSchema>,
}

/// A checkpoint as MANIFEST names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the checkpoint, which the names of its parts have, too.
    pub number: u64,
    /// The generation up to which the checkpoint contains the log, from 1.
    pub generation: u64,
    /// The cut up to which it contains that generation.
    pub cut: u64,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a checkpoint as MANIFEST names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The checksum of its last block, which depends on all bytes of the file.
    pub crc: u32,
}

impl Manifest {
    /// Returns the contents as bytes.
    ///
    /// # Errors
    /// The contents are not what a MANIFEST can have: a table breaks a limit
    /// ([`TableSchema::check`]), tables are not in order or have the same name, or the generation
    /// of the checkpoint is 0.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        for table in &self.tables {
            table.check().map_err(|error| TABLES.wrong(error))?;
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
        bytes::seal(&mut to, MAGIC_BYTES);
        // What could not be read again must not replace a MANIFEST that can.
        let decoded = Manifest::decode(&to)?;
        if decoded != *self {
            return Err(Malformed::new(0, "MANIFEST would be read as another one"));
        }
        Ok(to)
    }

    /// Reads a whole MANIFEST.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn decode(file: &[u8]) -> Result<Manifest, Malformed> {
        bytes::unseal(file, MAGIC_BYTES, "MANIFEST")?;
        let Some(contents) = file.len().checked_sub(CRC_BYTES).filter(|end| *end >= HEADER_BYTES)
        else {
            return Err(Malformed::new(file.len() as u64, "MANIFEST is too short"));
        };
        RESERVED.is_zero(file)?;
        let length = BYTES.get(file);
        if length != file.len() as u64 {
            let is = file.len();
            return Err(BYTES.wrong(format!("MANIFEST has {is} bytes, not {length} as it says")));
        }
        let mut uuid = Uuid::default();
        uuid.copy_from_slice(UUID.of(file));
        let mut from = Reader::new(&file[..contents], HEADER_BYTES);
        let checkpoint = take_checkpoint(&mut from, file)?;
        let tables = take_tables(&mut from, TABLES.get(file))?;
        if from.left() > 0 {
            let error = format!("there are {} bytes behind the last table", from.left());
            return Err(Malformed::new(from.offset(), error));
        }
        let (sequence, first_segment) = (SEQUENCE.get(file), FIRST_SEGMENT.get(file));
        let last_segment = LAST_SEGMENT.get(file);
        Ok(Manifest { uuid, sequence, first_segment, last_segment, checkpoint, tables })
    }
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
    // Taken before they are counted, so that a number that is wrong allocates nothing.
    let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(PART_ENTRY_BYTES);
    let (entries, _) = from.take(bytes, "the list of parts")?.as_chunks::<PART_ENTRY_BYTES>();
    let parts = entries.iter().map(|entry| Part {
        bytes: Field::new("", 0, 8).get(entry),
        crc: Field::new("", 8, 4).get_u32(entry),
    });
    Ok(Some(Checkpoint { number, generation, cut, parts: parts.collect() }))
}

/// Reads the tables, and checks that they are in order and have different names.
fn take_tables(from: &mut Reader<'_>, count: u64) -> Result<Vec<TableSchema>, Malformed> {
    let mut tables: Vec<TableSchema> = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        let at = from.offset();
        let table = take_table(from)?;
        table.check().map_err(|error| Malformed::new(at, error))?;
        if let Some(last) = tables.last().filter(|last| last.number >= table.number) {
            let error = format!("table {} comes after table {}", table.number, last.number);
            return Err(Malformed::new(at, error));
        }
        if !names.insert(table.name.clone()) {
            return Err(Malformed::new(at, format!("two tables have the name {:?}", table.name)));
        }
        tables.push(table);
    }
    Ok(tables)
}

/// Writes a table that has been checked.
fn put_table(to: &mut Vec<u8>, table: &TableSchema) {
    let mut flags = if table.ordered { ORDERED } else { 0 };
    flags |= match table.splitting {
        None => 0,
        Some(false) => HAS_SPLITTING,
        Some(true) => HAS_SPLITTING | SPLITTING,
    };
    flags |= if table.policy.is_some() { HAS_POLICY } else { 0 };
    put(to, 4, table.number.into());
    put(to, 8, table.schema);
    put(to, 2, flags);
    put(to, 2, table.key_words.into());
    put(to, 2, table.key_widths.len() as u64);
    put(to, 2, table.groups.len() as u64);
    put(to, 2, table.indexes.len() as u64);
    put_text(to, &table.name);
    put_text(to, &table.row_type);
    if let Some(policy) = &table.policy {
        put_text(to, policy);
    }
    table.key_widths.iter().for_each(|width| put(to, 4, (*width).into()));
    for (name, words) in &table.groups {
        put_text(to, name);
        put(to, 4, (*words).into());
    }
    for index in &table.indexes {
        put_text(to, &index.name);
        put(to, 1, index.unique.into());
    }
}

/// Reads what [`put_table`] has written.
fn take_table(from: &mut Reader<'_>) -> Result<TableSchema, Malformed> {
    let number = from.number(4, "a table's number")? as u32;
    let schema = from.number(8, "a table's hash")?;
    let at = from.offset();
    let flags = from.number(2, "a table's flags")?;
    if flags & !FLAGS != 0 || flags & (SPLITTING | HAS_SPLITTING) == SPLITTING {
        return Err(Malformed::new(at, format!("a table has the flags {flags:#06x}")));
    }
    let key_words = from.number(2, "the number of key words")? as u16;
    let widths = from.number(2, "the number of key widths")?;
    let groups = from.number(2, "the number of groups")?;
    let indexes = from.number(2, "the number of indexes")?;
    let name = take_text(from, "a table's name")?;
    let row_type = take_text(from, "a row type")?;
    let policy = match flags & HAS_POLICY {
        0 => None,
        _ => Some(take_text(from, "a policy")?),
    };
    let width = |_| Ok(from.number(4, "a key width")? as u32);
    let key_widths = (0..widths).map(width).collect::<Result<_, Malformed>>()?;
    let group = |_| Ok((take_text(from, "a group's name")?, from.number(4, "its words")? as u32));
    let groups = (0..groups).map(group).collect::<Result<_, Malformed>>()?;
    let indexes = (0..indexes).map(|_| take_index(from)).collect::<Result<_, Malformed>>()?;
    Ok(TableSchema {
        number,
        name,
        row_type,
        schema,
        key_words,
        key_widths,
        groups,
        ordered: flags & ORDERED != 0,
        splitting: (flags & HAS_SPLITTING != 0).then_some(flags & SPLITTING != 0),
        policy,
        indexes,
    })
}

fn take_index(from: &mut Reader<'_>) -> Result<IndexSchema, Malformed> {
    let name = take_text(from, "an index's name")?;
    let at = from.offset();
    match from.number(1, "whether an index is unique")? {
        unique @ 0..=1 => Ok(IndexSchema { name, unique: unique == 1 }),
        byte => Err(Malformed::new(at, format!("an index is unique by the byte {byte}"))),
    }
}

/// Writes a number of `size` bytes.
fn put(to: &mut Vec<u8>, size: usize, value: u64) {
    to.extend_from_slice(&value.to_le_bytes()[..size]);
}

/// Writes a text of at most 65,535 bytes.
fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, 2, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

/// Reads a text.
fn take_text(from: &mut Reader<'_>, what: &str) -> Result<String, Malformed> {
    let length = from.number(2, what)? as usize;
    let at = from.offset();
    let bytes = from.take(length, what)?;
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_string()),
        Err(error) => {
            let at = at + error.valid_up_to() as u64;
            Err(Malformed::new(at, format!("{what} is not UTF-8")))
        }
    }
}
