//! A display of the measurement's progress on a terminal.

use std::io::{IsTerminal, stderr};

/// A line at the bottom of a terminal. Each turn overwrites the line. Without a terminal, no line
/// is shown.
pub(crate) struct Progress {
    shown: bool,
    turns: usize,
    done: usize,
}

impl Progress {
    /// Creates the progress of `turns` turns.
    pub(crate) fn new(turns: usize) -> Progress {
        Progress { shown: stderr().is_terminal(), turns, done: 0 }
    }

    /// Shows that the next turn begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.done += 1;
        if self.shown {
            eprint!("\r\x1b[K{} of {}: {what}", self.done, self.turns);
        }
    }

    /// Clears the line for other output.
    pub(crate) fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
