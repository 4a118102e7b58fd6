//! The ledger of the laboratory: a line for each run, by which the next run continues with new
//! seeds.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::failure::Failure;

/// The first line of the file.
const HEADER: &str = "date,first_seed,last_seed,states,failures,states_per_second";

/// A run, as the ledger notes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) first_seed: u64,
    pub(super) last_seed: u64,
    pub(super) states: u64,
    pub(super) failures: u64,
    pub(super) states_per_second: f64,
}

/// Returns the seed after the last one in the file; 0 if there is no file.
///
/// # Errors
/// [`Failure::Usage`]: the file is no ledger, or cannot be read.
pub(super) fn next_seed(path: &Path) -> Result<u64, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(unusable(path, error)),
    };
    let mut lines = text.lines();
    if text.is_empty() {
        return Ok(0);
    }
    if lines.next() != Some(HEADER) {
        return Err(unusable(path, format!("its first line is not {HEADER}")));
    }
    let mut next = 0;
    for (number, line) in (2..).zip(lines) {
        let last = line.split(',').nth(2).and_then(|last| last.parse::<u64>().ok());
        let last = last.ok_or_else(|| {
            unusable(path, format!("line {number} has no last seed as its third value"))
        })?;
        next = next.max(last.saturating_add(1));
    }
    Ok(next)
}

fn unusable(path: &Path, what: impl ToString) -> Failure {
    let (path, what) = (path.display(), what.to_string());
    Failure::Usage(format!("{path} is no ledger: {what}; name one, or a file that does not exist"))
}

/// Adds a line for a run that has ended now.
pub(super) fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    let mut file = fs::File::options().create(true).append(true).open(path)?;
    let header = if file.metadata()?.len() == 0 { format!("{HEADER}\n") } else { String::new() };
    let date = humantime::format_rfc3339_seconds(SystemTime::now());
    let Entry { first_seed, last_seed, states, failures, states_per_second } = entry;
    let line = format!(
        "{header}{date},{first_seed},{last_seed},{states},{failures},{states_per_second:.0}\n"
    );
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_follows_the_largest_seed_of_the_ledger() {
        let path = std::env::temp_dir().join(format!("candide-ledger-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        assert_eq!(next_seed(&path).unwrap(), 0);
        let entry = |first_seed, last_seed| Entry {
            first_seed,
            last_seed,
            states: 1000,
            failures: 0,
            states_per_second: 12_345.6,
        };
        append(&path, &entry(0, 41)).unwrap();
        append(&path, &entry(7, 7)).unwrap();
        assert_eq!(next_seed(&path).unwrap(), 42);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().nth(1).unwrap().ends_with(",0,41,1000,0,12346"), "{text}");
        fs::write(&path, "a,b\n").unwrap();
        assert!(next_seed(&path).unwrap_err().to_string().contains("is no ledger"));
        fs::write(&path, format!("{HEADER}\n2026,1\n")).unwrap();
        assert!(next_seed(&path).unwrap_err().to_string().contains("line 2 has no last seed"));
        fs::remove_file(&path).unwrap();
    }
}
