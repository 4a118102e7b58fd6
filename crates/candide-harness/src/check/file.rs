//! Checking a history from a file, or from standard input.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use candide_check::black::{ListOp, RegisterOp, Transaction, check_lists, check_registers};
use candide_check::json::{AnyReader, Reader};
use candide_check::{Checker, Event, FormatError, Options, Summary, Windows, edn};

use super::verdict::{Claim, Verdict};
use crate::failure::Failure;
use crate::output::STANDARD;
use crate::progress::{self, Agenda};

/// The place of a history.
#[derive(Clone, Copy)]
struct Place<'a>(&'a Path);

impl Place<'_> {
    /// Returns whether the history comes from standard input.
    fn is_input(self) -> bool {
        self.0 == Path::new(STANDARD)
    }

    /// Opens the history from its beginning. Standard input can be opened only once.
    fn open(self) -> io::Result<Box<dyn BufRead>> {
        if self.is_input() {
            return Ok(Box::new(BufReader::new(progress::reading(io::stdin(), None))));
        }
        let file = File::open(self.0)?;
        let about = file.metadata()?;
        let length = about.is_file().then_some(about.len());
        Ok(Box::new(BufReader::new(progress::reading(file, length))))
    }

    fn said(self, problem: &dyn std::fmt::Display) -> String {
        match self.is_input() {
            true => format!("standard input: {problem}"),
            false => format!("{}: {problem}", self.0.display()),
        }
    }

    fn refused(self, problem: &dyn std::fmt::Display) -> Failure {
        Failure::Usage(self.said(problem))
    }

    fn damaged(self, problem: &dyn std::fmt::Display) -> Failure {
        Failure::Run(self.said(problem).into())
    }

    /// Returns an error if `claim` is about more than a history of clients tells.
    fn expect_claim_of_clients(self, claim: Claim) -> Result<(), Failure> {
        let words =
            "holds the answers to clients, and no reads of aborted attempts: leave out --opacity";
        if claim.opaque { Err(self.refused(&words)) } else { Ok(()) }
    }
}

/// Judges the history in the file at `path`, or that of standard input if `path` is `-`, with the
/// checker for its format.
pub fn judge_file(path: &Path, claim: Claim) -> Result<Verdict, Failure> {
    let place = Place(path);
    if path.is_dir() {
        return Err(place.refused(&"is a folder; name a file with a history"));
    }
    let mut input = place.open().map_err(|error| place.refused(&error))?;
    let first = input.fill_buf().map_err(|error| place.damaged(&error))?;
    // The name tells the format of a file, and the first bytes tell that of standard input.
    let is_edn = match place.is_input() {
        true => begins_edn(first),
        false => path.extension().is_some_and(|extension| extension == "edn"),
    };
    if is_edn {
        return judge_edn(place, input, claim);
    }
    if first.is_empty() {
        return Ok(Verdict::of_nothing(claim));
    }
    let damaged = |error: FormatError| place.damaged(&error);
    match AnyReader::new(input).map_err(damaged)? {
        AnyReader::Versions(events) => {
            // A pipe can be read only once.
            let (events, watermarks) = match path.is_file() && !place.is_input() {
                true => {
                    let watermarks = watermarks(events).map_err(damaged)?;
                    let again = place.open().map_err(|error| place.refused(&error))?;
                    (Reader::new(again).map_err(damaged)?, watermarks)
                }
                false => (events, Vec::new()),
            };
            let summary = judged(events, &watermarks, claim.of_versions()).map_err(damaged)?;
            Ok(Verdict::of_versions("versions".to_string(), claim, summary, Vec::new()))
        }
        AnyReader::Lists(lines) => {
            place.expect_claim_of_clients(claim)?;
            Ok(of_lists(&lines.collect::<Result<Vec<_>, _>>().map_err(damaged)?, claim))
        }
        AnyReader::Registers(lines) => {
            place.expect_claim_of_clients(claim)?;
            Ok(of_registers(&lines.collect::<Result<Vec<_>, _>>().map_err(damaged)?, claim))
        }
    }
}

/// Returns whether a history that begins with `first` is in Elle's format. A line of JSON is an
/// object, whose first name is a string.
fn begins_edn(first: &[u8]) -> bool {
    let mut letters = first.iter().filter(|letter| !letter.is_ascii_whitespace());
    match letters.next() {
        Some(b'{') => letters.next() != Some(&b'"'),
        other => other.is_some(),
    }
}

/// Judges a history in Elle's format.
fn judge_edn(
    place: Place<'_>,
    mut input: Box<dyn BufRead>,
    claim: Claim,
) -> Result<Verdict, Failure> {
    place.expect_claim_of_clients(claim)?;
    let mut text = Vec::new();
    input.read_to_end(&mut text).map_err(|error| place.damaged(&error))?;
    // A history has either appends or writes. The reader of appends is tried first.
    match edn::read_named::<ListOp>(&text[..]) {
        Ok((history, names)) => Ok(of_lists(&history, claim).of_named(&names)),
        Err(of_lists) => match edn::read_named::<RegisterOp>(&text[..]) {
            Ok((history, names)) => Ok(of_registers(&history, claim).of_named(&names)),
            Err(of_registers) => Err(place.damaged(&of_neither(&of_lists, &of_registers))),
        },
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
    fn the_first_bytes_tell_the_format_of_standard_input() {
        for json in ["{\"format\": 1}", " {\n \"a\": 2}", ""] {
            assert!(!begins_edn(json.as_bytes()), "{json}");
        }
        for edn in ["{:type :invoke}", "\n{ :index 0}", "[{:type :ok}]", "; a comment", "#jepsen"] {
            assert!(begins_edn(edn.as_bytes()), "{edn}");
        }
    }

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
