//! The schemas of tables as bytes of MANIFEST.

use super::fields::{fields_hash, put_field, take_fields};
use super::texts::{put, put_text, take_text};
use crate::format::Malformed;
use crate::format::bytes::Reader;
use crate::schema::{IndexSchema, TableSchema, TableState};

/// The bits of a table's flags.
const ORDERED: u64 = 1;
const HAS_SPLITTING: u64 = 2;
const SPLITTING: u64 = 4;
const HAS_POLICY: u64 = 8;
const DROPPED: u64 = 16;
const UNFINISHED: u64 = 32;
/// The flags of tables in versions without fields.
const FLAGS_BEFORE: u64 = ORDERED | HAS_SPLITTING | SPLITTING | HAS_POLICY;
const FLAGS: u64 = FLAGS_BEFORE | DROPPED | UNFINISHED;

/// The first version of MANIFEST whose tables have fields.
const WITH_FIELDS: u32 = 3;

/// The bits of an index.
const INDEX_UNIQUE: u64 = 1;
const INDEX_ORDERED: u64 = 2;

/// Checks that a table, which is read or written at `at`, keeps the limits and has the hash of its
/// fields.
pub(super) fn check_table(table: &TableSchema, at: u64) -> Result<(), Malformed> {
    table.check().map_err(|error| Malformed::new(at, error))?;
    if !table.fields.is_empty() && table.schema != fields_hash(&table.fields) {
        let error = format!("table {} has another hash than its fields", table.number);
        return Err(Malformed::new(at, error));
    }
    Ok(())
}

/// Writes a table that has been checked.
pub(super) fn put_table(to: &mut Vec<u8>, table: &TableSchema) {
    let mut flags = if table.ordered { ORDERED } else { 0 };
    flags |= match table.splitting {
        None => 0,
        Some(false) => HAS_SPLITTING,
        Some(true) => HAS_SPLITTING | SPLITTING,
    };
    flags |= if table.policy.is_some() { HAS_POLICY } else { 0 };
    flags |= match table.state {
        TableState::InUse => 0,
        TableState::Dropped => DROPPED,
        TableState::Unfinished { .. } => UNFINISHED,
    };
    put(to, 4, table.number.into());
    put(to, 8, table.schema);
    put(to, 2, flags);
    put(to, 2, table.key_words.into());
    put(to, 2, table.key_widths.len() as u64);
    put(to, 2, table.groups.len() as u64);
    put(to, 2, table.indexes.len() as u64);
    put(to, 2, table.fields.len() as u64);
    put_text(to, &table.name);
    put_text(to, &table.row_type);
    if let Some(policy) = &table.policy {
        put_text(to, policy);
    }
    if let TableState::Unfinished { from } = table.state {
        put(to, 4, from.into());
    }
    table.key_widths.iter().for_each(|width| put(to, 4, (*width).into()));
    for (name, words) in &table.groups {
        put_text(to, name);
        put(to, 4, (*words).into());
    }
    for index in &table.indexes {
        put_text(to, &index.name);
        let unique = if index.unique { INDEX_UNIQUE } else { 0 };
        put(to, 1, unique | if index.ordered { INDEX_ORDERED } else { 0 });
        put(to, 2, index.columns.len() as u64);
        index.columns.iter().for_each(|column| put(to, 2, (*column).into()));
    }
    table.fields.iter().for_each(|field| put_field(to, field, true));
}

/// Reads a table that [`put_table`] has written, or an earlier version of it.
pub(super) fn take_table(from: &mut Reader<'_>, version: u32) -> Result<TableSchema, Malformed> {
    let has_fields = version >= WITH_FIELDS;
    let number = from.number(4, "a table's number")? as u32;
    let schema = from.number(8, "a table's hash")?;
    let at = from.offset();
    let flags = from.number(2, "a table's flags")?;
    let known = if has_fields { FLAGS } else { FLAGS_BEFORE };
    let is_both = |both: u64| flags & both == both;
    let is_split = flags & (SPLITTING | HAS_SPLITTING) == SPLITTING;
    if flags & !known != 0 || is_split || is_both(DROPPED | UNFINISHED) {
        return Err(Malformed::new(at, format!("a table has the flags {flags:#06x}")));
    }
    let key_words = from.number(2, "the number of key words")? as u16;
    let widths = from.number(2, "the number of key widths")?;
    let groups = from.number(2, "the number of groups")?;
    let indexes = from.number(2, "the number of indexes")?;
    let fields = if has_fields { from.number(2, "the number of fields")? } else { 0 };
    let name = take_text(from, "a table's name")?;
    let row_type = take_text(from, "a row type")?;
    let policy = match flags & HAS_POLICY {
        0 => None,
        _ => Some(take_text(from, "a policy")?),
    };
    let state = match flags & (DROPPED | UNFINISHED) {
        0 => TableState::InUse,
        DROPPED => TableState::Dropped,
        _ => TableState::Unfinished { from: from.number(4, "another table's number")? as u32 },
    };
    let width = |_| Ok(from.number(4, "a key width")? as u32);
    let key_widths = (0..widths).map(width).collect::<Result<_, Malformed>>()?;
    let group = |_| Ok((take_text(from, "a group's name")?, from.number(4, "its words")? as u32));
    let groups = (0..groups).map(group).collect::<Result<_, Malformed>>()?;
    let index = |_| take_index(from, has_fields);
    let indexes = (0..indexes).map(index).collect::<Result<_, Malformed>>()?;
    let fields = take_fields(from, fields)?;
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
        fields,
        state,
    })
}

fn take_index(from: &mut Reader<'_>, has_fields: bool) -> Result<IndexSchema, Malformed> {
    let name = take_text(from, "an index's name")?;
    let at = from.offset();
    let bits = from.number(1, "the kind of an index")?;
    let known = if has_fields { INDEX_UNIQUE | INDEX_ORDERED } else { INDEX_UNIQUE };
    if bits & !known != 0 {
        return Err(Malformed::new(at, format!("an index has the kind {bits}")));
    }
    let count = if has_fields { from.number(2, "the number of an index's fields")? } else { 0 };
    let column = |_| Ok(from.number(2, "a field of an index")? as u16);
    let columns = (0..count).map(column).collect::<Result<_, Malformed>>()?;
    let (unique, ordered) = (bits & INDEX_UNIQUE != 0, bits & INDEX_ORDERED != 0);
    Ok(IndexSchema { name, unique, ordered, columns })
}
