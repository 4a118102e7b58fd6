//! The fields that rows have as text.

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

/// Returns the names of fields, for messages.
pub(super) fn names<'a>(fields: impl IntoIterator<Item = &'a FieldSchema>) -> String {
    let names: Vec<_> = fields.into_iter().map(|field| format!("`{}`", field.name)).collect();
    names.join(", ")
}
