//! The columns of the first table, explained, and the setting that all results share.

use super::table::wrapped;
use crate::results::{Measurement, label, protocol};

/// The columns of the first table whose names do not explain themselves.
const COLUMNS: [(&str, &str); 7] = [
    (
        "cu",
        "commit-time updates (--cu): a blind update is applied at commit and reads nothing before",
    ),
    ("ts", "timestamp splitting (--ts): each column group of a row has its own timestamp"),
    (
        "txn/s",
        "committed transactions a second, the median of the runs; slowest and fastest: of single runs",
    ),
    ("first second", "the same in the first second of the measured time"),
    (
        "fresh MiB",
        "of the memory that the database took while measured, the part that the system first had to provide",
    ),
    ("aborted", "the share of attempts that conflicts aborted; they are run again"),
    ("invariants", "checks of the tables after the runs"),
];

/// Explains the columns of the first table, one on each line.
pub fn explained_columns() -> String {
    let lines =
        COLUMNS.map(|(name, words)| wrapped(&format!("  {name:<13} {words}"), "                "));
    lines.join("\n")
}

/// The parts of a setting that all results of a report share. Tables do not repeat them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) workload: bool,
    pub(super) cu: bool,
    pub(super) ts: bool,
}

impl Shared {
    /// Compares all `results`.
    pub(super) fn of(results: &[Measurement]) -> Shared {
        fn is_same<T: PartialEq>(
            results: &[Measurement],
            part: impl Fn(&Measurement) -> T,
        ) -> bool {
            results.windows(2).all(|pair| part(&pair[0]) == part(&pair[1]))
        }
        Shared {
            workload: is_same(results, |result| (result.workload.clone(), result.variety.clone())),
            cu: is_same(results, |result| result.cu),
            ts: is_same(results, |result| result.ts),
        }
    }

    /// Returns a sentence on the parts that are shared, which are those of `first`.
    pub(super) fn sentence(self, first: &Measurement) -> String {
        let on = |on: bool| if on { "on" } else { "off" };
        let parts = [
            self.workload.then(|| format!("{}{}", first.workload, first.variety)),
            self.cu.then(|| format!("cu {}", on(first.cu))),
            self.ts.then(|| format!("ts {}", on(first.ts))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("All results: {}\n\n", parts.join(", "))
        }
    }

    /// Returns the setting of `result` without the parts that are shared.
    pub(super) fn label(self, result: &Measurement) -> String {
        if !self.workload {
            return label(result);
        }
        let off = [(result.cu || self.cu, ", cu off"), (result.ts || self.ts, ", ts off")];
        let off: String = off.iter().filter(|(on, _)| !on).map(|(_, words)| *words).collect();
        let plural = if result.threads == 1 { "" } else { "s" };
        format!("{}, {} thread{plural}{off}", protocol(result), result.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{Sample, measurement};

    #[test]
    fn columns_are_explained_within_a_hundred_columns() {
        let text = explained_columns();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for name in ["  cu  ", "  ts  ", "  fresh MiB  "] {
            assert_eq!(text.matches(name).count(), 1, "{name} in {text}");
        }
    }

    #[test]
    fn parts_of_settings_that_differ_are_in_labels_and_others_in_a_sentence() {
        let sample = Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1.0 };
        let one = || measurement("ycsb-a", sample);
        let (other, off) = (
            measurement("ycsb-b", sample),
            measurement("ycsb-a", Sample { cu: false, ts: false, threads: 2, ..sample }),
        );
        let results = [one(), off];
        let shared = Shared::of(&results);
        assert_eq!(shared, Shared { workload: true, cu: false, ts: false });
        assert_eq!(shared.sentence(&results[0]), "All results: ycsb-a\n\n");
        assert_eq!(shared.label(&results[1]), "occ, 2 threads, cu off, ts off");
        let results = [one(), other];
        let shared = Shared::of(&results);
        assert_eq!(shared.sentence(&results[0]), "All results: cu on, ts on\n\n");
        assert_eq!(shared.label(&results[1]), "ycsb-b occ, 1 thread");
        assert_eq!(Shared::of(&[]), Shared { workload: true, cu: true, ts: true });
    }
}
