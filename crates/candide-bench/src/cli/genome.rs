//! The arguments of genome.

use candide_workloads::stamp::Scale;
use candide_workloads::stamp::genome::Genome;
use clap::Args;

use super::values::whole;
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct GenomeArgs {
    /// Published configurations, separated by commas: `sim` (for simulators) and `real` [default:
    /// sim, or real with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Scale>,

    /// Nucleotides of the gene [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    gene: Option<u32>,

    /// Nucleotides of a segment, at most 64 [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    segment: Option<u32>,

    /// Segments [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    segments: Option<u32>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl GenomeArgs {
    /// Returns one workload for each configuration.
    pub(crate) fn workloads(&self) -> Vec<Genome> {
        let of_mode = |mode| {
            let published = Genome::published(mode);
            Genome {
                gene: self.gene.unwrap_or(published.gene),
                segment: self.segment.unwrap_or(published.segment),
                segments: self.segments.unwrap_or(published.segments),
                ..published
            }
        };
        self.common.scales(&self.mode).into_iter().map(of_mode).collect()
    }
}
