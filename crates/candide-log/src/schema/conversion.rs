//! Converting the rows of one table to those of another one by the names of their fields.

use super::TableSchema;
use super::conversion_long::{Bytes, LongStep};
use super::conversion_step::Step;
use super::field::{FieldPlace, FieldSchema};

/// The way in which rows of a table become rows of another one: field by field, by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    key: Vec<Moved>,
    columns: Vec<Moved>,
    /// The columns that have any length in the old table or in the new one, in the order of their
    /// places in the new one.
    long: Vec<Long>,
    defaults: Vec<Default>,
    row_words: usize,
    changes: Vec<String>,
}

/// A field that both tables have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moved {
    name: String,
    /// Where the field begins in the old row, and in the new one: a bit of the row; or, of a part
    /// of the key, a word of the key.
    from: u64,
    to: u64,
    step: Step,
}

/// A column of the new table. It, or that from which it is made, has any length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Long {
    name: String,
    /// The bit at which the column begins in the new row.
    to: u64,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// The column of the old row that begins at a bit.
    Column { from: u64, step: LongStep },
    /// The default of a column that only the new table has.
    Default(Vec<u8>),
}

/// A column that only the new table has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Default {
    word: usize,
    words: Vec<u64>,
}

impl TableSchema {
    /// Returns how rows of this table become rows of `to`. Both describe their fields. A field
    /// becomes the one of the same name; `former` returns the earlier names of a field of `to`,
    /// which count if this table has no field of its present name.
    ///
    /// Numbers, texts, variants, options, arrays, structs and their parts may become those of
    /// another size; whether each value fits is found row by row. A column that is new has its
    /// default; a part of a struct or of a variant that is new must be an option, and is `None`.
    /// All parts of the key stay parts of the key, so that no two rows get one key.
    ///
    /// # Errors
    /// Rows cannot become such rows; the text names the first field in the way.
    pub fn conversion(
        &self,
        to: &TableSchema,
        former: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<Conversion, String> {
        let mut conversion = Conversion {
            key: Vec::new(),
            columns: Vec::new(),
            long: Vec::new(),
            defaults: Vec::new(),
            row_words: to.row_words(),
            changes: Vec::new(),
        };
        let origins = self.origins(to, former);
        for (field, origin) in to.fields.iter().zip(&origins) {
            match origin {
                Some(origin) => conversion.add_moved((self, origin), (to, field))?,
                None => conversion.add_new(to, field)?,
            }
        }
        for field in &self.fields {
            if origins.iter().flatten().any(|origin| origin.name == field.name) {
                continue;
            }
            let (name, ty) = (&field.name, &field.ty);
            if field.is_key() {
                return Err(format!("part `{name}: {ty}` of the key is gone"));
            }
            conversion.changes.push(format!("drop `{name}: {ty}`"));
        }
        if to.ordered && !self.ordered {
            conversion.changes.push("keep keys in order".to_owned());
        }
        conversion.long.sort_by_key(|long| long.to);
        if conversion.changes.is_empty() {
            conversion.changes.push("lay out the columns anew".to_owned());
        }
        Ok(conversion)
    }

    /// Returns the field from which each field of `to` is made.
    fn origins(
        &self,
        to: &TableSchema,
        former: &dyn Fn(&str) -> Vec<String>,
    ) -> Vec<Option<&FieldSchema>> {
        let own = |name: &str| self.fields.iter().find(|field| field.name == name);
        let mut taken: Vec<&str> = Vec::new();
        let mut origins: Vec<Option<&FieldSchema>> = vec![None; to.fields.len()];
        for (origin, field) in origins.iter_mut().zip(&to.fields) {
            if own(&field.name).is_none() {
                *origin = former(&field.name).iter().find_map(|name| own(name));
                taken.extend(origin.map(|origin| &*origin.name));
            }
        }
        for (origin, field) in origins.iter_mut().zip(&to.fields) {
            // A name whose field has got another name belongs to a new field.
            *origin = origin.or(own(&field.name).filter(|own| !taken.contains(&&*own.name)));
        }
        origins
    }

    /// Returns the first bit of a column in the row, or the first word of a part of the key.
    fn start(&self, field: &FieldSchema) -> u64 {
        match field.place {
            FieldPlace::Key { word } => word.into(),
            FieldPlace::Column { shift, .. } => {
                self.place_in_row(field).unwrap_or(0) as u64 * 64 + u64::from(shift)
            }
        }
    }
}

impl Conversion {
    /// Returns what changes, as parts of a sentence: "add `phone: Text<20>`".
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// Converts a row. `key` and `row` are its words, and `new_key` and `new_row` become those of
    /// the new row. `value` returns the bytes that the old row has for the column whose word has a
    /// place in it. `new_value` is called with those of the new row, in the order of their places.
    ///
    /// # Errors
    /// A value does not fit; the text names the field.
    pub fn convert<'a>(
        &self,
        (key, row): (&[u64], &[u64]),
        value: &dyn Fn(u16) -> Bytes<'a>,
        (new_key, new_row): (&mut Vec<u64>, &mut Vec<u64>),
        new_value: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), String> {
        new_key.clear();
        for Moved { name, from, step, .. } in &self.key {
            let own = key.get(*from as usize..).unwrap_or_default();
            step.convert_key(own, new_key)
                .map_err(|what| format!("part `{name}` of the key: {what}"))?;
        }
        new_row.clear();
        new_row.resize(self.row_words, 0);
        for Moved { name, from, to, step } in &self.columns {
            step.convert((row, *from), (new_row, *to))
                .map_err(|what| format!("column `{name}`: {what}"))?;
        }
        for Default { word, words } in &self.defaults {
            for (to, word) in new_row[*word..].iter_mut().zip(words) {
                *to |= word;
            }
        }
        for Long { name, to, origin } in &self.long {
            let new = match origin {
                Origin::Column { from, step } => {
                    let value = value((from / 64) as u16);
                    step.convert((row, *from), value, (&mut *new_row, *to))
                        .map_err(|what| format!("column `{name}`: {what}"))?
                }
                Origin::Default(bytes) => Some(bytes.into()),
            };
            if let Some(bytes) = new {
                new_value((to / 64) as u16, &bytes);
            }
        }
        Ok(())
    }

