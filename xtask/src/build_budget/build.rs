//! The build of the command from nothing, as a new user would build it.

use crate::workspace::target_folder;
use serde_json::Value;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A build, and its costs.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) command: PathBuf,
    /// The CPU time of cargo and all its children, which includes build scripts and the compilers
    /// that they call: in user mode, and within the system.
    pub(super) cpu: [Duration; 2],
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
        let mut cargo = timed(&env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args(["build", "--release", "--target-dir"]).arg(&folder);
        cargo.arg("--message-format=json-render-diagnostics");
        for (name, _) in env::vars_os().filter(|(name, _)| changes_build(&name.to_string_lossy())) {
            cargo.env_remove(name);
        }
        // A compiler wrapper might reuse the output of an earlier build, so none is used.
        cargo.envs([("RUSTC_WRAPPER", ""), ("RUSTC_WORKSPACE_WRAPPER", "")]);
        let begun = Instant::now();
        let output = cargo.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo does not start: {error}"))?;
        let wall = begun.elapsed();
        if !output.status.success() {
            return Err("the command does not build".to_string());
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let cpu = cpu_times_in(&messages).ok_or("the CPU time of the build is unknown")?;
        let command = messages.lines().filter_map(command_in).next_back();
        let command = command.ok_or("cargo built the command and did not say where")?;
        Ok(Build { command, cpu, wall })
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

/// Returns a command that runs `program` in a shell, with the arguments that the command is given.
/// Behind the output of the program, the shell prints the CPU times: a line for itself, and a line
/// for its children.
fn timed(program: &OsStr) -> Command {
    let mut shell = Command::new("sh");
    // Other languages may have commas in numbers.
    shell.env("LC_ALL", "C").arg("-c").arg("\"$@\"; status=$?; times; exit $status");
    shell.arg("sh").arg(program);
    shell
}

/// Returns the CPU times in user mode and within the system of a program that has been run by
/// [`timed`], and of all its children, from what was printed: the times of the last line, such as
/// `1m2.34s 0m5.6s`.
fn cpu_times_in(printed: &str) -> Option<[Duration; 2]> {
    let time = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        let (minutes, seconds): (u64, f64) = (minutes.parse().ok()?, seconds.parse().ok()?);
        Some(Duration::from_secs(60 * minutes) + Duration::try_from_secs_f64(seconds).ok()?)
    };
    let (user, system) = printed.lines().next_back()?.split_once(' ')?;
    Some([time(user)?, time(system)?])
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

    #[test]
    fn the_time_of_children_is_read_from_what_the_shell_prints() {
        let times = cpu_times_in("Compiling\n0m0.01s 0m0.02s\n61m2.5s 0m3.25s\n");
        assert_eq!(times, Some([3_662_500, 3_250].map(Duration::from_millis)));
        for printed in ["", "Compiling", "0m1.0s 0m0.0s\n{}", "1ms 2ms", "0m-1s 0m0s", "0m1.0s"] {
            assert_eq!(cpu_times_in(printed), None, "{printed:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_time_of_children_is_counted() {
        let run = |script: &str| {
            let output = timed("sh".as_ref()).args(["-c", script]).output().expect("a shell");
            (output.status.code(), String::from_utf8(output.stdout).expect("text"))
        };
        let (status, printed) = run("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done");
        assert!(status == Some(0) && printed.starts_with("done\n"), "{printed}");
        let [took, _] = cpu_times_in(&printed).expect("times");
        assert!(took > Duration::ZERO, "{took:?}");
        assert_eq!(run("exit 7").0, Some(7));
    }
}
