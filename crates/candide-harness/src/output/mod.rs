//! The output of the command.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

mod sink;

use crate::failure::Failure;
pub(crate) use sink::{STANDARD, Sink};

/// Whether an option such as `--json -` takes standard output.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Prints results to standard output, or to standard error if an option such as `--json -` takes
/// standard output. Returns `false` if the reader of standard output has closed the pipe, which is
/// no error.
pub fn print(results: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    if IS_TAKEN.load(Ordering::Relaxed) {
        let mut out = BufWriter::new(io::stderr().lock());
        // As in `say`, a failure is ignored: what was asked for goes to standard output.
        let _ = results(&mut out).and_then(|()| out.flush());
        return Ok(true);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = results(&mut out).and_then(|()| out.flush());
    has_reader(printed)
}

/// Prints `text` to standard error. A failure to print is ignored.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns `false` for a closed pipe, and any other error as a [`Failure`].
fn has_reader(printed: io::Result<()>) -> Result<bool, Failure> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Run(format!("cannot print to standard output: {error}").into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        let has_reader = |kind: ErrorKind| has_reader(Err(kind.into()));
        assert!(!has_reader(ErrorKind::BrokenPipe).expect("no error"));
        let failure = has_reader(ErrorKind::StorageFull).expect_err("an error");
        assert_eq!(failure.exit_status(), 1);
        assert!(failure.to_string().starts_with("cannot print to standard output: "), "{failure}");
    }
}
