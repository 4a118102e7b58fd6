//! `candide crash`: judges what crashes leave of databases in files.

use candide_harness::{Failure, crash, interrupt};

use crate::cli::{CrashArgs, CrashOrder};
use crate::ending::Ending;

/// Runs the laboratory with the options.
pub(crate) fn run(args: CrashArgs) -> Result<Ending, Failure> {
    let finding = match args.order()? {
        CrashOrder::Judge(order) => crash::run(&order)?,
        CrashOrder::Replay(seed, place, protocols) => crash::replay(seed, place, &protocols)?,
        CrashOrder::Kill(order) => crash::kill::run(&order)?,
        CrashOrder::Child(child) => {
            crash::kill::run_child(&child)?;
            candide_harness::check::Finding::Good
        }
    };
    Ok(Ending { finding, early: interrupt::is_pressed() })
}
