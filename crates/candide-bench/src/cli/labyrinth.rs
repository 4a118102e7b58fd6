//! The arguments of labyrinth.

use candide_workloads::stamp::Scale;
use candide_workloads::stamp::labyrinth::Labyrinth;
use clap::Args;

use super::values::{weights, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct LabyrinthArgs {
    /// Published configurations, separated by commas: `sim` (for simulators) and `real` [default:
    /// sim, or real with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Scale>,

    /// Cells in each of the three directions, such as 15,15,3 [default: the configuration's]
    #[arg(long, value_parser = weights::<3>, value_name = "COUNTS")]
    sides: Option<[u32; 3]>,

    /// Pairs of cells to be connected [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    paths: Option<u32>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl LabyrinthArgs {
    /// Returns one workload for each configuration.
    pub(crate) fn workloads(&self) -> Vec<Labyrinth> {
        let of_mode = |mode| {
            let published = Labyrinth::published(mode);
            Labyrinth {
                sides: self.sides.unwrap_or(published.sides),
                paths: self.paths.unwrap_or(published.paths),
                ..published
            }
        };
        self.common.scales(&self.mode).into_iter().map(of_mode).collect()
    }
}
