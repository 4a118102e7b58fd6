//! The free memory of the machine.

#![forbid(unsafe_code)]

/// Returns the number of bytes of memory that are free: the smaller of what Linux calls available
/// and what is left to the control group of the process. `None` if neither is known.
pub fn free_memory() -> Option<u64> {
    let read = |path| std::fs::read_to_string(path).ok();
    let available = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    });
    let number = |path| read(path)?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max").map(|max| {
        let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
        max.saturating_sub(used)
    });
    [available, group].into_iter().flatten().min()
}
