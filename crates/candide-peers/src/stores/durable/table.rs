//! The results as text.

use super::figures::Figure;
use super::report::Report;
use crate::stores::figures::BASELINE;
use crate::table::{grouped, short, table};

/// Prints the disk, the stores, and the facts that a reader of the tables must know.
pub(crate) fn print_head(report: &Report) {
    println!("{}", report.machine);
    println!("{}", report.disk);
    for store in &report.stores {
        let version = match (store.crate_name, store.version) {
            (Some(name), Some(version)) => format!(" ({name} {version})"),
            _ => String::new(),
        };
        println!("{}{version}: {}", store.name, store.usage);
    }
    for note in &report.notes {
        println!("note: {note}");
    }
}

/// Prints the figures for one shape and one number of threads. The table has `rows` rows.
pub(crate) fn print(figures: &[Figure], rows: u64) {
    let Some(first) = figures.first() else { return };
    let plural = if first.threads == 1 { "" } else { "s" };
    println!(
        "\n{}, {} rows, {} thread{plural}: durable commits/s, and latency in microseconds",
        first.shape,
        grouped(rows as usize),
        first.threads
    );
    let ratio = format!("of {BASELINE}");
    let mut table = table(&["store", "commits/s", "min-max", "p50", "p99", "retries", &ratio]);
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
    let whole = |value: f64| grouped(value.round() as usize);
    let (committed, retries) = figure.rounds.iter().fold((0, 0), |(committed, retries), round| {
        (committed + round.committed, retries + round.retries)
    });
    [
        name,
        whole(figure.commits_per_second),
        format!(
            "{}-{}",
            whole(figure.commits_per_second_min),
            whole(figure.commits_per_second_max)
        ),
        whole(figure.latency_p50_us),
        whole(figure.latency_p99_us),
        match figure.role {
            Some(_) => format!("{:.2}", 100.0 * retries as f64 / committed as f64),
            None => "-".to_string(),
        },
        figure.of_candide.map_or("-".to_string(), short),
    ]
}
