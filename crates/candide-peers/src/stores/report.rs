//! The report of an invocation.

use candide_harness::results::Machine;
use serde::Serialize;

use super::about::About;
use super::cli::Options;
use super::figures::Figure;
use crate::command::{build_note, huge_pages_note, machine};

/// The results, and the settings and the machine of the measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) machine: Machine,
    pub(crate) runs: u16,
    pub(crate) duration_s: f64,
    pub(crate) seed: u64,
    pub(crate) peers: Vec<About>,
    pub(crate) results: Vec<Figure>,
    /// The notes on the figures.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(options: &Options, peers: Vec<About>) -> Report {
        let machine = machine();
        let mut notes = vec![
            "durability: none; all transactions are serializable; retries are repetitions for each hundred transactions, \
             all of which committed in the end"
                .to_string(),
            "a yardstick is no store: it cannot roll back, and `sharded` must know all rows of a transaction beforehand"
                .to_string(),
        ];
        notes.extend(build_note());
        notes.extend(huge_pages_note(&machine));
        Report {
            machine,
            runs: options.runs,
            duration_s: options.duration.as_secs_f64(),
            seed: options.seed,
            peers,
            results: Vec::new(),
            notes,
        }
    }
}
