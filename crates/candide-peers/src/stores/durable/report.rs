//! The report of an invocation.

use std::fs;
use std::io;

use candide_harness::results::Machine;
use serde::Serialize;

use super::cli::Options;
use super::disk::Disk;
use super::figures::Figure;
use crate::command::{build_note, machine};
use crate::stores::about::About;

/// The results, and the settings and the machine of the measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) machine: Machine,
    pub(crate) disk: Disk,
    /// The number of rows in the table.
    pub(crate) rows: u64,
    pub(crate) rounds: u16,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
    pub(crate) stores: Vec<About>,
    pub(crate) results: Vec<Figure>,
    /// The notes on the figures.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(options: &Options, stores: Vec<About>) -> io::Result<Report> {
        let disk = Disk::of(&options.directory)?;
        let mut notes = vec![
            "durability: each transaction is synced before it is acknowledged; all are serializable; retries are \
             repetitions for each hundred transactions, all of which committed in the end"
                .to_string(),
            "latency is from the beginning of a transaction to its acknowledgement; the floor is one thread that overwrites \
             written blocks, one after another"
                .to_string(),
            "after each turn the store was opened again, and had the rows that the acknowledged transactions make"
                .to_string(),
        ];
        if disk.is_in_memory() {
            notes.push(
                "the directory is in memory: nothing there survives a loss of power, and the figures mean nothing"
                    .to_string(),
            );
        }
        let machine = machine();
        notes.extend(load().and_then(|load| load_note(load, machine.cores)));
        notes.extend(build_note());
        Ok(Report {
            machine,
            disk,
            rows: options.rows,
            rounds: options.rounds,
            seconds: options.seconds.as_secs_f64(),
            seed: options.seed,
            stores,
            results: Vec::new(),
            notes,
        })
    }
}

/// Returns the number of threads that wanted a core in the last minute, on average; `None` if the
/// system does not report it.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Returns the note about other programs that run; `None` if the machine is nearly idle.
fn load_note(load: f64, cores: usize) -> Option<String> {
    (load > cores as f64 / 4.0).then(|| {
        format!(
            "other programs run (load {load} on {cores} cores): after a sync a thread waits for a core, often longer than \
             the sync took, so the figures do not compare the stores"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::load_note;

    #[test]
    fn the_report_notes_load_by_other_processes() {
        assert_eq!(load_note(0.4, 2), None);
        assert!(load_note(9.44, 2).is_some_and(|note| note.contains("load 9.44 on 2 cores")));
    }
}
