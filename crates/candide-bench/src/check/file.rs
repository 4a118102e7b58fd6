//! Checking a history that was kept in a file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use candide_check::Checker;
use candide_check::black::{ListOp, RegisterOp, Transaction, check_lists, check_registers};
use candide_check::edn;
use candide_check::json::AnyReader;

use super::verdict::{Claim, Verdict};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::progress::{self, Agenda};

/// Judges what is in the file, by whichever checker it is for.
pub(super) fn check(path: &Path, args: &CheckArgs) -> Result<Verdict, Failure> {
    let claim = Claim::of_any(args);
    let explain = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let open = || File::open(path).and_then(progress::reading).map(BufReader::new).map_err(|error| explain(&error));
    if path.extension().is_some_and(|extension| extension == "edn") {
        // Appends and writes are told apart by trying: a history has one of them.
        return match edn::read::<ListOp>(open()?) {
            Ok(history) => Ok(of_lists(&history, claim)),
            Err(of_lists) => {
                let history = edn::read::<RegisterOp>(open()?).map_err(|of_registers| {
                    explain(&format!("neither lists ({of_lists}) nor registers ({of_registers})"))
                })?;
                Ok(of_registers(&history, claim))
            }
        };
    }
    match AnyReader::new(open()?).map_err(|error| explain(&error))? {
        AnyReader::Versions(events) => {
            let mut checker = Checker::new(claim.of_versions());
            for event in events {
                checker.feed(&event.map_err(|error| explain(&error))?);
            }
            Ok(Verdict::of_versions("versions".to_string(), claim, checker.finish(), Vec::new()))
        }
        AnyReader::Lists(lines) => {
            let history = lines.collect::<Result<Vec<_>, _>>().map_err(|error| explain(&error))?;
            Ok(of_lists(&history, claim))
        }
        AnyReader::Registers(lines) => {
            let history = lines.collect::<Result<Vec<_>, _>>().map_err(|error| explain(&error))?;
            Ok(of_registers(&history, claim))
        }
    }
}

fn of_lists(history: &[Transaction<ListOp>], claim: Claim) -> Verdict {
    let checked = judging(|| check_lists(history, claim.of_values()));
    Verdict::of_values("lists".to_string(), claim, history, checked)
}

fn of_registers(history: &[Transaction<RegisterOp>], claim: Claim) -> Verdict {
    let checked = judging(|| check_registers(history, claim.of_values()));
    Verdict::of_values("registers".to_string(), claim, history, checked)
}

/// Says that a checker is at work.
fn judging<T: Send>(check: impl FnOnce() -> T + Send) -> T {
    progress::with_line(&Agenda::new(1, Duration::ZERO), "checking the history,", None, check)
}
