//! The machine and the program of a measurement. Without these facts, results mean nothing.

use std::fs;
use std::process::Command;
use std::time::SystemTime;

use serde::Serialize;

/// The machine and the program. A field is "unknown" if the system does not report it.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// The name of the processor.
    pub cpu: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    pub(crate) os: String,
    pub(crate) kernel: String,
    /// The kernel's setting for transparent huge pages: always, madvise or never.
    pub thp: String,
    pub(crate) allocator: &'static str,
    /// The compiler that built the command.
    pub(crate) rustc: &'static str,
    /// The commit of the source tree, followed by `-dirty` if the tree has changes that are not
    /// committed; `None` if no commit is known.
    pub(crate) commit: Option<String>,
    /// The time at which the measurement ended, in UTC; in `candide-peers`, at which it began.
    pub time: String,
}

impl Machine {
    /// Describes this machine and the current time; the process may use `cores` of the machine's
    /// cores.
    pub fn inspect(cores: usize) -> Machine {
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_string());
        Machine {
            cpu: known(field("/proc/cpuinfo", "model name", ':')),
            cores,
            os: known(field("/etc/os-release", "PRETTY_NAME", '=')),
            kernel: known(read("/proc/sys/kernel/osrelease")),
            thp: known(
                read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref().and_then(chosen),
            ),
            allocator: "system",
            rustc: env!("CANDIDE_RUSTC"),
            commit: commit(),
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// Returns the value of the first line in the file at `path` whose name is `key`; `None` if there
/// is no such line.
fn field(path: &str, key: &str, separator: char) -> Option<String> {
    let text = read(path)?;
    let mut fields = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = fields.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().trim_matches('"').to_string())
}

/// Returns the word in brackets: the kernel marks the chosen one of several `words` in this way.
fn chosen(words: &str) -> Option<String> {
    let (_, rest) = words.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_string())
}

/// Returns the commit that is checked out in the source tree from which the command was built.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { format!("{head}-dirty") } else { head })
}
