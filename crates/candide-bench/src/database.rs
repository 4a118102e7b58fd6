//! `candide log`, `candide tables`, `candide dump`, `candide load`, `candide get`, `candide backup`
//! and `candide recover-bench`: databases in files that are not in use.

use candide_harness::check::Finding;
use candide_harness::{Failure, database};

use crate::cli::{
    BackupArgs, DumpArgs, GetArgs, LoadArgs, LogCommand, RecoverBenchArgs, RepairArgs, TablesArgs,
};
use crate::ending::Ending;

/// Runs a tool.
pub(crate) fn log(command: LogCommand) -> Result<Ending, Failure> {
    match command {
        LogCommand::Inspect(args) => {
            let (place, inspection) = args.inspection();
            database::inspect(&place, &inspection)
        }
        LogCommand::Verify { place } => database::verify(&place),
        LogCommand::Stats { place } => database::stats(&place),
        LogCommand::Repair(RepairArgs { place, to, until }) => database::repair(&place, &to, until),
    }
    .map(ending)
}

/// Prints the tables.
pub(crate) fn tables(args: &TablesArgs) -> Result<Ending, Failure> {
    database::tables(&args.place).map(ending)
}

/// Prints the rows of a table.
pub(crate) fn dump(args: &DumpArgs) -> Result<Ending, Failure> {
    database::dump(&args.place, &args.table, args.form.format()).map(ending)
}

/// Adds rows to a table.
pub(crate) fn load(args: LoadArgs) -> Result<Ending, Failure> {
    let (place, order) = args.order();
    database::load(&place, &order).map(ending)
}

/// Prints a row.
pub(crate) fn get(args: &GetArgs) -> Result<Ending, Failure> {
    database::get(&args.place, &args.table, &args.key, args.form.format()).map(ending)
}

/// Copies a database.
pub(crate) fn backup(args: &BackupArgs) -> Result<Ending, Failure> {
    database::backup(&args.place, &args.to).map(ending)
}

/// Measures recovery.
pub(crate) fn recover_bench(args: RecoverBenchArgs) -> Result<Ending, Failure> {
    database::measure_recovery(&args.order()).map(ending)
}

fn ending(finding: Finding) -> Ending {
    Ending { finding, early: false }
}
