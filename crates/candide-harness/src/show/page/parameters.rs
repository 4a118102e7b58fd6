//! The parameters of a workload, which all results of a comparison share.

use serde_json::Value;

use super::comparison::Comparison;
use super::markup::{escape, folded};
use super::number::counted;
use crate::results::plain;

/// Returns the parameters that all results of a comparison share.
pub(crate) fn parameters(comparison: &Comparison<'_>) -> String {
    let result = comparison.first();
    let mut entries = String::new();
    for (knob, value) in result.params.as_object().into_iter().flatten() {
        knobs(knob, value, &format!("params/{knob}"), &mut entries);
    }
    let factors =
        if result.factors.is_empty() { "none".to_string() } else { result.factors.join(", ") };
    for (name, value) in
        [("profile", plain(&serde_json::json!(result.profile))), ("handicaps", factors)]
    {
        entries += &format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(&value));
    }
    let results: Vec<String> =
        comparison.entries.iter().map(|entry| entry.index.to_string()).collect();
    let summary = format!(
        "Parameters: {}, the same for all its {}",
        comparison.title,
        counted(results.len(), "result")
    );
    let body =
        format!("<dl class=\"facts\" data-results=\"{}\">\n{entries}</dl>\n", results.join(" "));
    folded(&summary, &body)
}

/// Adds a knob to `entries`. The parts of a knob that has parts are added one by one.
fn knobs(name: &str, value: &Value, field: &str, entries: &mut String) {
    match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                knobs(&format!("{name} {part}"), value, &format!("{field}/{part}"), entries);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            *entries += &knob(name, &items.join(" "), field);
        }
        value => *entries += &knob(name, &plain(value), field),
    }
}

fn knob(name: &str, value: &str, field: &str) -> String {
    let (name, value, field) = (escape(&name.replace('_', " ")), escape(value), escape(field));
    format!("<div><dt>{name}</dt><dd data-field=\"{field}\">{value}</dd></div>\n")
}
