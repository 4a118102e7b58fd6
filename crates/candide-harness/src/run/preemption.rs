//! How often the operating system takes the core from a thread that could continue, and how long
//! such a thread waits for a core.

use std::fs;
use std::time::{Duration, Instant};

/// Returns how often the calling thread was made to leave its core; `None` if the system does not
/// report it.
pub(crate) fn count() -> Option<u64> {
    of_status(&fs::read_to_string("/proc/thread-self/status").ok()?)
}

/// Returns the number in the text of a thread's status.
fn of_status(text: &str) -> Option<u64> {
    let number = text.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
    number.trim().parse().ok()
}

/// A measurement of the share of a core that the calling thread has while it could run: waiting for
/// a lock or a disk does not count against the share.
pub struct CoreShare {
    begun: Instant,
    waited: Option<Duration>,
}

impl CoreShare {
    /// Begins to measure.
    pub fn begin() -> CoreShare {
        CoreShare { begun: Instant::now(), waited: waited() }
    }

    /// Returns the share since the beginning, from 0 to 1; `None` if the system does not report it.
    /// The thread must be the one that began.
    pub fn end(self) -> Option<f64> {
        let waited = (waited()? - self.waited?).as_secs_f64();
        let measured = self.begun.elapsed().as_secs_f64();
        (measured > 0.0).then(|| (1.0 - waited / measured).clamp(0.0, 1.0))
    }
}

/// Returns how long the calling thread has been ready to run without having a core; `None` if the
/// system does not report it.
fn waited() -> Option<Duration> {
    of_schedule(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Returns the time in the text of a thread's schedule: the second number, in nanoseconds.
fn of_schedule(text: &str) -> Option<Duration> {
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_involuntary_switches_are_parsed() {
        let status =
            "Name:\tcandide\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(of_status(status), Some(545));
        assert_eq!(of_status("Name:\tcandide\nvoluntary_ctxt_switches:\t150\n"), None);
    }

    #[test]
    fn only_the_time_without_a_core_is_parsed() {
        assert_eq!(of_schedule("1734 126782 1\n"), Some(Duration::from_nanos(126_782)));
        assert_eq!(of_schedule("1734\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_involuntary_switches() {
        let before = count().expect("it is reported");
        assert!(count() >= Some(before));
    }
}
