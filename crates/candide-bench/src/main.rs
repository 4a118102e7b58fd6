//! The `candide` command: runs standard workloads on the Candide engine, measures them, and checks what they leave behind.
//!
//! Exit status: 0 if all went well, 1 if an invariant failed, a history is not what it should be or a run could not be finished,
//! 2 for bad arguments.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod affinity;
mod check;
mod cli;
mod driver;
mod failure;
mod machine;
mod measurement;
mod page;
mod plan;
mod progress;
mod registry;
mod rendezvous;
mod report;
mod sink;
mod suite;
mod table;
mod timeline;

use std::process::ExitCode;

use clap::Parser;

use cli::{Bench, Cli, Command, Common, KeyValue};
use failure::Failure;
use sink::Sink;
use suite::Suite;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Bench(Bench::Ycsb(args)) => run(&args.workloads(), &args.common),
        Command::Bench(Bench::YcsbNarrow(args)) => run(&args.workloads(), &args.common),
        Command::Bench(Bench::YcsbHot(args)) => run(&args.workloads(), &args.common),
        Command::Bench(Bench::LongScan(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::Shifting(args)) => {
            let workload = args.workload();
            run(&[workload], &args.into_common())
        }
        Command::Bench(Bench::KeyValue(args)) => match args.workload() {
            KeyValue::Word(workload) => run(&[workload], &args.common),
            KeyValue::Single(workload) => run(&[workload], &args.common),
            KeyValue::Joint(workload) => run(&[workload], &args.common),
        },
        Command::Bench(Bench::RangeScan(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::Predicate(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::SmallBank(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::Tpcc(args)) => run(&args.workloads(), &args.common),
        Command::Bench(Bench::Rubis(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::Wikipedia(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::TpcB(args)) => run(&[args.workload()], &args.common),
        Command::Bench(Bench::Voter(args)) => run(&[args.workload()], &args.common),
        Command::Check(args) => check::run(&args),
    };
    match outcome {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_status())
        }
    }
}

/// Runs the workloads and reports. Gives whether all invariants held.
fn run<W: candide_workloads::Workload>(workloads: &[W], common: &Common) -> Result<bool, Failure> {
    let suite = Suite::plan(workloads, common)?;
    let json = common.json.as_deref().map(Sink::open).transpose()?;
    let html = common.report.as_deref().map(Sink::open).transpose()?;
    let report = suite.run()?;
    table::print(&report);
    if let Some(sink) = json {
        sink.write(&report.to_json()?)?;
    }
    if let Some(sink) = html {
        sink.write(&page::render(&report)?)?;
    }
    Ok(report.is_consistent())
}
