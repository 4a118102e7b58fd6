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
mod hottest;
mod interrupt;
mod machine;
mod measurement;
mod pace;
mod page;
mod plan;
mod progress;
mod registry;
mod rendezvous;
mod report;
mod sink;
mod slices;
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
        Command::Bench(workload) => bench(*workload),
        Command::Reproduce(args) => {
            let reproduction = figure::Reproduction::plan(&args)?;
            report(args.json.as_deref(), args.report.as_deref(), || reproduction.run())
        }
        Command::Check(args) => check::run(&args),
    }
}

/// Runs the workload as the arguments want it, and reports.
fn bench(workload: Bench) -> Result<Ending, Failure> {
    match workload {
        Bench::Ycsb(args) => run(&args.workloads(), &args.common),
        Bench::YcsbNarrow(args) => run(&args.workloads(), &args.common),
        Bench::YcsbHot(args) => run(&args.workloads(), &args.common),
        Bench::LongScan(args) => run(&[args.workload()], &args.common),
        Bench::Shifting(args) => {
            let workload = args.workload();
            run(&[workload], &args.into_common())
        }
        Bench::KeyValue(args) => match args.workload() {
            KeyValue::Word(workload) => run(&[workload], &args.common),
            KeyValue::Single(workload) => run(&[workload], &args.common),
            KeyValue::Joint(workload) => run(&[workload], &args.common),
        },
        Bench::RangeScan(args) => run(&[args.workload()], &args.common),
        Bench::Predicate(args) => run(&[args.workload()], &args.common),
        Bench::SmallBank(args) => run(&[args.workload()], &args.common),
        Bench::Tpcc(args) => run(&args.workloads(), &args.common),
        Bench::Rubis(args) => run(&[args.workload()], &args.common),
        Bench::Wikipedia(args) => run(&[args.workload()], &args.common),
        Bench::TpcB(args) => run(&[args.workload()], &args.common),
        Bench::Voter(args) => run(&[args.workload()], &args.common),
    }
}

/// Runs the workloads and reports.
fn run<W: Workload + 'static>(workloads: &[W], common: &Common) -> Result<Ending, Failure> {
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
    if let (Some(json), Some(html)) = (&json, &html)
        && json.is_same(html)
    {
        return Err(Failure::Usage("--json and --report name the same file; give each one of its own".to_string()));
    }
    interrupt::listen()?;
    let report = measure()?;
    // Before anything is printed, which may fail.
    if let Some(sink) = json {
        sink.write(&report.to_json()?)?;
    }
    if let Some(sink) = html {
        sink.write(&page::render(&report)?)?;
    }
    table::print(&report);
    Ok(Ending { good: report.is_consistent(), early: report.ended_early })
}
