//! The differences between two descriptions of a table, in words.

use super::field::{FieldPlace, FieldSchema};
use super::types::{EnumSchema, PartSchema, TypeSchema, VariantSchema};
use super::{TableSchema, TableState};
use std::fmt::Write;

/// The names of the two descriptions in sentences.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// That of the rows that there are.
    pub there: &'static str,
    /// That of the rows that are wanted.
    pub here: &'static str,
}

impl Sides {
    /// Rows of a database and of a program.
    pub const FILES: Sides = Sides { there: "the files", here: "the program" };
    /// Rows of an export and of the table into which they are imported.
    pub const STREAM: Sides = Sides { there: "the stream", here: "the table" };
}

impl TableSchema {
    /// Returns in which fields the rows of another table differ from those of this one, which are
    /// there: a sentence for each difference. Both describe their fields. Empty if these rows are
    /// rows of the other one, too; that may have more variants of an enum.
    pub fn differences(&self, program: &TableSchema, sides: Sides) -> Vec<String> {
        let Sides { there: files, here: its } = sides;
        debug_assert!(program.state == TableState::InUse, "programs name tables in use");
        let mut found = Vec::new();
        let key = |schema: &TableSchema| -> String {
            let keys = schema.fields.iter().filter(|field| field.is_key());
            let keys: Vec<String> = keys.map(described).collect();
            keys.join(", ")
        };
        let (there, here) = (key(self), key(program));
        if there != here {
            found.push(format!("the key is `{there}` in {files} and `{here}` in {its}"));
        }
        for field in &program.fields {
            match self.fields.iter().find(|other| other.name == field.name) {
                Some(other) if other.is_key() || field.is_key() => {
                    found.extend(of_types(&field.name, (&other.ty, &field.ty), sides));
                }
                Some(other) => found.extend(self.of_columns(other, program, field, sides)),
                None if field.is_key() => {}
                None if field.ty.is_value() && !field.ty.is_long() && field.default.is_none() => {
                    found.push(format!("column `{}` is new", described(field)));
                }
                None if field.default.is_some() => {
                    found.push(format!("column `{}` is new, and has a default", described(field)));
                }
                None => {
                    found.push(format!("column `{}` is new, and has no default", described(field)));
                }
            }
        }
        for field in self.fields.iter().filter(|field| !field.is_key()) {
            if program.fields.iter().all(|other| other.name != field.name) {
                let column = described(field);
                found.push(format!("column `{column}` of {files} is not in {its}"));
            }
        }
        if found.is_empty() {
            found.extend(self.of_places(program, sides));
        }
        found
    }

    /// Returns how a column differs.
    fn of_columns(
        &self,
        there: &FieldSchema,
        program: &TableSchema,
        here: &FieldSchema,
        sides: Sides,
    ) -> Option<String> {
        let Sides { there: files, here: its } = sides;
        let name = &here.name;
        of_types(name, (&there.ty, &here.ty), sides).or_else(|| {
            let (there, here) = (self.group_of(there), program.group_of(here));
            (there != here).then(|| {
                format!(
                    "column `{name}` is in group `{there}` in {files} and in group `{here}` in {its}"
                )
            })
        })
    }

    /// Returns the first difference of places, which other differences explain.
    fn of_places(&self, program: &TableSchema, sides: Sides) -> Option<String> {
        let Sides { there: files, here: its } = sides;
        let moved = program.fields.iter().find(|field| {
            self.fields.iter().all(|other| other.name != field.name || other.place != field.place)
        });
        if let Some(field) = moved {
            return Some(format!("field `{}` lies in another place of the row", field.name));
        }
        let of = |schema: &TableSchema| {
            let groups = schema.groups.iter().map(|(name, words)| format!("{name} {words}"));
            groups.collect::<Vec<_>>().join(", ")
        };
        let (there, here) = (of(self), of(program));
        (there != here).then(|| {
            format!("the groups and their words are {there} in {files} and {here} in {its}")
        })
    }

    fn group_of(&self, field: &FieldSchema) -> &str {
        match field.place {
            FieldPlace::Key { .. } => "",
            FieldPlace::Column { group, .. } => {
                self.groups.get(usize::from(group)).map_or("?", |(name, _)| name)
            }
        }
    }
}

