//! Values as messages show them.

use super::known::text_of;
use super::value::Value;
use std::fmt::{self, Display, Formatter};

/// Writes the value as a program shows it by `Debug`, or its text if it has one.
impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value:?}"),
            Value::Unsigned(value) => write!(f, "{value:?}"),
            Value::Signed(value) => write!(f, "{value:?}"),
            Value::Float32(value) => write!(f, "{value:?}"),
            Value::Float64(value) => write!(f, "{value:?}"),
            Value::Char(value) => write!(f, "{value:?}"),
            Value::Text(value) => write!(f, "{value:?}"),
            Value::Bytes(value) => write!(f, "b\"{}\"", value.escape_ascii()),
            Value::None => f.write_str("None"),
            Value::Some(value) => write!(f, "Some({value})"),
            Value::List(values) => list(f, "[", values.iter(), "]"),
            Value::Words(words) => write!(f, "{words:x?}"),
            Value::Parts(name, parts) if text_of(name, parts).is_some() => {
                f.write_str(&text_of(name, parts).unwrap_or_default())
            }
            Value::Parts(name, parts) if parts.is_empty() => f.write_str(name),
            Value::Parts(name, parts) if parts[0].0.starts_with(|c: char| c.is_ascii_digit()) => {
                f.write_str(name)?;
                list(f, "(", parts.iter().map(|(_, value)| value), ")")
            }
            Value::Parts(name, parts) => {
                write!(f, "{name} {{ ")?;
                for (place, (name, value)) in parts.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}: {value}")?;
                }
                f.write_str(" }")
            }
        }
    }
}

fn list<'a>(
    f: &mut Formatter<'_>,
    begin: &str,
    values: impl Iterator<Item = &'a Value>,
    end: &str,
) -> fmt::Result {
    f.write_str(begin)?;
    for (place, value) in values.enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        write!(f, "{comma}{value}")?;
    }
    f.write_str(end)
}
