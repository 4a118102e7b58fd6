//! The admission of workloads before they run: an estimate of whether memory suffices, and notes on
//! the results.

use std::time::Duration;

use candide::experiments::free_memory;
use candide_workloads::Size;

use crate::any_workload::AnyWorkload;
use crate::failure::Failure;
use crate::rules::Rules;

/// Refuses a workload that, with the inputs of `threads` threads, takes more memory than is free,
/// unless `rules.force` is set. The error suggests `remedy`; without one, it suggests reducing the
/// part that takes most memory.
pub(crate) fn expect_room(
    workload: &dyn AnyWorkload,
    threads: usize,
    remedy: Option<&str>,
    rules: &Rules,
) -> Result<(), Failure> {
    let free = free_memory().filter(|_| !rules.force);
    match free.and_then(|free| excess(workload.size(), threads, remedy, free)) {
        None => Ok(()),
        Some(excess) => Err(Failure::Usage(format!("{} {excess}", workload.name()))),
    }
}

/// Adds the caveats of the workloads to `notes`, each caveat once.
pub(crate) fn admit<'a>(
    notes: &mut Vec<String>,
    workloads: impl IntoIterator<Item = &'a dyn AnyWorkload>,
) {
    for workload in workloads {
        for what in workload.caveats() {
            let note = format!("{}: {what}", workload.name());
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
}

/// Returns an error message with a suggestion if the workload takes more than `free` bytes of
/// memory, and `None` otherwise.
fn excess(size: Size, threads: usize, remedy: Option<&str>, free: u64) -> Option<String> {
    let Size { tables, of, inputs, .. } = size;
    let inputs = inputs.saturating_mul(threads as u64);
    let bytes = tables.saturating_add(inputs);
    let fewer =
        format!("fewer {}", if inputs > tables { "--transactions or --threads" } else { of });
    (bytes > free).then(|| {
        format!(
            "takes about {} of memory with these options, and {} are free: ask for {}, or add --force to go on all the same",
            in_units(bytes),
            in_units(free),
            remedy.unwrap_or(&fewer)
        )
    })
}

/// The longest time for whose growth memory is reserved. Later growth takes memory that the engine
/// touches ahead of demand.
const GROWTH_MAX: Duration = Duration::from_secs(10);

/// Returns the number of bytes to reserve for a database: an estimate of its tables, and of the
/// rows that `threads` threads insert in `duration`, or in [`GROWTH_MAX`] if that is shorter. At
/// most half of the `free` bytes.
pub(crate) fn reserve(
    size: Size,
    keeps_versions: bool,
    threads: usize,
    duration: Duration,
    free: u64,
) -> u64 {
    let millis = duration.min(GROWTH_MAX).as_millis() as u64;
    let growth = (size.growth / 1_000).saturating_mul(millis).saturating_mul(threads as u64);
    let rows = size.tables.saturating_add(growth);
    // Old versions take about as much again, and the rest of each slab is unused.
    let versions = if keeps_versions { rows } else { 0 };
    rows.saturating_add(rows / 4).saturating_add(versions).min(free / 2)
}

/// Writes a number of bytes in the largest unit that is not larger than the number.
fn in_units(bytes: u64) -> String {
    let units =
        [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match units.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_free_memory_are_refused_with_the_option_to_lower() {
        let size = |warehouses| Size {
            tables: warehouses * 200_000_000,
            of: "warehouses",
            inputs: 1_000_000_000,
            growth: 0,
        };
        assert_eq!(excess(size(5), 2, None, 3_000_000_000), None, "just fits");
        let excess_unless = |remedy, warehouses, threads| {
            excess(size(warehouses), threads, remedy, 23_600_000_000).expect("too much")
        };
        let excess = |warehouses, threads| excess_unless(None, warehouses, threads);
        let refused = excess(5_000, 1);
        assert!(refused.starts_with("takes about 1.0 TB of memory"), "{refused}");
        assert!(
            refused.contains("23.6 GB are free: ask for fewer warehouses, or add --force"),
            "{refused}"
        );
        assert!(excess(1, 1_000).contains("takes about 1.0 TB"));
        assert!(excess(1, 1_000).contains("fewer --transactions or --threads"));
        assert!(
            excess_unless(Some("a lower --scale"), 5_000, 1)
                .contains("ask for a lower --scale, or add --force")
        );
        assert!(excess(u64::MAX / 200_000_000, usize::MAX).contains("TB"), "beyond all numbers");
    }

    #[test]
    fn the_reserve_covers_tables_growth_and_versions_within_half_of_free_memory() {
        let size = Size { tables: 4_000, of: "rows", inputs: 1 << 40, growth: 2_000 };
        let second = Duration::from_secs(1);
        assert_eq!(reserve(size, false, 1, Duration::ZERO, 1 << 40), 5_000);
        assert_eq!(reserve(size, false, 2, second, 1 << 40), 10_000);
        assert_eq!(reserve(size, true, 2, second, 1 << 40), 18_000);
        assert_eq!(reserve(size, true, 2, second, 20_000), 10_000);
        assert_eq!(reserve(size, false, 2, Duration::MAX, 1 << 40), 55_000, "ten seconds");
        assert_eq!(reserve(size, true, 2, Duration::MAX, 20_000), 10_000);
    }

    #[test]
    fn sizes_are_printed_in_units_of_their_magnitude() {
        assert_eq!(
            [0, 999, 1_000, 1_550_000].map(in_units),
            ["0 bytes", "999 bytes", "1.0 kB", "1.6 MB"]
        );
    }
}
