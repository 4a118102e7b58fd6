//! Conflicts between transactions, with names.

#![forbid(unsafe_code)]

use crate::engine::{Common, ConflictNote, TableCore};
use crate::error::Abort;
use crate::schema::Shown;
use std::fmt;

/// A conflict between two transactions, and where it occurred.
///
/// As text it is one line: `read_changed on accounts.balance, key id: 7`; or, if the transaction
/// has a [name](crate::RunOptions::named), `pay: read_changed on accounts.balance, key id: 7`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The kind of conflict.
    pub cause: Abort,
    /// The name of the transaction that had the conflict, if it has
    /// [one](crate::RunOptions::named).
    pub transaction: Option<&'static str>,
    /// The table's name; `None` if the conflict was about no table: the transaction yielded to
    /// another transaction that had failed too often.
    pub table: Option<String>,
    /// The column group; `"*"` without timestamp splitting. `None` if the conflict was about an
    /// absent key, or about no table.
    pub group: Option<&'static str>,
    /// The first words of the row's key, as [`Key::words`](crate::schema::Key::words) returns them:
    /// at most four. If the table packs the key's components, only those that lie entirely within
    /// the first four packed words. `None` if `group` is `None`.
    pub key: Option<Vec<u64>>,
    /// Whether the row's key has more words than `key` holds.
    pub key_is_longer: bool,
    /// The words of `key` as [`Key::show`](crate::schema::Key::show) writes them: `-7`, `(3,
    /// "Smith"..)`. If the conflict was about an entry of a secondary index, the key in that index.
    pub key_text: Option<String>,
    /// The parts of the key, each with its name and its value: `id: 7`. `None` if `key` is `None`
    /// or lacks words, if the row type does not describe its fields
    /// ([`RowMeta::FIELDS`](crate::schema::RowMeta::FIELDS)), or if the conflict was about an entry
    /// of a secondary index.
    pub named_key: Option<String>,
}

impl Conflict {
    /// Looks up the names of the table and the key that `note` holds.
    #[cold]
    pub(crate) fn named(engine: &Common, note: ConflictNote) -> Conflict {
        let ConflictNote { cause, transaction, table, unit, key, .. } = note;
        let Some(table) = table.map(|number| engine.table(number)) else {
            return Conflict {
                cause,
                transaction,
                table: None,
                group: None,
                key: None,
                key_is_longer: false,
                key_text: None,
                named_key: None,
            };
        };
        let group = |unit: u8| {
            if table.layout.is_split() { table.groups[usize::from(unit)].name } else { "*" }
        };
        let names = unit.map(|_| KeyNames::of(&table, &key)).unwrap_or_default();
        let KeyNames { key, key_is_longer, key_text, named_key } = names;
        Conflict {
            cause,
            transaction,
            table: Some(table.name.to_string()),
            group: unit.map(group),
            key,
            key_is_longer,
            key_text,
            named_key,
        }
    }
}

/// The first words of a key, and their texts.
#[derive(Default)]
pub(super) struct KeyNames {
    pub(super) key: Option<Vec<u64>>,
    pub(super) key_is_longer: bool,
    pub(super) key_text: Option<String>,
    pub(super) named_key: Option<String>,
}

impl KeyNames {
    /// Returns the texts of a key of a table, of which `kept` has the first words.
    pub(super) fn of(table: &TableCore, kept: &[u64]) -> KeyNames {
        let (key, key_is_longer) = table.layout.key_from_prefix(kept);
        let key_text = Shown { words: &key, show: table.show_key.get() }.to_string();
        let parts = if key_is_longer { None } else { table.named_key(&key) };
        let named_key = parts.map(|parts| {
            let parts = parts.iter().map(|(name, value)| format!("{name}: {value}"));
            parts.collect::<Vec<_>>().join(", ")
        });
        KeyNames { key: Some(key), key_is_longer, key_text: Some(key_text), named_key }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(transaction) = self.transaction {
            write!(f, "{transaction}: ")?;
        }
        f.write_str(self.cause.name())?;
        let Some(table) = &self.table else { return Ok(()) };
        write!(f, " on {table}")?;
        match (self.group, self.named_key.as_ref().or(self.key_text.as_ref())) {
            (Some(group), Some(key)) => write!(f, ".{group}, key {key}"),
            _ => f.write_str(", an absent key"),
        }
    }
}
