//! How often the operating system takes the core from a thread that could continue.

use std::fs;

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

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_involuntary_switches() {
        let before = count().expect("it is reported");
        assert!(count() >= Some(before));
    }
}
