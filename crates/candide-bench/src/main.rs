//! The `candide` command: runs standard workloads on the Candide engine, measures them, and checks what they leave behind.
//!
//! Exit status: 0 if all went well, 1 if an invariant failed, a history is not what it should be or a run could not be finished,
//! 2 for bad arguments, 130 if Ctrl-C ended it early and what was done by then is well.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod affinity;
mod check;
mod cli;
mod driver;
mod failure;
mod figure;
mod interrupt;
mod machine;
mod measurement;
mod page;
mod plan;
mod progress;
mod registry;
mod rendezvous;
mod report;
mod sink;
mod stand;
mod subject;
mod suite;
mod table;
mod timeline;

use std::path::Path;
use std::process::ExitCode;

use candide_workloads::Workload;
use clap::Parser;

use cli::{Bench, Cli, Command, Common, KeyValue};
use failure::Failure;
use report::Report;
use sink::Sink;
use subject::Subject;
use suite::Suite;

/// How the command ended, if it did what it was told to.
struct Ending {
    /// Whether everything that was examined is as it should be.
    good: bool,
    /// Whether Ctrl-C ended it.
    early: bool,
}

fn main() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(Ending { good: false, .. }) => ExitCode::FAILURE,
        Ok(Ending { early: true, .. }) => ExitCode::from(interrupt::STATUS),
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_status())
        }
    }
}

fn execute(command: Command) -> Result<Ending, Failure> {
    match command {
        Command::Bench(Bench::Ycsb(args)) => bench(&args.workloads(), &args.common),
        Command::Bench(Bench::YcsbNarrow(args)) => bench(&args.workloads(), &args.common),
        Command::Bench(Bench::YcsbHot(args)) => bench(&args.workloads(), &args.common),
        Command::Bench(Bench::LongScan(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::Shifting(args)) => {
            let workload = args.workload();
            bench(&[workload], &args.into_common())
        }
        Command::Bench(Bench::KeyValue(args)) => match args.workload() {
            KeyValue::Word(workload) => bench(&[workload], &args.common),
            KeyValue::Single(workload) => bench(&[workload], &args.common),
            KeyValue::Joint(workload) => bench(&[workload], &args.common),
        },
        Command::Bench(Bench::RangeScan(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::Predicate(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::SmallBank(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::Tpcc(args)) => bench(&args.workloads(), &args.common),
        Command::Bench(Bench::Rubis(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::Wikipedia(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::TpcB(args)) => bench(&[args.workload()], &args.common),
        Command::Bench(Bench::Voter(args)) => bench(&[args.workload()], &args.common),
        Command::Reproduce(args) => {
            let reproduction = figure::Reproduction::plan(&args)?;
            report(args.json.as_deref(), args.report.as_deref(), || reproduction.run())
        }
        Command::Check(args) => check::run(&args),
    }
}

/// Runs the workloads and reports.
fn bench<W: Workload + 'static>(workloads: &[W], common: &Common) -> Result<Ending, Failure> {
    let subjects = workloads.iter().map(|workload| workload as &dyn Subject).collect();
    let suite = Suite::plan(subjects, common)?;
    report(common.json.as_deref(), common.report.as_deref(), || suite.run())
}

/// Measures, and puts the results where they are wanted.
fn report(
    json: Option<&Path>,
    html: Option<&Path>,
    measure: impl FnOnce() -> Result<Report, Failure>,
) -> Result<Ending, Failure> {
    let json = json.map(Sink::open).transpose()?;
    let html = html.map(Sink::open).transpose()?;
    interrupt::listen()?;
    let report = measure()?;
    table::print(&report);
    if let Some(sink) = json {
        sink.write(&report.to_json()?)?;
    }
    if let Some(sink) = html {
        sink.write(&page::render(&report)?)?;
    }
    Ok(Ending { good: report.is_consistent(), early: report.ended_early })
}
