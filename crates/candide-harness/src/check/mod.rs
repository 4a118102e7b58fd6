//! Records the operations of transactions, or the answers that clients receive, and runs a checker
//! on this history.

mod allowance;
mod clients;
mod file;
mod record;
mod recordable;
mod verdict;

use std::path::Path;
use std::time::Duration;

use crate::progress::Agenda;
pub use crate::results::Finding;
pub use clients::{Checked, Clients, clients};
pub use file::judge_file;
pub use record::record;
pub use recordable::{Recordable, RecordedSite, recordable};
pub use verdict::{Claim, Verdict};

/// The parameters that all recordings of one command share.
pub struct Rules<'a> {
    /// The properties demanded of a history, besides those that its protocol promises.
    pub claim: Claim,
    /// Whether the database is opaque; `None` if the protocol leaves no choice.
    pub opaque: Option<bool>,
    /// The seed of everything random.
    pub seed: u64,
    /// The time for which each protocol runs.
    pub duration: Duration,
    /// The file to which the history is written as JSON lines.
    pub history: Option<&'a Path>,
    /// The file to which the history of clients is written in the format that Elle reads.
    pub edn: Option<&'a Path>,
    /// The protocols that are run one after another.
    pub agenda: Agenda,
}
