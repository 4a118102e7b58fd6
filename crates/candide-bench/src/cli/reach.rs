//! The options of `candide reach`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{positive, positive_duration, positive_duration_or_seconds, threads, whole};

/// The text at the end of the help of `reach`.
pub(super) const REACH_HELP: &str = "\
A place is a directory, on another disk or mounted from another machine.

Examples:
  candide reach status /mnt/other/shop
  candide reach restore /mnt/other/shop shop.candide
  candide reach standby /mnt/other/shop standby.candide --promote-after 3s
  candide reach drill /mnt/other/drill";

/// A tool for a place that has the log of a database.
#[derive(Debug, Subcommand)]
pub(crate) enum ReachCommand {
    /// Print who leads, the generations, and what they have
    Status {
        /// The place
        #[arg(value_name = "PLACE")]
        place: PathBuf,

        /// The number of generations, newest first
        #[arg(long, value_name = "N", value_parser = positive::<usize>, default_value = "10")]
        generations: usize,
    },
    /// Check every object, the log from its beginning to its end, and the newest snapshot
    Verify {
        /// The place
        #[arg(value_name = "PLACE")]
        place: PathBuf,
    },
    /// Make a new database that has all that the place has
    Restore {
        /// The place, which stays as it is
        #[arg(value_name = "PLACE")]
        place: PathBuf,

        /// The directory of the new database, which must be empty or not exist
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Set the database of a former primary aside, and follow the place in its stead
    Rejoin {
        /// The directory of the database, which is renamed
        #[arg(value_name = "DIR")]
        dir: PathBuf,

        /// The place
        #[arg(value_name = "PLACE")]
        place: PathBuf,
    },
    /// Follow the database until Ctrl-C, or until it takes over
    Standby {
        /// The place
        #[arg(value_name = "PLACE")]
        place: PathBuf,

        /// The directory of the standby's database, which is made if it does not exist
        #[arg(value_name = "DIR")]
        dir: PathBuf,

        /// Take over when no new object has come for this time, such as 3s [default: never]
        #[arg(long, value_name = "TIME", value_parser = positive_duration, allow_hyphen_values = true)]
        promote_after: Option<Duration>,
    },
    /// Kill, pause and promote a primary and two standbys that are processes of their own, and
    /// check that nothing is lost that was acknowledged
    Drill(DrillArgs),
}

/// The options of `candide reach drill`.
#[derive(Debug, Args)]
pub(crate) struct DrillArgs {
    /// The place, which must be empty or not exist; it stays
    #[arg(value_name = "PLACE")]
    pub(crate) place: PathBuf,

    /// Time after which nothing is disturbed any more, in seconds or with a unit, such as 60 or 2h
    #[arg(long, value_name = "N", value_parser = positive_duration_or_seconds, default_value = "60", allow_hyphen_values = true)]
    pub(crate) seconds: Duration,

    /// The seed of the faults [default: drawn, and printed]
    #[arg(long, value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,

    /// The time without a new object after which a standby takes over
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "1s", allow_hyphen_values = true)]
    pub(crate) promote_after: Duration,

    /// The longest time for which a process is paused
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "3s", allow_hyphen_values = true)]
    pub(crate) pause: Duration,

    /// Number of threads of the primary that run transactions
    #[arg(long, value_parser = threads, default_value = "3", allow_hyphen_values = true)]
    pub(crate) threads: usize,

    /// The directory of the databases, which must not exist; it stays [default: one among the
    /// temporary files, which is removed unless something is wrong]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Be a process of the drill, with its database in this directory
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) node: Option<PathBuf>,

    /// Be the first process, which makes the database, or one that leads again
    #[arg(long, hide = true, requires = "node")]
    pub(crate) leads: bool,
}
