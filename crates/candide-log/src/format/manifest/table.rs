//! The schemas of tables as bytes of MANIFEST.

use crate::format::Malformed;
use crate::format::bytes::Reader;
use crate::schema::{IndexSchema, TableSchema};

/// The bits of a table's flags.
const ORDERED: u64 = 1;
const HAS_SPLITTING: u64 = 2;
const SPLITTING: u64 = 4;
const HAS_POLICY: u64 = 8;
const FLAGS: u64 = ORDERED | HAS_SPLITTING | SPLITTING | HAS_POLICY;

/// Writes a table that has been checked.
pub(super) fn put_table(to: &mut Vec<u8>, table: &TableSchema) {
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

/// Reads a table that [`put_table`] has written.
pub(super) fn take_table(from: &mut Reader<'_>) -> Result<TableSchema, Malformed> {
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
