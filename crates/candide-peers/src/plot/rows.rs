//! Numbers of rows.

use crate::figures::Cost;

/// Formats a number of rows in short form: 10k, 2.5M.
pub(super) fn short(rows: usize) -> String {
    let (unit, suffix) = match rows {
        1_000_000.. => (1e6, "M"),
        1000.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    // Three significant digits suffice.
    let value = rows as f64 / unit;
    let digits = if value >= 100.0 { 0 } else { 2 };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// Returns the numbers of rows in `costs`, each once, in ascending order.
pub(super) fn sizes<'c>(costs: impl Iterator<Item = &'c Cost>) -> Vec<usize> {
    let mut sizes: Vec<usize> = costs.map(|cost| cost.rows).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
