//! The options of `candide crash`.

use std::path::PathBuf;
use std::time::Duration;

use candide::Level;
use candide_harness::crash::kill;
use candide_harness::crash::{Bound, Order, Place};
use candide_harness::{Choices, Cores, Failure};
use clap::Args;

use super::values::{level, positive, positive_duration_or_seconds, share, threads, whole};

/// The text at the end of the help of `crash`.
pub(super) const CRASH_HELP: &str = "\
Examples:
  candide crash --seconds 60 --ledger crashes.csv
  candide crash --replay 30:37:512:all-but-5
  candide crash --kill --runs 1000";

/// The options of `candide crash`.
#[derive(Debug, Args)]
pub(crate) struct CrashArgs {
    /// Time after which no further script begins, in seconds or with a unit, such as 60 or 8h
    /// [default: 10 seconds]
    #[arg(long, value_name = "N", value_parser = positive_duration_or_seconds, conflicts_with = "states", allow_hyphen_values = true)]
    seconds: Option<Duration>,

    /// Number of states after which no further script begins
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    states: Option<u64>,

    /// The first seed; each script has its own [default: the one after the last in the ledger, or
    /// 0]. With --kill, the seed of everything random
    #[arg(long, value_parser = whole::<u64>)]
    seed: Option<u64>,

    /// Add a line for the run to this file, as CSV: date, first and last seed, states, failures,
    /// states per second
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// Number of threads [default: as many as there are cores; with --kill, 3 in each process]
    #[arg(long, value_parser = threads, allow_hyphen_values = true)]
    threads: Option<usize>,

    /// Share of the states that the whole engine opens, too, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.01")]
    engine: f64,

    /// Share of the states in which recovery is crashed, too, and in which the database continues
    /// and crashes again, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.001")]
    recovery: f64,

    /// The protocols under which the engine opens states, or processes are run, in turn
    #[arg(long, default_value = "occ,tictoc,mvcc,mvto,global-lock")]
    protocol: String,

    /// Judge one script again, or one of its states, and print the operations of the disk
    #[arg(long, value_name = "SEED[:STATE]", value_parser = replayed, conflicts_with_all = ["seconds", "states", "seed", "ledger", "kill"])]
    replay: Option<(u64, Option<Place>)>,

    /// Kill real processes, one after another, that run transactions on one database in files
    #[arg(long, conflicts_with_all = ["seconds", "states", "ledger"])]
    kill: bool,

    /// With --kill, the number of processes
    #[arg(long, value_name = "N", value_parser = positive::<u64>, default_value = "100")]
    runs: u64,

    /// With --kill, the level of durability for which transactions wait: `written` or `durable`
    #[arg(long, value_name = "LEVEL", value_parser = level(), default_value = "written")]
    ack: Level,

    /// With --kill, the directory of the database, which must not exist; it stays [default: one in
    /// the directory of temporary files, which is removed unless something is wrong]
    #[arg(long, value_name = "DIR", requires = "kill")]
    dir: Option<PathBuf>,

    /// Be the process that is killed
    #[arg(long, hide = true, value_name = "DIR")]
    child: Option<PathBuf>,

    /// Only print the contents of the database
    #[arg(long, hide = true, requires = "child")]
    look: bool,
}

/// The work that the command is to do.
pub(crate) enum CrashOrder {
    /// Judge the states of scripts.
    Judge(Order),
    /// Judge one script, or one state, again.
    Replay(u64, Option<Place>, Choices),
    /// Kill processes.
    Kill(kill::Order),
    /// Be a process that is killed.
    Child(kill::Child),
}

/// The time of a run, unless another one is given.
const USUAL: Duration = Duration::from_secs(10);
/// The number of threads of a process that is killed, unless another one is given.
const WORKERS: usize = 3;

impl CrashArgs {
    /// Returns the request that the options make.
    pub(crate) fn order(self) -> Result<CrashOrder, Failure> {
        let protocols: Choices = self.protocol.parse().map_err(Failure::Usage)?;
        let workers = self.threads.unwrap_or(WORKERS);
        let seed = self.seed.unwrap_or(0);
        if let Some(place) = self.child {
            let (level, only_looks, protocol) = (self.ack, self.look, protocols.0[0]);
            let workers = if protocol.permits(workers) { workers } else { 1 };
            let child = kill::Child { place, level, protocol, workers, seed, only_looks };
            return Ok(CrashOrder::Child(child));
        }
        if let Some((seed, place)) = self.replay {
            return Ok(CrashOrder::Replay(seed, place, protocols));
        }
        if self.kill {
            return Ok(CrashOrder::Kill(kill::Order {
                runs: self.runs,
                place: self.dir,
                level: self.ack,
                workers,
                seed,
                protocols,
            }));
        }
        let bound = match self.states {
            Some(states) => Bound::States(states),
            None => Bound::Time(self.seconds.unwrap_or(USUAL)),
        };
        Ok(CrashOrder::Judge(Order {
            bound,
            seed: self.seed,
            ledger: self.ledger,
            threads: self.threads.unwrap_or_else(|| Cores::allowed().count()),
            engine_share: self.engine,
            recovery_share: self.recovery,
            protocols,
        }))
    }
}

/// Parses a seed, and a state after a colon.
fn replayed(text: &str) -> Result<(u64, Option<Place>), String> {
    let (seed, place) = match text.split_once(':') {
        Some((seed, place)) => (seed, Some(place)),
        None => (text, None),
    };
    let seed = whole(seed)?;
    let place = place.map(str::parse).transpose();
    place
        .map(|place| (seed, place))
        .map_err(|error: candide_harness::crash::PlaceError| error.to_string())
}
