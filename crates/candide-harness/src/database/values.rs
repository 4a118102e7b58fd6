//! Values of fields as JSON.

use candide_log::schema::Value as Field;
use serde_json::{Number, Value};

/// Returns a value as JSON. Numbers of more than 53 bits, which many programs cannot read, are
/// strings; and so are bytes, each with two hexadecimal digits.
pub(super) fn json(value: &Field) -> Value {
    let whole = |is_small: bool, text: String| {
        let number = text.parse::<i64>().ok().filter(|_| is_small);
        number.map_or(Value::String(text), Value::from)
    };
    match value {
        Field::Bool(value) => Value::Bool(*value),
        Field::Unsigned(value) => whole(*value < 1 << 53, value.to_string()),
        Field::Signed(value) => whole(value.unsigned_abs() < 1 << 53, value.to_string()),
        Field::Float32(value) => float(f64::from(*value), value.to_string()),
        Field::Float64(value) => float(*value, value.to_string()),
        Field::Char(value) => Value::String(value.to_string()),
        Field::Text(value) => Value::String(value.clone()),
        Field::Bytes(value) => {
            Value::String(value.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        Field::None => Value::Null,
        Field::Some(value) => json(value),
        Field::List(values) => Value::Array(values.iter().map(json).collect()),
        Field::Words(words) => Value::from(hexadecimal(words)),
        Field::Parts(name, parts) => match &parts[..] {
            [] => Value::String(name.clone()),
            // An identifier is the number or text that it contains.
            [(part, value)] if part == "0" => json(value),
            parts => parts.iter().map(|(name, value)| (name.clone(), json(value))).collect(),
        },
    }
}

/// Returns a number as JSON, which has no infinity and nothing that is not a number.
fn float(value: f64, text: String) -> Value {
    Number::from_f64(value).map_or(Value::String(text), Value::Number)
}

/// Returns words with sixteen hexadecimal digits each.
pub(super) fn hexadecimal(words: &[u64]) -> Vec<String> {
    words.iter().map(|word| format!("{word:016x}")).collect()
}
