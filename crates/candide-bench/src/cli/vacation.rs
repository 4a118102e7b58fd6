//! The arguments of vacation.

use candide_harness::each_once;
use candide_workloads::stamp::vacation::Vacation;
use candide_workloads::stamp::{Form, Kept, Mode};
use clap::Args;

use super::values::{percent, whole};
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct VacationArgs {
    /// Published configurations, separated by commas: `low` and `high` (contention), `low-sim` and
    /// `high-sim` with fewer relations, and those of deferred runtime pipelining, `drp` and
    /// `drp-hi` [default: high-sim, or low,high with --profile paper]
    #[arg(long, value_delimiter = ',')]
    mode: Vec<Mode>,

    /// Whether transactions read what they change (`eager`) or leave changes to the commit
    /// (`deferred`), separated by commas
    #[arg(long, value_delimiter = ',', default_value = "eager,deferred")]
    form: Vec<Form>,

    /// Largest number of queries of a task, at most 16 [default: the configuration's]
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT")]
    queries: Option<usize>,

    /// Percentage of the ids that tasks use [default: the configuration's]
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    queried: Option<u32>,

    /// Percentage of tasks that reserve; the others delete customers or change what there is
    /// [default: the configuration's]
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    user: Option<u32>,

    /// Cars, flights, rooms and customers, as many of each; four together take about 350 bytes
    /// [default: the configuration's]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    relations: Option<u32>,

    /// Tasks of all threads together, after which they repeat their inputs [default: the
    /// configuration's]
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT")]
    tasks: Option<u64>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl VacationArgs {
    /// Returns one workload for each configuration and each form.
    pub(crate) fn workloads(&self) -> Vec<Vacation> {
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
                .map(move |&form| Vacation { kept: kept.clone(), ..self.workload(mode, form) })
        };
        modes.into_iter().flat_map(of_mode).collect()
    }

    fn workload(&self, mode: Mode, form: Form) -> Vacation {
        let published = Vacation::published(mode, form);
        Vacation {
            queries: self.queries.unwrap_or(published.queries),
            queried_pct: self.queried.unwrap_or(published.queried_pct),
            user_pct: self.user.unwrap_or(published.user_pct),
            relations: self.relations.unwrap_or(published.relations),
            tasks: self.tasks.unwrap_or(published.tasks),
            ..published
        }
    }
}
