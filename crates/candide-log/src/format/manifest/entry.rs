//! Entries of MANIFEST: changes that are appended to it.

use super::contents::{BASE_BYTES_MAX, CRC_BYTES, Manifest, VERSION};
use super::table::{check_table, put_table, take_table};
use crate::format::bytes::{Field, Reader};
use crate::format::{Fault, Malformed};
use crate::schema::TableSchema;

const LENGTH: Field = Field::new("length", 0, 4);
const KIND: Field = Field::new("kind", 4, 4);
const SEQUENCE: Field = Field::new("sequence number", 8, 8);

/// The fields with which an entry begins.
pub const ENTRY_FIELDS: &[Field] = &[LENGTH, KIND, SEQUENCE];

/// The number of bytes of these fields.
const HEADER_BYTES: usize = 16;
const TABLE: u64 = 1;
const LAST_SEGMENT: u64 = 2;
const CHANGED: u64 = 3;
/// The first version with entries that change a table.
const WITH_CHANGES: u32 = 3;

/// The checksum of any bytes that end with their own checksum, as a base and an entry do. This
/// checksum does not depend on these bytes, so an entry's checksum protects only the entry.
const CRC_BEFORE: u32 = 0x4867_4bc7;

/// A change that is appended to MANIFEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A table. No earlier table has its number or its name.
    Table(TableSchema),
    /// What is known of the table with this number from now on: another name, other fields, or that
    /// it has been dropped.
    Changed(TableSchema),
    /// The number of the last segment that is known to contain a durable block. The number is
    /// larger than the previous one.
    LastSegment(u64),
}

impl Entry {
    /// Returns the entry as bytes that can be appended to a file with the contents `before`.
    ///
    /// # Errors
    /// No MANIFEST can have the entry: a table breaks a limit ([`TableSchema::check`]) or is longer
    /// than [`BASE_BYTES_MAX`].
    pub fn encode(&self, before: &Manifest) -> Result<Vec<u8>, Malformed> {
        let mut to = vec![0; HEADER_BYTES];
        let kind = match self {
            Entry::Table(table) | Entry::Changed(table) => {
                check_table(table, HEADER_BYTES as u64)?;
                put_table(&mut to, table);
                if matches!(self, Entry::Table(_)) { TABLE } else { CHANGED }
            }
            Entry::LastSegment(number) => {
                to.extend_from_slice(&number.to_le_bytes());
                LAST_SEGMENT
            }
        };
        let length = to.len() + CRC_BYTES;
        if length as u64 > BASE_BYTES_MAX {
            let what = format!("an entry has {length} bytes; {BASE_BYTES_MAX} are the most");
            return Err(LENGTH.wrong(what));
        }
        LENGTH.put(&mut to, length as u64);
        KIND.put(&mut to, kind);
        SEQUENCE.put(&mut to, before.sequence.wrapping_add(1));
        let crc = crc32c::crc32c_append(CRC_BEFORE, &to);
        to.extend_from_slice(&crc.to_le_bytes());
        // An entry that cannot be read back must not be appended.
        match take(whole(&to)?, before, VERSION)? {
            decoded if decoded == *self => Ok(to),
            _ => Err(Malformed::new(0, "the entry would not be read back as it is")),
        }
    }
}

/// Returns the entry with which `bytes` begin. The bytes follow a base or an entry.
///
/// # Errors
/// The entry is cut off, or its checksum is not the one that it states.
pub(super) fn whole(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let short = |what: String| LENGTH.wrong(what).with(Fault::Short);
    let left = bytes.len();
    let least = HEADER_BYTES + CRC_BYTES;
    if left < least {
        return Err(short(format!("an entry has {least} bytes at least, and {left} are left")));
    }
    let length = LENGTH.get(bytes) as usize;
    if length < least || length > left {
        return Err(short(format!("an entry has {length} bytes, and {left} are left")));
    }
    let (contents, crc) = bytes[..length].split_at(length - CRC_BYTES);
    let found = Field::new("", 0, CRC_BYTES).get_u32(crc);
    let is = crc32c::crc32c_append(CRC_BEFORE, contents);
    if found != is {
        let what =
            format!("the checksum of an entry is {is:#010x}, and the entry states {found:#010x}");
        return Err(Malformed::new(contents.len() as u64, what));
    }
    Ok(&bytes[..length])
}

/// Reads a whole entry behind the contents `before`. Does not check whether a table fits in with
/// the others.
pub(super) fn take(entry: &[u8], before: &Manifest, version: u32) -> Result<Entry, Malformed> {
    let sequence = SEQUENCE.get(entry);
    if before.sequence.checked_add(1) != Some(sequence) {
        let what = format!("sequence number {sequence} comes after {}", before.sequence);
        return Err(SEQUENCE.wrong(what));
    }
    let mut from = Reader::new(&entry[..entry.len() - CRC_BYTES], HEADER_BYTES);
    let change = match KIND.get(entry) {
        TABLE => Entry::Table(take_table(&mut from, version)?),
        CHANGED if version >= WITH_CHANGES => Entry::Changed(take_table(&mut from, version)?),
        LAST_SEGMENT => Entry::LastSegment(from.number(8, "the last segment")?),
        kind => return Err(KIND.wrong(format!("an entry has the kind {kind}"))),
    };
    if let Entry::LastSegment(number) = change
        && number <= before.last_segment
    {
        let what = format!("the last segment {number} comes after {}", before.last_segment);
        return Err(Malformed::new(HEADER_BYTES as u64, what));
    }
    if from.left() > 0 {
        let what = format!("there are {} bytes behind the contents of an entry", from.left());
        return Err(Malformed::new(from.offset(), what));
    }
    Ok(change)
}
