//! The free memory of the machine.

#![forbid(unsafe_code)]

/// The files of memory control groups, under one version of Linux's interface.
struct Interface {
    /// The directory of the outermost group that the process can see.
    root: &'static str,
    /// The names of the files of a group with its limit and its use.
    max: &'static str,
    used: &'static str,
    /// The name, in `memory.stat`, of the part of the use that caches files which no process has
    /// used for a while. The kernel takes it back on demand.
    inactive_file: &'static str,
}

const VERSION_1: Interface = Interface {
    root: "/sys/fs/cgroup/memory",
    max: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive_file: "total_inactive_file ",
};

const VERSION_2: Interface = Interface {
    root: "/sys/fs/cgroup",
    max: "memory.max",
    used: "memory.current",
    inactive_file: "inactive_file ",
};

/// Returns the number of bytes of free memory: the smallest of the memory that Linux reports as
/// available and the remainders of the process's control groups. `None` if nothing of both is
/// known.
pub fn free_memory() -> Option<u64> {
    free(&|path| std::fs::read_to_string(path).ok())
}

fn free(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let available = read("/proc/meminfo").and_then(|text| {
        let kibibytes = line_with(&text, "MemAvailable:")?.trim().strip_suffix(" kB")?;
        Some(kibibytes.parse::<u64>().ok()? << 10)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let left = groups.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, group) = line.split_once(':')?;
        let interface = match controllers {
            "" => VERSION_2,
            _ if controllers.split(',').any(|name| name == "memory") => VERSION_1,
            _ => return None,
        };
        left_to(group.trim_end_matches('/'), &interface, read)
    });
    available.into_iter().chain(left).min()
}

/// Returns the number of bytes that are left to a group and all groups that contain it; `None` if
/// none has a limit. In a container, some of the groups cannot be seen.
fn left_to(
    group: &str,
    interface: &Interface,
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<u64> {
    let file = |group: &str, name| read(&format!("{}{group}/{name}", interface.root));
    let number = |group, name| file(group, name)?.trim().parse::<u64>().ok();
    let left = |group| {
        let max = number(group, interface.max)?;
        let used = number(group, interface.used).unwrap_or(0);
        let stat = file(group, "memory.stat").unwrap_or_default();
        let inactive = line_with(&stat, interface.inactive_file);
        let inactive = inactive.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
        Some(max.saturating_sub(used.saturating_sub(inactive)))
    };
    let outer = group.match_indices('/').map(|(end, _)| &group[..end]);
    outer.chain([group]).filter_map(left).min()
}

/// Returns the rest of the line of `text` that begins with `name`.
fn line_with<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVAILABLE: (&str, &str) = ("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    4000 kB\n");

    fn free_of(files: &[(&str, &str)]) -> Option<u64> {
        free(&|wanted| {
            let file = files.iter().find(|(path, _)| *path == wanted)?;
            Some(file.1.to_string())
        })
    }

    #[test]
    fn without_a_limit_the_available_memory_is_free() {
        assert_eq!(free_of(&[]), None);
        assert_eq!(free_of(&[AVAILABLE]), Some(4_096_000));
        let unlimited = [
            AVAILABLE,
            ("/proc/self/cgroup", "0::/job\n"),
            ("/sys/fs/cgroup/job/memory.max", "max\n"),
        ];
        assert_eq!(free_of(&unlimited), Some(4_096_000));
    }

    #[test]
    fn free_memory_is_that_of_the_smallest_control_group_plus_inactive_files() {
        let groups = [
            AVAILABLE,
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/sys/fs/cgroup/outer/memory.max", "3000000\n"),
            ("/sys/fs/cgroup/outer/memory.current", "2900000\n"),
            (
                "/sys/fs/cgroup/outer/memory.stat",
                "anon 7\nfile 800000\ninactive_file 700000\nactive_file 100000\n",
            ),
            ("/sys/fs/cgroup/outer/inner/memory.max", "2500000\n"),
            ("/sys/fs/cgroup/outer/inner/memory.current", "1600000\n"),
        ];
        assert_eq!(free_of(&groups), Some(800_000));
        assert_eq!(free_of(&groups[..6]), Some(800_000));
        assert_eq!(free_of(&[groups[0], groups[1], groups[5], groups[6]]), Some(900_000));
    }

    #[test]
    fn limits_of_control_groups_of_both_versions_are_read() {
        let container = [
            AVAILABLE,
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "100\n"),
            ("/sys/fs/cgroup/memory.current", "130\n"),
        ];
        assert_eq!(free_of(&container), Some(0));
        // Inside a container, the container's directory is the root, and the directories above it
        // are hidden.
        let groups = "9:cpu,cpuacct:/\n4:memory:/docker/1f\n0::/\n";
        let container = [
            AVAILABLE,
            ("/proc/self/cgroup", groups),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
        ];
        assert_eq!(free_of(&container), Some(500));
    }
}
