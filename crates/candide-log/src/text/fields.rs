//! The fields that rows have as text.

use super::fault::{FaultAt, fault};
use crate::schema::{FieldPlace, FieldSchema, TableSchema, TypeSchema};

/// Returns the table with its words as fields, if it has no description of its fields.
pub(super) fn with_fields(table: &TableSchema) -> TableSchema {
    let mut table = table.clone();
    if !table.fields.is_empty() {
        return table;
    }
    let field = |name: String, place, (bits, key_words)| FieldSchema {
        name,
        place,
        ty: TypeSchema::Opaque { bits, key_words, layout: 0 },
        default: None,
    };
    let key = (0..table.key_words)
        .map(|word| field(format!("key{word}"), FieldPlace::Key { word: word as u8 }, (0, 1)));
    let groups = (0..).zip(&table.groups);
    let places = groups.flat_map(|(group, (_, words))| (0..*words).map(move |word| (group, word)));
    let columns = (0..).zip(places).map(|(number, (group, word)): (u32, _)| {
        let place = FieldPlace::Column { group, word: word as u16, shift: 0 };
        field(format!("word{number}"), place, (64, 0))
    });
    table.fields = key.chain(columns).collect();
    table
}

/// Returns the places among `wanted` of the names that are given, each of them once, with the
/// bytes at which they begin. `of` is what has them, and the byte at which some may be missing.
pub(super) fn places<'a>(
    (of, at): (&str, usize),
    given: impl Iterator<Item = (usize, &'a str)>,
    wanted: &[&str],
) -> Result<Vec<usize>, FaultAt> {
    let mut places = Vec::with_capacity(wanted.len());
    for (at, name) in given {
        // They usually come in this order.
        let next = Some(places.len()).filter(|next| wanted.get(*next) == Some(&name));
        match next.or_else(|| wanted.iter().position(|own| *own == name)) {
            Some(place) if places.contains(&place) => {
                return fault(at, format!("{of} has `{name}` twice"));
            }
            Some(place) => places.push(place),
            None => {
                let (name, wanted) = (short(name), named(wanted));
                return fault(at, format!("{of} has `{name}`, and there are only {wanted}"));
            }
        }
    }
    let missing = (0..wanted.len()).filter(|place| !places.contains(place));
    match missing.map(|place| wanted[place]).collect::<Vec<_>>() {
        missing if missing.is_empty() => Ok(places),
        missing => fault(at, format!("{of} has no {}", named(&missing))),
    }
}

/// Returns names for messages.
pub(super) fn named(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}
