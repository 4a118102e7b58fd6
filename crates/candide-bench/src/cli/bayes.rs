//! The arguments of bayes.

use candide_workloads::stamp::Scale;
use candide_workloads::stamp::bayes::Bayes;
use clap::Args;

use super::values::{percent, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct BayesArgs {
    /// Published configurations, separated by commas: `sim` (for simulators) and `real` [default:
    /// sim, or real with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Scale>,

    /// Variables, at most 32 [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    variables: Option<u32>,

    /// Records, at most 65536 [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    records: Option<u32>,

    /// Largest number of parents in the network from which records are drawn [default: the
    /// configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    parents: Option<u32>,

    /// Percentage of possible parents that a variable has in that network [default: the
    /// configuration's]
    #[arg(long = "parents-pct", value_parser = percent, value_name = "PERCENT")]
    parents_pct: Option<u32>,

    /// Largest number of parents in the network that is learned, at most 12 [default: the
    /// configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    edges: Option<u32>,

    /// Penalty for an edge, in halves of the logarithm of the number of records [default: the
    /// configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    penalty: Option<u32>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl BayesArgs {
    /// Returns one workload for each configuration.
    pub(crate) fn workloads(&self) -> Vec<Bayes> {
        let of_mode = |mode| {
            let published = Bayes::published(mode);
            Bayes {
                variables: self.variables.unwrap_or(published.variables),
                records: self.records.unwrap_or(published.records),
                parents: self.parents.unwrap_or(published.parents),
                parents_pct: self.parents_pct.unwrap_or(published.parents_pct),
                edges: self.edges.unwrap_or(published.edges),
                penalty: self.penalty.unwrap_or(published.penalty),
                ..published
            }
        };
        self.common.scales(&self.mode).into_iter().map(of_mode).collect()
    }
}
