//! The arguments of Voter.

use candide_workloads::voter::Voter;
use clap::Args;

use super::values::{percent, whole};
use super::{Common, Profile, WORKLOAD};

#[derive(Debug, Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct VoterArgs {
    /// Number of contestants, at most 12
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT", default_value_t = 6)]
    contestants: u32,

    /// Votes allowed from each telephone [default: 2, or 1000 with --profile paper]
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT")]
    votes: Option<u32>,

    /// Telephones in each of the 305 areas
    #[arg(long, value_parser = whole::<u32>, value_name = "COUNT", default_value_t = 10_000_000)]
    telephones: u32,

    /// Percentage of calls for a contestant that does not exist
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value_t = 1)]
    invalid: u32,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl VoterArgs {
    pub(crate) fn workload(&self) -> Voter {
        let profile = match self.common.profile {
            Profile::Strict => Voter::strict(),
            Profile::Paper => Voter::published(),
        };
        Voter {
            contestants: self.contestants,
            votes_max: self.votes.unwrap_or(profile.votes_max),
            telephones: self.telephones,
            invalid_pct: self.invalid,
        }
    }
}
