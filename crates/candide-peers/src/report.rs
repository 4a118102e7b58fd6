//! The report of an invocation.

use std::fmt;
use std::fs;
use std::time::SystemTime;

use serde::Serialize;

use crate::cli::{Hasher, Options};
use crate::cores::Cores;
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
    /// The facts that a reader of the figures must know.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Report {
        let machine = Machine::here();
        let mut notes = notes(options);
        notes.extend(machine.huge_pages_note());
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

/// The machine and the time of the measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    /// The kernel's setting for transparent huge pages, with the choice in brackets.
    pub(crate) huge_pages: String,
    /// The time at which the measurement began, in UTC.
    pub(crate) time: String,
}

impl Machine {
    /// Describes this machine, at the current time.
    pub(crate) fn here() -> Machine {
        let unknown = || "unknown".to_string();
        Machine {
            cpu: cpu().unwrap_or_else(unknown),
            cores: Cores::allowed().count(),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_else(unknown),
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }

    /// Returns the note about huge pages. Returns `None` if either all or none of the compared maps
    /// get huge pages.
    pub(crate) fn huge_pages_note(&self) -> Option<String> {
        let asked =
            std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("hugetlb=1"));
        (self.huge_pages.contains("[madvise]") && !asked).then(|| {
            "only memory that asks for huge pages gets them, and only Candide asks; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 in the \
             environment lets the others ask, too"
                .to_string()
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores, huge pages: {}", self.cpu, self.cores, self.huge_pages)
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
                "neither cache misses nor instructions: the system does not let us count ({why}). Instead, times are \
                 given in loads, each of which depends on the one before and is from one of as many cache lines as \
                 there are rows"
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

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

fn cpu() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, name) = fields.find(|(name, _)| name.trim() == "model name")?;
    Some(name.trim().to_string())
}
