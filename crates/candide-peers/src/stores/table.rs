//! The results as text.

use candide_harness::results::grouped;
use candide_harness::table;

use super::figures::{BASELINE, Figure};
use crate::command::short;

/// Prints the peers' figures for one workload and one number of threads, and the peers that are
/// faster than Candide.
pub(crate) fn print(figures: &[Figure]) {
    let Some(first) = figures.first() else { return };
    let plural = if first.threads == 1 { "" } else { "s" };
    println!(
        "\n{}, {} rows per table, {} thread{plural}",
        first.workload,
        grouped(first.rows as f64),
        first.threads
    );
    let ratio = format!("of {BASELINE}");
    let header = ["peer", "thousand/s", "min-max", "retries", &ratio];
    let mut table = table(&header, 1..header.len());
    for figure in figures {
        table.add_row(cells(figure));
    }
    println!("{table}");
    if let Some(line) = ahead(figures) {
        println!("{line}");
    }
    for figure in figures {
        if let Some(failure) = &figure.failure {
            println!("FAILED: {}: {failure}", figure.peer);
        }
    }
}

fn cells(figure: &Figure) -> [String; 5] {
    let name = figure.peer.to_string();
    if figure.failure.is_some() {
        return [name, "FAILED".to_string(), String::new(), String::new(), String::new()];
    }
    let (slowest, fastest) = figure.range();
    let thousands = |rate: f64| short(rate / 1e3);
    [
        name,
        thousands(figure.throughput_tps),
        format!("{}-{}", thousands(slowest), thousands(fastest)),
        format!("{:.2}", 100.0 * figure.retries as f64 / figure.committed as f64),
        figure.of_candide.map_or("-".to_string(), short),
    ]
}

/// Returns the peers faster than Candide's default, the fastest first.
fn ahead(figures: &[Figure]) -> Option<String> {
    figures.iter().find(|figure| figure.peer == BASELINE)?.of_candide?;
    let mut ahead: Vec<_> =
        figures.iter().filter_map(|figure| Some((figure.of_candide?, figure.peer))).collect();
    ahead.retain(|&(ratio, _)| ratio > 1.0);
    ahead.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<_> =
        ahead.iter().map(|(ratio, peer)| format!("{peer} ({})", short(*ratio))).collect();
    Some(match names.is_empty() {
        true => format!("none is ahead of {BASELINE}"),
        false => format!("ahead of {BASELINE}: {}", names.join(", ")),
    })
}
