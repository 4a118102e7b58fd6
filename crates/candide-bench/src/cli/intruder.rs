//! The arguments of intruder.

use candide_workloads::stamp::Scale;
use candide_workloads::stamp::intruder::Intruder;
use clap::Args;

use super::values::{percent, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct IntruderArgs {
    /// Published configurations, separated by commas: `sim` (for simulators) and `real` [default:
    /// sim, or real with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Scale>,

    /// Percentage of flows that are attacks [default: the configuration's]
    #[arg(long = "attack", value_parser = percent, value_name = "PERCENT")]
    attack_pct: Option<u32>,

    /// Longest text of a flow that is no attack, in bytes, at most 4096 [default: the
    /// configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "BYTES")]
    length: Option<u32>,

    /// Flows [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    flows: Option<u32>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl IntruderArgs {
    /// Returns one workload for each configuration.
    pub(crate) fn workloads(&self) -> Vec<Intruder> {
        let of_mode = |mode| {
            let published = Intruder::published(mode);
            Intruder {
                attack_pct: self.attack_pct.unwrap_or(published.attack_pct),
                length: self.length.unwrap_or(published.length),
                flows: self.flows.unwrap_or(published.flows),
                ..published
            }
        };
        self.common.scales(&self.mode).into_iter().map(of_mode).collect()
    }
}
