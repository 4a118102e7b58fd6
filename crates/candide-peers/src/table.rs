//! The results as text.

use candide_harness::results::grouped;
use candide_harness::table;

use crate::command::short;
use crate::contender::Operation;
use crate::figures::{Cost, Throughput};
use crate::{Kind, Role};

/// Prints the figures of the maps of one kind, for one number of rows, one size of keys and one
/// number of threads. Also prints the notes on these figures.
pub(crate) fn print_throughput(figures: &[Throughput], notes: &[String]) {
    let Some(first) = figures.first() else { return };
    let operations = Operation::of(first.kind);
    let plural = if first.threads == 1 { "" } else { "s" };
    println!(
        "\n{} maps, {} rows, keys of {} bytes, {} thread{plural}: million operations/s, median (min-max)",
        kind(first.kind),
        grouped(first.rows as f64),
        first.key_bytes,
        first.threads
    );
    let mut header = vec!["map"];
    header.extend(operations.iter().map(|operation| operation.name()));
    let mut table = table(&header, 1..header.len());
    let figure = |map, operation| {
        figures.iter().find(|figure| figure.map == map && figure.operation == operation)
    };
    let names = |role| {
        // Each map has exactly one figure of inserts.
        let one_each = figures
            .iter()
            .filter(move |figure| figure.role == role && figure.operation == Operation::Insert);
        one_each.map(|figure| figure.map)
    };
    for role in [Role::Candide, Role::Peer, Role::Yardstick] {
        for name in names(role) {
            let cells = operations
                .iter()
                .map(|&operation| figure(name, operation).map_or("-".to_string(), cell));
            table.add_row(std::iter::once(name.to_string()).chain(cells));
        }
    }
    for name in names(Role::Candide) {
        let ratios = operations.iter().map(|&operation| {
            let ours = figure(name, operation)?;
            let peers = figures
                .iter()
                .filter(|figure| figure.role == Role::Peer && figure.operation == operation);
            let best = peers.max_by(|a, b| a.ops_per_second.total_cmp(&b.ops_per_second))?;
            Some(format!("{:.2} ({})", ours.ops_per_second / best.ops_per_second, best.map))
        });
        let ratios: Vec<Option<String>> = ratios.collect();
        if ratios.iter().any(Option::is_some) {
            let label = std::iter::once(format!("{name} / best peer"));
            table.add_row(label.chain(ratios.into_iter().map(Option::unwrap_or_default)));
        }
    }
    println!("{table}");
    for note in notes {
        println!("note: {note}");
    }
}

/// Prints the costs of lookups in the maps of one kind with keys of one size.
pub(crate) fn print_costs(costs: &[Cost]) {
    let Some(first) = costs.first() else { return };
    let what = if costs.iter().any(|cost| cost.events.is_some()) {
        "ns / cache misses / instructions"
    } else {
        "ns / dependent loads"
    };
    println!(
        "\n{} maps, keys of {} bytes, one thread: {what} per lookup, medians",
        kind(first.kind),
        first.key_bytes
    );
    let mut rows: Vec<usize> = costs.iter().map(|cost| cost.rows).collect();
    rows.sort_unstable();
    rows.dedup();
    let header: Vec<String> = std::iter::once("map".to_string())
        .chain(rows.iter().map(|&rows| format!("{} rows", grouped(rows as f64))))
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&header, 1..header.len());
    let mut seen = Vec::new();
    for cost in costs {
        if seen.contains(&cost.map) {
            continue;
        }
        seen.push(cost.map);
        let cells = rows.iter().map(|&rows| {
            let found = costs.iter().find(|other| other.map == cost.map && other.rows == rows);
            found.map_or(String::new(), |cost| match cost.events {
                Some(events) => {
                    format!(
                        "{:.1} / {:.2} / {:.0}",
                        cost.nanoseconds, events.misses, events.instructions
                    )
                }
                None => format!("{:.1} / {:.2}", cost.nanoseconds, cost.loads()),
            })
        });
        table.add_row(std::iter::once(cost.map.to_string()).chain(cells));
    }
    println!("{table}");
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Hash => "Hash",
        Kind::Ordered => "Ordered",
    }
}

fn cell(figure: &Throughput) -> String {
    let (slowest, fastest) = figure.range();
    format!("{} ({}-{})", millions(figure.ops_per_second), millions(slowest), millions(fastest))
}

/// Formats a number in millions, with three significant digits.
fn millions(value: f64) -> String {
    short(value / 1e6)
}

#[cfg(test)]
mod tests {
    use super::millions;

    #[test]
    fn cells_show_three_significant_digits() {
        assert_eq!(
            [123e6, 12.34e6, 1.234e6, 45_600.0].map(millions),
            ["123", "12.3", "1.23", "0.0456"]
        );
    }
}
