//! Results for people: tables of text, and a page.

mod explained;
mod figure_rows;
mod outcome;
mod page;
mod rows;
mod table;
mod text;

use std::path::Path;
use std::{fs, io};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, STANDARD, Sink};
use crate::results::{Baseline, Report};
pub use explained::explained_columns;
pub use table::{laid_out, table};

/// The files of a command's results.
#[derive(Debug, Clone, Copy)]
pub struct Outputs<'a> {
    /// The file that gets the results as JSON.
    pub json: Option<&'a Path>,
    /// The file that gets the page.
    pub page: Option<&'a Path>,
    /// The file with earlier results as JSON, with which the results are compared.
    pub baseline: Option<&'a Path>,
}

/// Calls `measure`, writes its results to the files in `outputs`, and prints them.
pub fn report(
    outputs: Outputs<'_>,
    measure: impl FnOnce() -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    // The baseline is read first: it may be the file that is written.
    let baseline = outputs.baseline.map(read).transpose()?;
    let [json, page] = Sink::open_all([("--json", outputs.json), ("--report", outputs.page)])?;
    interrupt::listen()?;
    let mut report = measure()?;
    if let Some(baseline) = &baseline {
        report.compare_with(baseline);
    }
    // The files are written before anything is printed, since printing may fail.
    if let Some(sink) = json {
        sink.write(&report.to_json()?)?;
    }
    if let Some(sink) = page {
        sink.write(&page::render(&report)?)?;
    }
    let printed = output::print(|out| text::print(&report, out));
    text::say_failures(&report);
    printed?;
    Ok(report)
}

/// Reads the earlier results in the file at `path`; `-` is standard input.
fn read(path: &Path) -> Result<Baseline, Failure> {
    let is_input = path == Path::new(STANDARD);
    let file = if is_input { "standard input".to_string() } else { path.display().to_string() };
    let text = if is_input { io::read_to_string(io::stdin()) } else { fs::read_to_string(path) };
    let text = text.map_err(|error| Failure::Usage(format!("cannot read {file}: {error}")))?;
    let baseline: Result<Baseline, _> = serde_json::from_str(&text);
    baseline.map(|baseline| baseline.of(&file)).map_err(|error| {
        Failure::Usage(format!(
            "{file} does not hold results: {error}; --baseline takes a file that --json has written"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_no_results_are_refused_with_what_would_be_right() {
        let path = std::env::temp_dir().join(format!("candide-baseline-{}", std::process::id()));
        let refused = |words: &str| {
            let Err(Failure::Usage(message)) = read(&path) else { panic!("it is refused") };
            assert!(message.contains(words), "{message}");
        };
        refused("cannot read ");
        fs::write(&path, "{\"results\": []}").unwrap();
        refused("does not hold results: missing field `machine`");
        refused("--baseline takes a file that --json has written");
        fs::remove_file(&path).unwrap();
    }
}
