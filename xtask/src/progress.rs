//! The progress of a task and the expected remaining time. A plain line on standard error shows
//! them every few seconds. Plain lines suit a log as well as a terminal.

use std::time::{Duration, Instant};

/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(5);

/// The progress of a task of a known number of steps.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Instant,
    said: Duration,
    all: u64,
    done: u64,
}

impl Progress {
    pub(crate) fn new(all: u64) -> Progress {
        Progress { begun: Instant::now(), said: Duration::ZERO, all, done: 0 }
    }

    /// Counts one more finished step.
    pub(crate) fn step(&mut self) {
        self.reach(self.done + 1);
    }

    /// Sets the number of finished steps. Prints a line if none has been printed for [`PAUSE`].
    pub(crate) fn reach(&mut self, done: u64) {
        self.done = done;
        if let Some(line) = self.line(self.begun.elapsed()) {
            eprintln!("{line}");
        }
    }

    /// Returns the line to print when the time `passed` has passed; `None` if it is too early for a
    /// line.
    fn line(&mut self, passed: Duration) -> Option<String> {
        if passed < self.said + PAUSE || self.done == 0 {
            return None;
        }
        self.said = passed;
        let left = passed.mul_f64(self.all.saturating_sub(self.done) as f64 / self.done as f64);
        Some(format!(
            "progress: {} of {} in {}, about {} left",
            self.done,
            self.all,
            in_words(passed),
            in_words(left)
        ))
    }
}

/// Formats a duration, rounded to seconds.
fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_printed_at_intervals() {
        let mut progress = Progress::new(40);
        let mut say = |done, seconds| {
            progress.done = done;
            progress.line(Duration::from_secs(seconds))
        };
        assert_eq!(say(1, 4), None, "too early");
        assert_eq!(
            say(10, 30).as_deref(),
            Some("progress: 10 of 40 in 30 s, about 1 min 30 s left")
        );
        assert_eq!(say(11, 34), None, "too soon after that");
        assert_eq!(
            say(20, 7200).as_deref(),
            Some("progress: 20 of 40 in 2 h 0 min, about 2 h 0 min left")
        );
        assert_eq!(
            say(40, 8000).as_deref(),
            Some("progress: 40 of 40 in 2 h 13 min, about 0 s left")
        );
    }

    #[test]
    fn no_remaining_time_is_printed_before_the_first_result() {
        assert_eq!(Progress::new(3).line(Duration::from_secs(60)), None);
    }
}
