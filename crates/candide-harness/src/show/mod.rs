//! Results for people: tables of text, and a page.

mod explained;
mod outcome;
mod page;
mod rows;
mod table;
mod text;

use std::path::Path;

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Sink};
use crate::results::Report;
pub use explained::explained_columns;
pub use table::{laid_out, table};

/// Calls `measure`, writes its results to the files `json` and `html` that are given, and prints
/// them.
pub fn report(
    json: Option<&Path>,
    html: Option<&Path>,
    measure: impl FnOnce() -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let [json, html] = Sink::open_all([("--json", json), ("--report", html)])?;
    interrupt::listen()?;
    let report = measure()?;
    // The files are written before anything is printed, since printing may fail.
    if let Some(sink) = json {
        sink.write(&report.to_json()?)?;
    }
    if let Some(sink) = html {
        sink.write(&page::render(&report)?)?;
    }
    let printed = output::print(|out| text::print(&report, out));
    text::say_failures(&report);
    printed?;
    Ok(report)
}
