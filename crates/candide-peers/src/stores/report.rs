//! The report of an invocation.

use serde::Serialize;

use super::cli::Options;
use super::driver::About;
use super::figures::Figure;
use crate::report::Machine;

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
    /// The facts that a reader of the figures must know.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(options: &Options, peers: Vec<About>) -> Report {
        let machine = Machine::here();
        let mut notes = vec![
            "durability: none; all transactions are serializable; retries are repetitions for each hundred transactions, \
             all of which committed in the end"
                .to_string(),
            "a yardstick is no store: it cannot roll back, and `sharded` must know all rows of a transaction beforehand"
                .to_string(),
        ];
        if cfg!(debug_assertions) {
            notes.push(
                "built without optimization: the figures mean nothing; use `cargo run --release`"
                    .to_string(),
            );
        }
        notes.extend(machine.huge_pages_note());
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
