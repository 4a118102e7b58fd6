//! The memory of the process.

use std::fs;

use serde::Serialize;

/// The memory of the process after the runs.
#[derive(Debug, Serialize)]
pub(crate) struct Memory {
    #[serde(flatten)]
    pub(crate) footprint: Footprint,
    /// The resident bytes in huge pages; `None` if the system does not report them.
    pub(crate) huge_page_bytes: Option<u64>,
}

impl Memory {
    pub(crate) fn now(memory_bytes: usize) -> Self {
        let huge_page_bytes = bytes_of("/proc/self/smaps_rollup", "AnonHugePages:");
        Memory { footprint: Footprint::now(memory_bytes), huge_page_bytes }
    }
}

/// The part of the memory use that can be read while transactions are being measured, because the
/// system has counted it already. Counting huge pages makes the system walk through all pages,
/// which takes 8 ms for each GiB of small pages.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Footprint {
    /// The bytes that the database has reserved.
    pub(crate) memory_bytes: u64,
    /// The resident bytes of the process, with the inputs drawn beforehand; `None` if the system
    /// does not report them.
    pub(crate) rss_bytes: Option<u64>,
}

impl Footprint {
    pub(crate) fn now(memory_bytes: usize) -> Self {
        Footprint {
            memory_bytes: memory_bytes as u64,
            rss_bytes: bytes_of("/proc/self/status", "VmRSS:"),
        }
    }
}

/// Returns the number of bytes that Linux reports in the line of `file` that begins with `field`;
/// `None` if there is no such line.
fn bytes_of(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}