    fn add_moved(
        &mut self,
        (old, origin): (&TableSchema, &FieldSchema),
        (new, field): (&TableSchema, &FieldSchema),
    ) -> Result<(), String> {
        let name = &field.name;
        if origin.is_key() != field.is_key() {
            let is = |field: &FieldSchema| {
                if field.is_key() { "a part of the key" } else { "a column" }
            };
            return Err(format!("field `{name}` was {} and is {}", is(origin), is(field)));
        }
        let named = |what| format!("field `{name}`: {what}");
        let long = LongStep::between(&origin.ty, &field.ty).map_err(named)?;
        let step = match long {
            Some(_) => Step::Same { bits: 0, key_words: 0 },
            None => Step::between(&origin.ty, &field.ty).map_err(named)?,
        };
        if origin.name != *name {
            self.changes.push(format!("rename `{}` to `{name}`", origin.name));
        }
        let (before, after) = (origin.ty.to_string(), field.ty.to_string());
        match step {
            Step::Same { .. } if long.is_none() || before == after => {}
            _ if before == after => self.changes.push(format!("change the parts of `{name}`")),
            _ => self.changes.push(format!("change `{name}` from `{before}` to `{after}`")),
        }
        if let (Some(before), Some(after)) = (old.group_name(origin), new.group_name(field))
            && before != after
        {
            self.changes.push(format!("move `{name}` to group `{after}`"));
        }
        let (name, from, to) = (name.clone(), old.start(origin), new.start(field));
        match long {
            Some(step) => self.long.push(Long { name, to, origin: Origin::Column { from, step } }),
            None if field.is_key() => self.key.push(Moved { name, from, to, step }),
            None => self.columns.push(Moved { name, from, to, step }),
        }
        Ok(())
    }

    fn add_new(&mut self, new: &TableSchema, field: &FieldSchema) -> Result<(), String> {
        let (name, ty) = (&field.name, &field.ty);
        if ty.is_value() && (field.default.is_some() || !ty.is_long()) {
            if let Some(bytes) =
                field.default.clone().filter(|bytes| !ty.is_long() || !bytes.is_empty())
            {
                let (name, to) = (name.clone(), new.start(field));
                self.long.push(Long { name, to, origin: Origin::Default(bytes) });
            }
            self.changes.push(format!("add `{name}: {ty}`"));
            return Ok(());
        }
        let (Some(bytes), FieldPlace::Column { shift, .. }) = (&field.default, field.place) else {
            return Err(match field.is_key() {
                true => format!("part `{name}: {ty}` of the key is new"),
                false => format!("column `{name}: {ty}` is new, and has no default"),
            });
        };
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word) << shift
        };
        self.defaults.push(Default {
            word: new.place_in_row(field).unwrap_or(0),
            words: bytes.chunks(8).map(word).collect(),
        });
        self.changes.push(format!("add `{name}: {ty}`"));
        Ok(())
    }
}

impl TableSchema {
    /// Returns the name of a column's group; `None` for a part of the key.
    fn group_name(&self, field: &FieldSchema) -> Option<&str> {
        match field.place {
            FieldPlace::Key { .. } => None,
            FieldPlace::Column { group, .. } => {
                self.groups.get(usize::from(group)).map(|(name, _)| &**name)
            }
        }
    }
}
