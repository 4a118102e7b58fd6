//! bayes: the structure of a Bayesian network is learned from records, by hill climbing.
//!
//! For each variable there is at most one task: to insert, remove or reverse an edge that ends at
//! it, with the gain in the network's score. A thread takes the best task from a sorted list. The
//! next transaction sees whether the edge may still be changed, so that the network has no cycle
//! and no variable too many parents, and whether the score still gains; if so, it changes the
//! network and the scores. Then the thread looks for the best task for the same variable, and
//! another transaction adds that to the list. The program ends when the list is empty; the
//! network depends on the order in which threads took the tasks.
//!
//! The score of a variable is the logarithm of the likelihood of its values in the records, given
//! those of its parents, less a penalty for each parent. The counts that it needs come from an
//! AD-tree, as in STAMP. Scores are whole multiples of 2⁻¹⁶, so that their sum is exact in any
//! order.

mod ad_tree;
mod learner;
mod network;
mod objects;
mod settle;

use candide::{Database, Protocol};
use serde::Serialize;

use super::choices::Scale;
use super::kept::Kept;
use super::repeated::Repeated;
use crate::workload::{require, require_range};
use crate::{Failure, Loading, Size, Workload};
pub use objects::Learned;
pub use settle::{Found, Learning};

/// The types of transactions.
const KINDS: [&str; 5] = ["create", "take", "apply", "search", "push"];

/// The bytes of a record in the AD-tree, about.
const RECORD_BYTES: u64 = 4_000;
/// The largest number of variables. Sets of them are words of as many bits.
const VARIABLES_MAX: u32 = 32;
/// The largest number of records.
const RECORDS_MAX: u32 = 1 << 16;
/// The largest number of parents. As many again double the work of a score.
const PARENTS_MAX: u32 = 12;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Bayes {
    /// The published configuration from which the other knobs come.
    pub mode: Scale,
    /// The number of variables, whose values are true or false.
    pub variables: u32,
    /// The number of records.
    pub records: u32,
    /// The largest number of parents of a variable in the network from which records are drawn.
    pub parents: u32,
    /// The percentage of the parents that a variable could have, and that it has, in that network.
    pub parents_pct: u32,
    /// The largest number of parents of a variable in the network that is learned.
    pub edges: u32,
    /// The penalty for an edge, in halves of the logarithm of the number of records.
    pub penalty: u32,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Bayes {
    /// Returns a published configuration.
    pub fn published(mode: Scale) -> Self {
        let (records, parents, parents_pct, edges) = match mode {
            Scale::Sim => (1_024, 2, 20, 2),
            Scale::Real => (4_096, 10, 40, 8),
        };
        let kept = Kept::default();
        Bayes { mode, variables: 32, records, parents, parents_pct, edges, penalty: 2, kept }
    }
}

impl Workload for Bayes {
    type Loaded<P: Protocol> = Repeated<P, Learned<P>>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[];

    fn name(&self) -> String {
        "bayes".to_string()
    }

    fn keys(&self) -> u64 {
        1
    }

    fn size(&self) -> Size {
        Size::of(u64::from(self.records), "records", RECORD_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "the same network is learned again and again, and one thread empties it meanwhile",
            "a task is done only if it still gains, and scores are multiples of 1/65536",
        ]
    }

    fn validate(&self) -> Result<(), String> {
        require_range("the number of variables", 2..=VARIABLES_MAX, self.variables)?;
        require_range("the number of records", 1..=RECORDS_MAX, self.records)?;
        require_range("the percentage of parents", 0..=100, self.parents_pct)?;
        require_range("the number of edges", 1..=PARENTS_MAX, self.edges)?;
        require(self.penalty <= 1_000, || {
            format!("the penalty must be from 0 to 1000, not {}", self.penalty)
        })
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure> {
        let program = Learning::new(self, loading.seed, loading.stopped);
        Repeated::load(db, loading, program.ok_or(Failure::Stopped)?)
    }
}
