//! The runs of the operations under callgrind.

use super::profile::{self, Counts, Part, Place};
use crate::cores::on_all_cores;
use crate::workspace::target_folder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The build of the program, and the size of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// The release profile. Caches are emulated, and the tables are larger than the caches.
    Full,
    /// The release profile without link-time optimization. A crate is one unit of code, so that
    /// inlining depends on the code alone. Only instructions are counted.
    Small,
}

impl Scale {
    /// Returns the environment variables for the build.
    fn profile(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Scale::Full => &[],
            Scale::Small => &[
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
                ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
            ],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Small => "small",
        }
    }

    /// Returns callgrind's options for the events to count. The emulated caches are those of a
    /// single core, so that accesses beyond these caches count as misses.
    fn counted(self) -> &'static [&'static str] {
        match self {
            Scale::Full => &[
                "--dump-instr=yes",
                "--cache-sim=yes",
                "--I1=32768,8,64",
                "--D1=49152,12,64",
                "--LL=2097152,16,64",
            ],
            Scale::Small => &[],
        }
    }
}

/// The cost of one operation under one protocol.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cost {
    pub(super) protocol: String,
    pub(super) operation: String,
    pub(super) counts: Counts,
    /// The instructions by place. Empty if the cost of the operation is the difference of two
    /// counts.
    pub(super) places: BTreeMap<Place, f64>,
}

/// The costs, and the program in which they were counted.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) costs: Vec<Cost>,
    pub(super) program: PathBuf,
}

/// The versions of the programs on which the figures depend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    pub(super) compiler: String,
    pub(super) valgrind: String,
}

impl Tools {
    /// Finds the installed versions. If Valgrind is missing, the error says how to install it.
    pub(super) fn find() -> Result<Tools, String> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let verbose = output(Command::new(rustc).arg("-vV"))?;
        let release = verbose.lines().next().unwrap_or_default();
        let host = verbose.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let valgrind = output(Command::new("valgrind").arg("--version")).map_err(|problem| {
            format!("{problem}; install Valgrind, for instance by `apt-get install valgrind`")
        })?;
        Ok(Tools { compiler: format!("{release}, {host}"), valgrind: valgrind.trim().to_string() })
    }
}

/// Builds the program, and runs all operations under every protocol that the program lists.
pub(super) fn run(root: &Path, scale: Scale) -> Result<Measured, String> {
    let program = build(root, scale)?;
    let protocols = output(Command::new(&program).arg("--list"))?;
    let folder = root.join(target_folder());
    let protocols: Vec<&str> = protocols.lines().collect();
    let costs = on_all_cores(&protocols, |&protocol, _| {
        let profile = folder.join(format!("costs-{}-{protocol}.callgrind", scale.name()));
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--tool=callgrind", "--combine-dumps=yes"]).args(scale.counted());
        // With these options in another order, or with patterns for names, Valgrind 3.19 ignores
        // one of them.
        valgrind.args(["--toggle-collect=costs::measured", "--dump-after=costs::measured"]);
        valgrind.arg("--dump-before=costs::divide");
        valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
        let labels = output(valgrind.arg(&program).args([protocol, scale.name()]))?;
        let text = fs::read_to_string(&profile)
            .map_err(|error| format!("{}: {error}", profile.display()))?;
        let parts = profile::parts(&text)?;
        join(protocol, &labels, parts)
            .map_err(|problem| format!("{}: {problem}", profile.display()))
    })?
    .concat();
    Ok(Measured { costs, program })
}

fn build(root: &Path, scale: Scale) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args([
        "build",
        "--release",
        "--package",
        "candide-measure",
        "--bin",
        "costs",
    ]);
    cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    for (name, _) in env::vars_os()
        .filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PROFILE_RELEASE_"))
    {
        cargo.env_remove(name);
    }
    // An incremental build has more units of code than the profile says.
    cargo.env("CARGO_INCREMENTAL", "0");
    let messages = output(cargo.envs(scale.profile().iter().copied()))?;
    let mut executables = messages.lines().filter_map(|message| {
        let message: Value = serde_json::from_str(message).ok()?;
        message["executable"]
            .as_str()
            .filter(|_| message["target"]["name"] == "costs")
            .map(PathBuf::from)
    });
    executables
        .next_back()
        .ok_or_else(|| "cargo built the program and did not say where".to_string())
}