/// Returns a field as a program declares it.
fn described(field: &FieldSchema) -> String {
    format!("{}: {}", field.name, field.ty)
}

/// Returns how the type of a field differs.
fn of_types(name: &str, (there, here): (&TypeSchema, &TypeSchema), sides: Sides) -> Option<String> {
    let Sides { there: files, here: its } = sides;
    if has_values_of(here, there) {
        return None;
    }
    let (one, other) = (there.to_string(), here.to_string());
    if one != other {
        return Some(format!("field `{name}` is `{one}` in {files} and `{other}` in {its}"));
    }
    let mut why = String::new();
    within(there, here, sides, &mut why);
    Some(format!("the type `{one}` of field `{name}` has changed{why}"))
}

/// Returns whether all values of the type `there` are values of the type `here`, in the same words.
pub(super) fn has_values_of(here: &TypeSchema, there: &TypeSchema) -> bool {
    let parts = |here: &[PartSchema], there: &[PartSchema]| {
        here.len() == there.len()
            && here.iter().zip(there).all(|(here, there)| {
                (&here.name, here.bit) == (&there.name, there.bit)
                    && has_values_of(&here.ty, &there.ty)
            })
    };
    match (here, there) {
        (TypeSchema::Option(here), TypeSchema::Option(there)) => has_values_of(here, there),
        (TypeSchema::Array(here, count), TypeSchema::Array(there, before)) => {
            count == before && has_values_of(here, there)
        }
        (TypeSchema::Struct(here), TypeSchema::Struct(there)) => {
            (&here.name, here.bits) == (&there.name, there.bits) && parts(&here.parts, &there.parts)
        }
        (TypeSchema::Enum(here), TypeSchema::Enum(there)) => {
            let has = |variant: &VariantSchema| {
                let mut all = here.variants.iter();
                all.any(|own| {
                    (&own.name, own.tag) == (&variant.name, variant.tag)
                        && parts(&own.parts, &variant.parts)
                })
            };
            let size = |of: &EnumSchema| (of.bits, of.tag_bits);
            here.name == there.name && size(here) == size(there) && there.variants.iter().all(has)
        }
        (here, there) => here == there,
    }
}

/// Adds how two types of the same name differ.
fn within(there: &TypeSchema, here: &TypeSchema, sides: Sides, why: &mut String) {
    let Sides { there: files, here: its } = sides;
    match (there, here) {
        (TypeSchema::Option(there), TypeSchema::Option(here))
        | (TypeSchema::Array(there, _), TypeSchema::Array(here, _)) => {
            within(there, here, sides, why)
        }
        (TypeSchema::Enum(there), TypeSchema::Enum(here)) => {
            let tag = |variants: &[VariantSchema], name: &str| {
                variants.iter().find(|of| of.name == name).map(|of| of.tag)
            };
            for variant in &here.variants {
                let (name, number) = (&variant.name, variant.tag);
                // Writing to a text does not fail.
                let _ = match tag(&there.variants, name) {
                    None => write!(why, "; variant `{name}` is new"),
                    Some(before) if before != number => write!(
                        why,
                        "; variant `{name}` is number {before} in {files} and {number} in {its}"
                    ),
                    Some(_) => Ok(()),
                };
            }
            for variant in &there.variants {
                if tag(&here.variants, &variant.name).is_none() {
                    let name = &variant.name;
                    let _ = write!(why, "; variant `{name}` of {files} is not in {its}");
                }
            }
        }
        (TypeSchema::Struct(there), TypeSchema::Struct(here)) => {
            let parts = |parts: &[PartSchema]| {
                let parts = parts.iter().map(|part| format!("{}: {}", part.name, part.ty));
                parts.collect::<Vec<_>>().join(", ")
            };
            let (one, other) = (parts(&there.parts), parts(&here.parts));
            if one != other {
                let _ = write!(why, "; it is `{one}` in {files} and `{other}` in {its}");
            } else {
                let pairs = there.parts.iter().zip(&here.parts);
                pairs.for_each(|(there, here)| within(&there.ty, &here.ty, sides, why));
            }
        }
        _ => {}
    }
}
