//! `candide reach`: the logs of databases in places that outlive the machine.

// Layers, lowest first: paths, silence, look, follow, drill.
mod drill;
mod follow;
mod look;
mod paths;
mod silence;

use candide_harness::Failure;

use crate::cli::ReachCommand;
use crate::ending::Ending;

/// Runs a tool.
pub(crate) fn run(command: ReachCommand) -> Result<Ending, Failure> {
    match command {
        ReachCommand::Status { place, generations } => look::status(&place, generations),
        ReachCommand::Verify { place } => look::verify(&place),
        ReachCommand::Restore { place, dir } => follow::restore(&place, &dir),
        ReachCommand::Rejoin { dir, place } => follow::rejoin(&dir, &place),
        ReachCommand::Standby { place, dir, promote_after } => {
            follow::standby(&place, &dir, promote_after)
        }
        ReachCommand::Drill(args) => drill::run(args),
    }
}
