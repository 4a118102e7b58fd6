//! Progress of the measurement at a terminal.

use std::io::{IsTerminal, stderr};

/// A line at the bottom of a terminal that is written over again and again. Where there is no
/// terminal, there is no line.
pub(crate) struct Progress {
    shown: bool,
    turns: usize,
    done: usize,
}

impl Progress {
    /// Of so many turns.
    pub(crate) fn new(turns: usize) -> Progress {
        Progress { shown: stderr().is_terminal(), turns, done: 0 }
    }

    /// Another turn begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.done += 1;
        if self.shown {
            eprint!("\r\x1b[K{} of {}: {what}", self.done, self.turns);
        }
    }

    /// Makes room for other output.
    pub(crate) fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