/// Returns the output of a command if the command succeeds.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The parts of one kind, in the order in which they were written. Each has its size, its counts
/// and its places.
type Sizes = Vec<(f64, Counts, BTreeMap<Place, f64>)>;

/// Joins the parts with the program's labels. `labels` has a line for each part: name, size and
/// times. Returns the costs.
fn join(protocol: &str, labels: &str, parts: Vec<Part>) -> Result<Vec<Cost>, String> {
    let labels: Vec<&str> = labels.lines().collect();
    if labels.len() != parts.len() {
        return Err(format!("{} parts were announced and {} written", labels.len(), parts.len()));
    }
    let mut operations: Vec<(&str, Sizes)> = Vec::new();
    for (label, part) in labels.into_iter().zip(parts) {
        let mut fields = label.split('\t');
        let (Some(name), Some(Ok(size)), Some(Ok(times))) = (
            fields.next(),
            fields.next().map(str::parse::<f64>),
            fields.next().map(str::parse::<f64>),
        ) else {
            return Err(format!("`{label}` announces no part"));
        };
        if part.totals.instructions == 0.0 {
            return Err(format!("callgrind has counted nothing in `{label}`"));
        }
        if name.is_empty() {
            continue;
        }
        let counts = part.totals.map(|count| count / times);
        let places = part.places.into_iter().map(|(place, count)| (place, count as f64 / times));
        let index =
            operations.iter().position(|(known, _)| *known == name).unwrap_or(operations.len());
        if index == operations.len() {
            operations.push((name, Vec::new()));
        }
        let sizes = &mut operations[index].1;
        match sizes.iter_mut().find(|(known, ..)| *known == size) {
            Some((_, sum, all)) => {
                *sum = sum.zip(counts, |sum, more| sum + more);
                places.for_each(|(place, count)| *all.entry(place).or_default() += count);
            }
            None => sizes.push((size, counts, places.collect())),
        }
    }
    let cost = |(name, sizes): (&str, Sizes)| {
        let (counts, places) = match sizes.as_slice() {
            [(_, counts, places)] => (*counts, places.clone()),
            [(few, of_few, _), (several, of_several, _)] => (
                of_several.zip(*of_few, |more, less| (more - less) / (several - few)),
                BTreeMap::new(),
            ),
            _ => {
                return Err(format!(
                    "`{name}` comes in {} sizes; two at most make a difference",
                    sizes.len()
                ));
            }
        };
        Ok(Cost { protocol: protocol.to_string(), operation: name.to_string(), counts, places })
    };
    operations.into_iter().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(instructions: f64) -> Part {
        Part { totals: Counts { instructions, ..Counts::default() }, ..Part::default() }
    }

    fn instructions(labels: &str, parts: Vec<Part>) -> Result<Vec<(String, f64)>, String> {
        let costs = join("occ", labels, parts)?;
        Ok(costs.into_iter().map(|cost| (cost.operation, cost.counts.instructions)).collect())
    }

    #[test]
    fn a_cost_is_a_mean_or_a_difference() {
        let labels =
            "get\t2\t10\nget\t8\t10\n\t0\t1\nempty\t0\t4\nreap\t1\t1\nreap\t1\t1\nreap\t3\t1\n";
        let parts = [500.0, 1700.0, 1.0, 400.0, 3.0, 4.0, 27.0].map(part).to_vec();
        let expected = [("get", 20.0), ("empty", 100.0), ("reap", 10.0)]
            .map(|(name, cost)| (name.to_string(), cost));
        assert_eq!(instructions(labels, parts), Ok(expected.to_vec()));
    }

    #[test]
    fn a_profile_with_other_parts_than_announced_is_refused() {
        assert!(
            instructions("get\t2\t10\n", vec![part(1.0), part(2.0)])
                .is_err_and(|error| error.contains("1 parts"))
        );
        assert!(
            instructions("get\t2\n", vec![part(1.0)])
                .is_err_and(|error| error.contains("announces"))
        );
        assert!(
            instructions("get\t2\t1\n", vec![part(0.0)])
                .is_err_and(|error| error.contains("nothing"))
        );
        let three = "get\t1\t1\nget\t2\t1\nget\t3\t1\n";
        assert!(
            instructions(three, vec![part(1.0); 3]).is_err_and(|error| error.contains("3 sizes"))
        );
    }
}
