//! The arguments of the array of numbers.

use candide_harness::each_once;
use candide_workloads::micro::Array;
use candide_workloads::stamp::Form;
use clap::Args;

use super::values::whole;
use super::{Common, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct ArrayArgs {
    /// Elements of the array; a thread increments those of its own share
    #[arg(long, value_parser = whole::<u64>, value_name = "COUNT", default_value_t = 1_000_000)]
    elements: u64,

    /// Elements that a transaction increments
    #[arg(long, value_parser = whole::<usize>, value_name = "COUNT", default_value_t = 50)]
    increments: usize,

    /// Whether transactions read what they change (`eager`) or leave changes to the commit
    /// (`deferred`), separated by commas
    #[arg(long, value_delimiter = ',', default_value = "eager,deferred")]
    form: Vec<Form>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl ArrayArgs {
    /// Returns one workload for each form.
    pub(crate) fn workloads(&self) -> Vec<Array> {
        let &ArrayArgs { elements, increments, .. } = self;
        let of = |form| Array { elements, increments, form };
        each_once(&self.form).into_iter().map(of).collect()
    }
}
