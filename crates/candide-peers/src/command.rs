//! The common parts of the commands.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use candide_harness::Cores;
use candide_harness::results::Machine;
use clap::Parser;
use serde::Serialize;

/// Parses the options of a command, and runs it. Prints its error, if there is one.
pub fn execute<O: Parser>(run: impl FnOnce(&O) -> Result<(), Box<dyn Error>>) -> ExitCode {
    match run(&O::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses a duration. A duration of zero is an error.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("must be longer than zero".to_string()) } else { Ok(duration) }
}

/// Writes a report to the file `path`, if there is to be one.
pub(crate) fn write_json(
    report: &impl Serialize,
    path: Option<&Path>,
) -> Result<(), Box<dyn Error>> {
    match path {
        Some(path) => Ok(fs::write(path, serde_json::to_string_pretty(report)? + "\n")?),
        None => Ok(()),
    }
}

/// Describes this machine, at the current time.
pub(crate) fn machine() -> Machine {
    Machine::inspect(Cores::allowed().count())
}

/// Prints the machine, the `facts` about the comparison, and the notes.
pub(crate) fn print_head(
    machine: &Machine,
    facts: impl IntoIterator<Item = String>,
    notes: &[String],
) {
    println!("{}, {} cores, huge pages: {}", machine.cpu, machine.cores, machine.thp);
    facts.into_iter().for_each(|fact| println!("{fact}"));
    notes.iter().for_each(|note| println!("note: {note}"));
}

/// Returns the note about huge pages. Returns `None` if either all or none of the compared maps get
/// huge pages.
pub(crate) fn huge_pages_note(machine: &Machine) -> Option<String> {
    let asked =
        std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("hugetlb=1"));
    (machine.thp == "madvise" && !asked).then(|| {
        "only memory that asks for huge pages gets them, and only Candide asks; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 in the \
         environment lets the others ask, too"
            .to_string()
    })
}

/// Returns a note if the command was built without optimization.
pub(crate) fn build_note() -> Option<String> {
    cfg!(debug_assertions).then(|| {
        "built without optimization: the figures mean nothing; use `cargo run --release`"
            .to_string()
    })
}

/// Formats a number with three significant digits.
pub(crate) fn short(value: f64) -> String {
    let digits = match value {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        _ => 5,
    };
    format!("{value:.digits$}")
}
