//! The results as text.

use candide_harness::results::grouped;
use candide_harness::table;

use super::figures::Figure;
use crate::command::short;
use crate::stores::figures::BASELINE;

/// Prints the figures for one shape and one number of threads. The table has `rows` rows.
pub(crate) fn print(figures: &[Figure], rows: u64) {
    let Some(first) = figures.first() else { return };
    let plural = if first.threads == 1 { "" } else { "s" };
    println!(
        "\n{}, {} rows, {} thread{plural}: durable commits/s, and latency in microseconds",
        first.shape,
        grouped(rows as f64),
        first.threads
    );
    let ratio = format!("of {BASELINE}");
    let header = ["store", "commits/s", "min-max", "p50", "p99", "retries", &ratio];
    let mut table = table(&header, 1..header.len());
    for figure in figures {
        table.add_row(cells(figure));
    }
    println!("{table}");
    for figure in figures {
        if let Some(failure) = &figure.failure {
            println!("FAILED: {}: {failure}", figure.store);
        }
    }
}

fn cells(figure: &Figure) -> [String; 7] {
    let name = figure.store.to_string();
    if figure.failure.is_some() {
        let mut cells = [const { String::new() }; 7];
        cells[..2].clone_from_slice(&[name, "FAILED".to_string()]);
        return cells;
    }
    let (committed, retries) = figure.rounds.iter().fold((0, 0), |(committed, retries), round| {
        (committed + round.committed, retries + round.retries)
    });
    [
        name,
        grouped(figure.commits_per_second),
        format!(
            "{}-{}",
            grouped(figure.commits_per_second_min),
            grouped(figure.commits_per_second_max)
        ),
        grouped(figure.latency_p50_us),
        grouped(figure.latency_p99_us),
        match figure.role {
            Some(_) => format!("{:.2}", 100.0 * retries as f64 / committed as f64),
            None => "-".to_string(),
        },
        figure.of_candide.map_or("-".to_string(), short),
    ]
}
