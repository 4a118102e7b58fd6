//! Checking a history from a file.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use candide_check::black::{ListOp, RegisterOp, Transaction, check_lists, check_registers};
use candide_check::json::{AnyReader, Reader};
use candide_check::{Checker, Event, FormatError, Options, Summary, Windows, edn};

use super::verdict::{Claim, Verdict};
use crate::failure::Failure;
use crate::progress::{self, Agenda};

/// Judges the history in the file at `path`, with the checker for the file's format.
pub fn judge_file(path: &Path, claim: Claim) -> Result<Verdict, Failure> {
    let said = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let refused = |problem: &dyn std::fmt::Display| Failure::Usage(said(problem));
    let damaged = |problem: &dyn std::fmt::Display| Failure::Run(said(problem).into());
    if path.is_dir() {
        return Err(refused(&"is a folder; name a file with a history"));
    }
    let open = || {
        File::open(path)
            .and_then(progress::reading)
            .map(BufReader::new)
            .map_err(|error| refused(&error))
    };
    let is_of_clients = || match claim.opaque {
        true => Err(refused(
            &"holds the answers to clients, and no reads of aborted attempts: leave out --opacity",
        )),
        false => Ok(()),
    };
    if path.extension().is_some_and(|extension| extension == "edn") {
        is_of_clients()?;
        // A history has either appends or writes. The reader of appends is tried first.
        return match edn::read_named::<ListOp>(open()?) {
            Ok((history, names)) => Ok(of_lists(&history, claim).of_named(&names)),
            Err(of_lists) => match edn::read_named::<RegisterOp>(open()?) {
                Ok((history, names)) => Ok(of_registers(&history, claim).of_named(&names)),
                Err(of_registers) => Err(damaged(&of_neither(&of_lists, &of_registers))),
            },
        };
    }
    let mut file = open()?;
    if file.fill_buf().map_err(|error| damaged(&error))?.is_empty() {
        return Ok(Verdict::of_nothing(claim));
    }
    match AnyReader::new(file).map_err(|error| damaged(&error))? {
        AnyReader::Versions(events) => {
            // A pipe can be read only once.
            let (events, watermarks) = match path.is_file() {
                true => {
                    let watermarks = watermarks(events).map_err(|error| damaged(&error))?;
                    (Reader::new(open()?).map_err(|error| damaged(&error))?, watermarks)
                }
                false => (events, Vec::new()),
            };
            let summary = judged(events, &watermarks, claim.of_versions())
                .map_err(|error| damaged(&error))?;
            Ok(Verdict::of_versions("versions".to_string(), claim, summary, Vec::new()))
        }
        AnyReader::Lists(lines) => {
            is_of_clients()?;
            let history = lines.collect::<Result<Vec<_>, _>>().map_err(|error| damaged(&error))?;
            Ok(of_lists(&history, claim))
        }
        AnyReader::Registers(lines) => {
            is_of_clients()?;
            let history = lines.collect::<Result<Vec<_>, _>>().map_err(|error| damaged(&error))?;
            Ok(of_registers(&history, claim))
        }
    }
}

/// Explains why a file is no history of lists and none of registers, with the error of the reader
/// that read further. Returns both errors if the readers stopped at the same line with different
/// errors.
fn of_neither(of_lists: &FormatError, of_registers: &FormatError) -> String {
    let line = |error: &FormatError| match error {
        FormatError::Line { line, .. } => *line,
        _ => 0,
    };
    match line(of_lists).cmp(&line(of_registers)) {
        Ordering::Greater => of_lists.to_string(),
        Ordering::Less => of_registers.to_string(),
        Ordering::Equal if of_lists.to_string() == of_registers.to_string() => of_lists.to_string(),
        Ordering::Equal => format!("neither lists ({of_lists}) nor registers ({of_registers})"),
    }
}

/// Returns, for each window of lines, the time up to which the history is complete, so that the
/// checker can forget transactions as early as possible.
fn watermarks<R: BufRead>(events: Reader<R, Event>) -> Result<Vec<u64>, FormatError> {
    let mut windows = Windows::default();
    for event in events {
        windows.note(&event?);
    }
    Ok(windows.watermarks())
}

fn judged<R: BufRead>(
    events: Reader<R, Event>,
    watermarks: &[u64],
    options: Options,
) -> Result<Summary, FormatError> {
    let mut checker = Checker::new(options);
    let (mut watermarks, mut complete_before) = (watermarks.iter(), 0);
    for (number, event) in (1_usize..).zip(events) {
        let event = event?;
        if event.due() < complete_before {
            let problem = "the file has been changed since it was read first".to_string();
            // The header is a line, too.
            return Err(FormatError::Line { line: number as u64 + 1, problem });
        }
        checker.feed(&event);
        if number.is_multiple_of(Windows::LINES)
            && let Some(watermark) = watermarks.next()
        {
            complete_before = *watermark;
            checker.advance(complete_before);
            if checker.violation().is_some() {
                break;
            }
        }
    }
    Ok(checker.finish())
}

fn of_lists(history: &[Transaction<ListOp>], claim: Claim) -> Verdict {
    let checked = judging(|| check_lists(history, claim.of_values()));
    Verdict::of_values("lists".to_string(), claim, history, checked.into())
}

fn of_registers(history: &[Transaction<RegisterOp>], claim: Claim) -> Verdict {
    let checked = judging(|| check_registers(history, claim.of_values()));
    Verdict::of_values("registers".to_string(), claim, history, checked)
}

/// Runs `check` and shows meanwhile that a checker is at work.
fn judging<T: Send>(check: impl FnOnce() -> T + Send) -> T {
    progress::with_line(&Agenda::new(1, Duration::ZERO), "checking the history,", None, check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_history_file_is_a_wrong_option_and_a_damaged_one_a_failure() {
        let folder = std::env::temp_dir().join(format!("candide-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let claim = Claim { strict: false, opaque: false, horizon: 0 };
        let status =
            |path: &Path| judge_file(path, claim).err().map(|failure| failure.exit_status());
        for (name, text) in [("a.jsonl", "{}\n"), ("a.edn", "{:type")] {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(status(&path), Some(1), "{name}");
        }
        assert_eq!(status(&folder.join("missing")), Some(2));
        assert_eq!(status(&folder), Some(2), "a folder");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
