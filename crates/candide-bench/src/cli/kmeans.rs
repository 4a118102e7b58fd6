//! The arguments of kmeans.

use candide_harness::each_once;
use candide_workloads::stamp::kmeans::Kmeans;
use candide_workloads::stamp::{Form, Kept, Mode};
use clap::Args;

use super::values::{number, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct KmeansArgs {
    /// Published configurations, separated by commas: `low` and `high` (contention), `low-sim` and
    /// `high-sim` with fewer points, and those of deferred runtime pipelining, `drp` and `drp-hi`
    /// [default: high-sim, or low,high with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Mode>,

    /// Whether transactions read what they change (`eager`) or leave changes to the commit
    /// (`deferred`), separated by commas
    #[arg(long, value_delimiter = ',', default_value = "eager,deferred")]
    form: Vec<Form>,

    /// Points [default: the configuration's]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    points: Option<usize>,

    /// Coordinates of a point, at most 32 [default: the configuration's]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    dimensions: Option<usize>,

    /// Centres around which the points are generated [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    sources: Option<u32>,

    /// Clusters to find [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    clusters: Option<u32>,

    /// A clustering ends when at most this share of the points changes its cluster [default: the
    /// configuration's]
    #[arg(long, value_parser = number, value_name = "FRACTION")]
    threshold: Option<f64>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl KmeansArgs {
    /// Returns one workload for each configuration and each form.
    pub(crate) fn workloads(&self) -> Vec<Kmeans> {
        let modes = match &self.mode[..] {
            [] => self.common.by_profile(vec![Mode::HighSim], vec![Mode::Low, Mode::High]),
            modes => each_once(modes),
        };
        let forms = each_once(&self.form);
        let of_mode = |mode| {
            // Both forms are compared with the same sequential program.
            let kept = Kept::default();
            forms
                .iter()
                .map(move |&form| Kmeans { kept: kept.clone(), ..self.workload(mode, form) })
        };
        modes.into_iter().flat_map(of_mode).collect()
    }

    fn workload(&self, mode: Mode, form: Form) -> Kmeans {
        let published = Kmeans::published(mode, form);
        Kmeans {
            points: self.points.unwrap_or(published.points),
            dimensions: self.dimensions.unwrap_or(published.dimensions),
            sources: self.sources.unwrap_or(published.sources),
            clusters: self.clusters.unwrap_or(published.clusters),
            threshold: self.threshold.unwrap_or(published.threshold),
            ..published
        }
    }
}
