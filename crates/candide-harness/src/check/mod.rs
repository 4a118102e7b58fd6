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

use candide::{Builder, Database, Error, Protocol};

use crate::progress::Agenda;
pub use crate::results::Finding;
pub use clients::{Checked, Clients, clients};
pub use file::judge_file;
pub use record::record;
pub use recordable::{Recordable, RecordedSite, recordable};
pub use verdict::{Claim, Verdict};

/// The options of a database whose history is recorded.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseOptions {
    /// Whether the database is opaque; `None` if the protocol leaves no choice.
    pub opaque: Option<bool>,
    /// By how much read-only transactions may see the past; zero if they see the present.
    pub past: Duration,
}

impl DatabaseOptions {
    /// Builds a database with these options.
    fn build<P: Protocol>(self, builder: Builder<P>) -> Result<Database<P>, Error> {
        let builder = builder.read_only_past(self.past);
        self.opaque.into_iter().fold(builder, |builder, on| builder.opaque(on)).build()
    }
}

/// The parameters that all recordings of one command share.
pub struct Rules<'a> {
    /// The properties demanded of a history, besides those that its protocol promises.
    pub claim: Claim,
    /// The options of the database.
    pub options: DatabaseOptions,
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
