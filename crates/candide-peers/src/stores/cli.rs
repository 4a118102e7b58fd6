//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use super::driver::{Drawn, Job, Lots};
use super::peers;
use super::workloads::{Skew, SmallBank, Transfer, Ycsb};
use crate::command::positive_duration;

/// Candide beside what a program would use instead, in one process, taking turns.
#[derive(Debug, Clone, Parser)]
#[command(name = "stores", version)]
pub struct Options {
    /// What the transactions do, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "transfer,smallbank,ycsb-a,ycsb-b,ycsb-c"
    )]
    pub(crate) workload: Vec<Choice>,

    /// Stores to compare, separated by commas, or `all` that are built in
    #[arg(long, value_parser = peer, value_delimiter = ',', default_value = "all", value_name = "NAME")]
    pub(crate) peers: Vec<String>,

    /// Rows in each table
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..=1_000_000_000), default_value = "100000")]
    pub(crate) rows: u64,

    /// Numbers of threads, separated by commas
    #[arg(long, value_parser = threads, value_delimiter = ',', default_value = "1,2")]
    pub(crate) threads: Vec<usize>,

    /// How long a run of one peer is measured, such as 2s or 200ms; a fifth of that comes before,
    /// for warming up
    #[arg(long, value_parser = positive_duration, default_value = "2s")]
    pub(crate) duration: Duration,

    /// How many runs to take the median of; in each, the peers take turns
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), default_value = "5")]
    pub(crate) runs: u16,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Returns whether the options select the peer `name`.
    pub(crate) fn wants(&self, name: &str) -> bool {
        has(&self.peers, name)
    }
}

/// The name that stands for all peers.
const ALL: &str = "all";

/// The most threads. The limit keeps a typing error from starting a million threads.
const THREADS_MAX: usize = 1024;

pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=THREADS_MAX).contains(&threads) => Ok(threads),
        _ => Err(format!("use numbers from 1 to {THREADS_MAX}, such as 1,2")),
    }
}

fn peer(name: &str) -> Result<String, String> {
    let known: Vec<_> = peers::all().iter().map(|peer| peer.about().name).collect();
    let left_out = peers::LEFT_OUT.iter().find(|(_, names)| names.contains(&name));
    one_of(name, "peer", &known, left_out.map(|(feature, _)| *feature))
}

/// Parses the name of one of the `known` peers, or [`ALL`]. `feature` is the feature that would add
/// the peer, if it is left out.
pub(super) fn one_of(
    name: &str,
    what: &str,
    known: &[&str],
    feature: Option<&str>,
) -> Result<String, String> {
    match feature {
        _ if name == ALL || known.contains(&name) => Ok(name.to_string()),
        Some(feature) => {
            Err(format!("it is not built in; ask for it by `cargo run --features {feature}`"))
        }
        None => Err(format!("there is no such {what}; use {ALL}, or some of {}", known.join(","))),
    }
}

/// Returns whether the list `chosen` has the peer `name`.
pub(super) fn has(chosen: &[String], name: &str) -> bool {
    chosen.iter().any(|peer| peer == name || peer == ALL)
}

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// Money moves between two accounts: two reads, two writes
    Transfer,
    /// Six types of transactions on two balances of each customer
    #[value(name = "smallbank")]
    SmallBank,
    /// 16 operations on columns of 100 bytes, half of them writes, theta 0.99
    YcsbA,
    /// 16 operations, one in twenty a write, theta 0.8
    YcsbB,
    /// 16 uniform reads
    YcsbC,
    /// Not a measurement but a probe: lets transactions of too weak an isolation fail
    Skew,
}

impl Choice {
    /// Returns the workload over `rows` rows, together with drawn inputs.
    pub(crate) fn draw(self, rows: u64, lots: Lots) -> Job {
        match self {
            Choice::Transfer => Job::Transfer(Drawn::new(Transfer { accounts: rows }, lots)),
            Choice::SmallBank => Job::SmallBank(Drawn::new(SmallBank { accounts: rows }, lots)),
            Choice::YcsbA => Job::Ycsb(Drawn::new(Ycsb::a(rows), lots)),
            Choice::YcsbB => Job::Ycsb(Drawn::new(Ycsb::b(rows), lots)),
            Choice::YcsbC => Job::Ycsb(Drawn::new(Ycsb::c(rows), lots)),
            // The rows form pairs, so the number of rows is even. The number is small, so that
            // transactions conflict.
            Choice::Skew => {
                Job::Skew(Drawn::new(Skew { rows: Skew::ROWS_MAX.min(rows) & !1 }, lots))
            }
        }
    }
}
