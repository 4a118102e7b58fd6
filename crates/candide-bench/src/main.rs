//! The `candide` command: runs standard workloads on the Candide engine, measures the runs, and
//! checks the tables afterwards.
//!
//! `cli::EXIT_STATUS` lists the exit statuses.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layers, lowest first: ending, cli, figure, check, crash, database, reach.

mod check;
mod cli;
mod crash;
mod database;
mod ending;
mod figure;
mod reach;

use std::iter;
use std::process::ExitCode;

use candide_compiled::banks::measured::{smallbank, tpcb};
use candide_compiled::keys::measured::{
    array, beside, long_scan, predicate, ranges, shifting, ycsb_joint, ycsb_narrow,
};
use candide_compiled::stamp::measured::{bayes, genome, intruder, kmeans, labyrinth, vacation};
use candide_compiled::tpcc::measured::tpcc;
use candide_compiled::websites::measured::{rubis, wikipedia};
use candide_harness::check::Finding;
use candide_harness::{AnyWorkload, Failure, Outputs, Suite, interrupt, output, report};
use clap::{ArgMatches, FromArgMatches};

use cli::{Bench, Cli, Command, Common, FigureName};
use ending::Ending;

fn main() -> ExitCode {
    let matches = match cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(other) => return answer(&other),
    };
    let command = match Cli::from_arg_matches(&matches) {
        Ok(Cli { command }) => command,
        Err(other) => return answer(&other),
    };
    match execute(command) {
        Ok(Ending { finding, early: true }) if finding != Finding::Bad => {
            ExitCode::from(interrupt::STATUS)
        }
        Ok(Ending { finding, .. }) => ExitCode::from(finding.exit_status()),
        Err(failure) => {
            output::say(&format!("error: {failure}"));
            if let Failure::Usage(_) = failure {
                output::say(&format!("\nFor more information, try '{} --help'.", path(&matches)));
            }
            ExitCode::from(failure.exit_status())
        }
    }
}

/// Handles arguments that clap does not parse into a command: prints the help, the version, or an
/// error.
fn answer(other: &clap::Error) -> ExitCode {
    if other.use_stderr() {
        // If printing fails, the exit status still reports the error.
        let _ = other.print();
        return ExitCode::from(2);
    }
    match output::print(|_| other.print()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&format!("error: {failure}"));
            ExitCode::from(failure.exit_status())
        }
    }
}

/// Returns the names of the command and its subcommands, as typed. An error message uses them to
/// point to the help of the subcommand.
fn path(matches: &ArgMatches) -> String {
    let subcommands = iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    subcommands.fold("candide".to_string(), |path, (name, _)| format!("{path} {name}"))
}

fn execute(command: Command) -> Result<Ending, Failure> {
    match command {
        Command::Bench(workload) => bench(*workload),
        Command::Reproduce(args) => {
            let Some(figure) = args.figure else {
                output::print(|out| writeln!(out, "{}", FigureName::list()))?;
                return Ok(Ending { finding: Finding::Good, early: false });
            };
            let reproduction = figure::Reproduction::plan(figure, &args)?;
            let outputs = Outputs {
                json: args.json.as_deref(),
                page: args.report.as_deref(),
                baseline: args.baseline.as_deref(),
            };
            report(outputs, || reproduction.run()).map(Ending::of)
        }
        Command::Check(args) => check::run(&args),
        Command::Crash(args) => crash::run(*args),
        Command::Log(command) => database::log(command),
        Command::Tables(args) => database::tables(&args),
        Command::Dump(args) => database::dump(&args),
        Command::Load(args) => database::load(args),
        Command::Get(args) => database::get(&args),
        Command::Backup(args) => database::backup(&args),
        Command::Reach(command) => reach::run(command),
        Command::RecoverBench(args) => database::recover_bench(args),
    }
}

/// Runs the workload with the options given, and reports.
fn bench(workload: Bench) -> Result<Ending, Failure> {
    match workload {
        Bench::Ycsb(args) => run(args.workloads(), &args.common),
        Bench::YcsbNarrow(args) => run(args.workloads().into_iter().map(ycsb_narrow), &args.common),
        Bench::YcsbHot(args) => run(args.workloads().into_iter().map(ycsb_joint), &args.common),
        Bench::LongScan(args) => run(args.workloads().into_iter().map(long_scan), &args.common),
        Bench::Shifting(args) => {
            let workloads = args.workloads();
            run(workloads.into_iter().map(shifting), &args.into_common())
        }
        Bench::KeyValue(args) => run([args.workload()], &args.common),
        Bench::RangeScan(args) => run([ranges(args.workload())], &args.common),
        Bench::Array(args) => run(args.workloads().into_iter().map(array), &args.common),
        Bench::Beside(args) => run([beside(args.workload())], &args.common),
        Bench::Predicate(args) => run([predicate(args.workload())], &args.common),
        Bench::SmallBank(args) => run([smallbank(args.workload())], &args.common),
        Bench::Tpcc(args) => run(args.workloads().into_iter().map(tpcc), &args.common),
        Bench::Rubis(args) => run([rubis(args.workload())], &args.common),
        Bench::Wikipedia(args) => run([wikipedia(args.workload())], &args.common),
        Bench::Kmeans(args) => run(args.workloads().into_iter().map(kmeans), &args.common),
        Bench::Vacation(args) => run(args.workloads().into_iter().map(vacation), &args.common),
        Bench::Labyrinth(args) => run(args.workloads().into_iter().map(labyrinth), &args.common),
        Bench::Intruder(args) => run(args.workloads().into_iter().map(intruder), &args.common),
        Bench::Genome(args) => run(args.workloads().into_iter().map(genome), &args.common),
        Bench::Bayes(args) => run(args.workloads().into_iter().map(bayes), &args.common),
        Bench::TpcB(args) => run([tpcb(args.workload())], &args.common),
    }
}

/// Runs the workloads and reports.
fn run(
    workloads: impl IntoIterator<Item = Box<dyn AnyWorkload>>,
    common: &Common,
) -> Result<Ending, Failure> {
    let workloads: Vec<_> = workloads.into_iter().collect();
    let suite = Suite::plan(&workloads, &common.matrix(), common.rules()?)?;
    report(common.outputs(), || suite.run()).map(Ending::of)
}
