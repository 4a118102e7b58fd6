//! The tables of counts that `docs/cost-model.md` explains.

use super::measure::{Cost, Measured, Tools};
use super::profile::Counts;
use super::split::{self, Function};
use std::collections::BTreeMap;
use std::fmt::Write;

/// `SPLIT` is the transaction whose costs are split by functions. `COMPARED` are the two protocols
/// that are compared.
const SPLIT: &str = "transaction of TPC-C";
const COMPARED: [&str; 2] = ["occ", "serial"];
/// Functions whose counts differ by fewer instructions than this share one line.
const DIFFERENCE_MIN: f64 = 100.0;

/// Prints the tables.
pub(super) fn print(tools: &Tools, measured: &Measured) -> Result<(), String> {
    let mut tables = tables(tools, &measured.costs);
    let mut split_up = COMPARED.iter().filter_map(|protocol| {
        measured.costs.iter().find(|cost| cost.protocol == *protocol && cost.operation == SPLIT)
    });
    if let (Some(first), Some(second)) = (split_up.next(), split_up.next()) {
        let split = |cost: &Cost| split::by_function(&measured.program, &cost.places);
        tables += &differences(&split(first)?, &split(second)?);
    }
    println!("{tables}");
    Ok(())
}

/// Returns the names in order, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    names.for_each(|name| {
        if !found.contains(&name) {
            found.push(name)
        }
    });
    found
}

fn tables(tools: &Tools, costs: &[Cost]) -> String {
    let protocols = distinct(costs.iter().map(|cost| cost.protocol.as_str()));
    let operations = distinct(costs.iter().map(|cost| cost.operation.as_str()));
    let find = |protocol: &str, operation: &str| {
        costs.iter().find(|cost| cost.protocol == protocol && cost.operation == operation)
    };
    let mut text = format!(
        "\nCounted with {} and {}.\n\n### Instructions\n\n",
        tools.compiler, tools.valgrind
    );
    row(&mut text, "", protocols.iter().map(|name| format!("`{name}`")));
    rule(&mut text, protocols.len());
    for operation in &operations {
        let count = |cost: Option<&Cost>| {
            cost.map_or("–".to_string(), |cost| figure(cost.counts.instructions))
        };
        row(
            &mut text,
            operation,
            protocols.iter().map(|protocol| count(find(protocol, operation))),
        );
    }
    for protocol in &protocols {
        write!(text, "\n### All counts of `{protocol}`\n\n").expect("strings take all");
        row(
            &mut text,
            "",
            ["instructions", "data references", "D1 misses", "LL misses"].map(str::to_string),
        );
        rule(&mut text, 4);
        for operation in &operations {
            let Some(Cost { counts, .. }) = find(protocol, operation) else { continue };
            let Counts { instructions, references, d1_misses, ll_misses } = *counts;
            let misses = [d1_misses, ll_misses].map(|misses| format!("{:.2}", misses + 0.0));
            row(
                &mut text,
                operation,
                [figure(instructions), figure(references)].into_iter().chain(misses),
            );
        }
    }
    text
}

/// Returns a table of the costs of two protocols by functions, with the largest differences first.
fn differences(first: &BTreeMap<Function, f64>, second: &BTreeMap<Function, f64>) -> String {
    let mut functions: BTreeMap<&Function, [f64; 2]> = BTreeMap::new();
    for (which, counts) in [first, second].into_iter().enumerate() {
        counts
            .iter()
            .for_each(|(function, count)| functions.entry(function).or_default()[which] += count);
    }
    let difference = |counts: &[f64; 2]| counts[0] - counts[1];
    let (mut large, small): (Vec<_>, Vec<_>) =
        functions.into_iter().partition(|(_, counts)| difference(counts).abs() >= DIFFERENCE_MIN);
    large.sort_by(|(_, a), (_, b)| difference(b).abs().total_cmp(&difference(a).abs()));
    let sum = |of: &[(&Function, [f64; 2])]| {
        of.iter().fold([0.0, 0.0], |sum, (_, counts)| [sum[0] + counts[0], sum[1] + counts[1]])
    };
    let (of_large, of_small) = (sum(&large), sum(&small));
    let mut text = format!("\n### A {SPLIT} by functions, in instructions\n\n");
    let protocols = COMPARED.map(|name| format!("`{name}`"));
    row(&mut text, "", protocols.into_iter().chain(["difference".to_string()]));
    rule(&mut text, 3);
    let mut counts = |head: &str, counts: [f64; 2]| {
        row(&mut text, head, [counts[0], counts[1], difference(&counts)].map(figure));
    };
    large
        .iter()
        .for_each(|((file, name), of_both)| counts(&format!("`{file}`: `{name}`"), *of_both));
    counts(
        &format!("{} others, which differ by less than {DIFFERENCE_MIN} each", small.len()),
        of_small,
    );
    counts("all", [of_large[0] + of_small[0], of_large[1] + of_small[1]]);
    text
}

fn row(text: &mut String, head: &str, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    writeln!(text, "| {head} | {} |", cells.join(" | ")).expect("strings take all");
}

fn rule(text: &mut String, columns: usize) {
    writeln!(text, "|---|{}", "---:|".repeat(columns)).expect("strings take all");
}

/// Formats a count with commas. Only small counts have fractions.
fn figure(count: f64) -> String {
    // The addition of zero turns a negative zero into a positive zero.
    let count = (count * 10.0).round() / 10.0 + 0.0;
    if count.abs() < 10.0 {
        return format!("{count:.1}");
    }
    let digits = format!("{:.0}", count.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if count < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_printed_rounded() {
        let figures = [0.0, -0.01, 0.25, 12.4, 999.6, 1000.0, 43_217.4, -1_234_567.0].map(figure);
        assert_eq!(figures, ["0.0", "0.0", "0.3", "12", "1,000", "1,000", "43,217", "-1,234,567"]);
    }

    #[test]
    fn differences_of_a_profile_add_up() {
        let split = |engine: f64, library: f64| {
            let counts = [
                (("db.rs", "run"), engine),
                (("libc.so.6", ""), library),
                (("table.rs", "get"), 3.0),
            ];
            counts.map(|((file, name), count)| ((file.to_string(), name.to_string()), count)).into()
        };
        let text = differences(&split(140.0, 60.0), &split(40.0, 171.0));
        assert!(text.contains("| `db.rs`: `run` | 140 | 40 | 100 |"), "{text}");
        assert!(text.contains("| `libc.so.6`: `` | 60 | 171 | -111 |"), "{text}");
        assert!(
            text.contains("| 1 others, which differ by less than 100 each | 3.0 | 3.0 | 0.0 |"),
            "{text}"
        );
        assert!(text.contains("| all | 203 | 214 | -11 |"), "{text}");
    }
}
