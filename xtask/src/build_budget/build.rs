//! The build of the command from nothing, as a new user would build it.

use crate::engine_tests::target_folder;
use serde_json::Value;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A build, and its costs.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) command: PathBuf,
    /// The CPU time in user mode of cargo and all its children.
    pub(super) user: Duration,
    pub(super) wall: Duration,
}

impl Build {
    /// Builds the command with the release profile, in an empty folder that is used for nothing
    /// else. Cargo's messages go to standard error.
    pub(super) fn make(root: &Path) -> Result<Build, String> {
        let folder = root.join(target_folder()).join("build-budget");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!("{}: {error}", folder.display()));
            }
            _ => {}
        }
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args(["build", "--release", "--target-dir"]).arg(&folder);
        cargo.arg("--message-format=json-render-diagnostics");
        for (name, _) in env::vars_os().filter(|(name, _)| changes_build(&name.to_string_lossy())) {
            cargo.env_remove(name);
        }
        // A compiler wrapper might reuse the output of an earlier build, so none is used.
        cargo.envs([("RUSTC_WRAPPER", ""), ("RUSTC_WORKSPACE_WRAPPER", "")]);
        let (begun, before) = (Instant::now(), user_time_of_children()?);
        let output = cargo.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo does not start: {error}"))?;
        let (wall, user) = (begun.elapsed(), user_time_of_children()?.saturating_sub(before));
        if !output.status.success() {
            return Err("the command does not build".to_string());
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let command = messages.lines().filter_map(command_in).next_back();
        let command = command.ok_or("cargo built the command and did not say where")?;
        Ok(Build { command, user, wall })
    }
}

/// Returns whether an environment variable changes what cargo builds.
fn changes_build(variable: &str) -> bool {
    let names = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL"];
    let prefixes = ["CARGO_PROFILE_", "CARGO_BUILD_"];
    names.contains(&variable) || prefixes.iter().any(|prefix| variable.starts_with(prefix))
}

/// Returns the path of the executable that a message of cargo reports, if the executable is the
/// command; otherwise `None`.
fn command_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_wanted = message["target"]["name"] == "candide" && message["target"]["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_wanted).map(PathBuf::from)
}

/// Returns the CPU time in user mode of all ended children of this process.
#[cfg(unix)]
fn user_time_of_children() -> Result<Duration, String> {
    use nix::sys::resource::{UsageWho, getrusage};

    let explain = |error| format!("the CPU time of the build is unknown: {error}");
    let time = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(explain)?.user_time();
    Ok(Duration::from_secs(time.tv_sec() as u64) + Duration::from_micros(time.tv_usec() as u64))
}

/// Returns an error: without Unix the CPU time is unknown.
#[cfg(not(unix))]
fn user_time_of_children() -> Result<Duration, String> {
    Err("the CPU time of a build is known on Unix only".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_command_is_found_among_messages() {
        let message = |name: &str, kind: &str| {
            let target = json!({ "name": name, "kind": [kind] });
            json!({ "target": target, "executable": "/t/candide" }).to_string()
        };
        assert_eq!(command_in(&message("candide", "bin")), Some(PathBuf::from("/t/candide")));
        assert_eq!(command_in(&message("candide", "lib")), None);
        assert_eq!(command_in(&message("costs", "bin")), None);
        assert_eq!(command_in("Compiling"), None);
    }

    #[test]
    fn variables_that_change_the_build_are_left_out() {
        for variable in ["RUSTFLAGS", "CARGO_PROFILE_RELEASE_LTO", "CARGO_BUILD_TARGET"] {
            assert!(changes_build(variable), "{variable}");
        }
        for variable in ["PATH", "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTC"] {
            assert!(!changes_build(variable), "{variable}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_time_of_children_is_counted() {
        let before = user_time_of_children().expect("a time");
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", work]).status().expect("a shell").success());
        let took = user_time_of_children().expect("a time") - before;
        assert!(took > Duration::from_millis(20), "{took:?}");
    }
}
