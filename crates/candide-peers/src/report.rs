//! The report of an invocation.

use candide_harness::results::Machine;
use serde::Serialize;

use crate::cli::{Hasher, Options};
use crate::command::{huge_pages_note, machine};
use crate::counters::Counters;
use crate::figures::{Cost, Throughput};

/// The results, and the settings and the machine of the measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) machine: Machine,
    pub(crate) hasher: Hasher,
    pub(crate) runs: usize,
    pub(crate) duration_s: f64,
    pub(crate) seed: u64,
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) lookup_costs: Vec<Cost>,
    /// The notes on the figures.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Report {
        let machine = machine();
        let mut notes = notes(options);
        notes.extend(huge_pages_note(&machine));
        Report {
            machine,
            hasher: options.hasher,
            runs: options.runs.get(),
            duration_s: options.duration.as_secs_f64(),
            seed: options.seed,
            throughput: Vec::new(),
            lookup_costs: Vec::new(),
            notes,
        }
    }
}

fn notes(options: &Options) -> Vec<String> {
    let mut notes = vec![
        "the maps give no atomicity beyond one key; `candide` is one operation per transaction, `candide-now` the same by \
         get_now, `candide-10` ten, `candide-many` ten found by find_many"
            .to_string(),
        "peers take what they must hold, a guard or a lock, once for ten lookups or inserts".to_string(),
    ];
    if options.wants("skipmap") && !options.misses {
        notes.push(
            "SkipMap::range of crossbeam-skiplist 0.1.3 leaks a reference to each node it visits: nodes removed later \
             are never freed"
                .to_string(),
        );
    }
    if options.misses {
        notes.push("each map is measured after the one before it was dropped".to_string());
        notes.push(match Counters::refusal() {
            Some(why) => format!(
                "cache misses and instructions are not counted, since the system refuses ({why}). Instead, times are given in loads, each of which depends on the load before and is from one of as many cache lines as there are rows"
            ),
            None => "cache misses are what the kernel's generic event counts: requests of the first-level caches that \
                     miss the second level on AMD Zen, the last level on Intel; in user mode, of the looking thread"
                .to_string(),
        });
    } else {
        notes.push("inserts fill an empty map in random order, growing included".to_string());
    }
    notes
}
