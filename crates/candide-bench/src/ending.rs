//! The end of a command.

use candide_harness::Report;
use candide_harness::check::Finding;

/// The outcome of a command that was carried out.
pub(crate) struct Ending {
    /// The worst finding of everything that was examined.
    pub(crate) finding: Finding,
    /// Whether Ctrl-C ended the command.
    pub(crate) early: bool,
}

impl Ending {
    /// Returns the ending of a command that has measured `report`.
    pub(crate) fn of(report: Report) -> Ending {
        Ending { finding: report.finding(), early: report.ended_early }
    }
}
