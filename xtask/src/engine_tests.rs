//! The builds of the engine's test binaries, and runs of their tests within a time limit.

use crate::defects::Build;
use crate::instrumented;
use crate::workspace::target_folder;
use serde_json::Value;
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

impl Build {
    /// Builds the binaries with all their tests, and returns their paths.
    pub(crate) fn make(self, root: &Path) -> Result<Vec<PathBuf>, String> {
        // A test that is not compiled fails, which must not pass for a defect that was found.
        self.make_with(root, |cargo| cargo.env_remove("CANDIDE_TESTS"))
    }

    /// Builds the library's test binary with all its tests, and returns its path.
    pub(crate) fn make_one(self, root: &Path) -> Result<PathBuf, String> {
        self.make(root).map(|mut binaries| binaries.swap_remove(0))
    }

    fn make_with(
        self,
        root: &Path,
        set: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Vec<PathBuf>, String> {
        let copy = instrumented::write(root)?;
        let target = root.join(target_folder());
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&copy).args(["test", "--no-run", "--lib"]);
        cargo.arg("--message-format=json-render-diagnostics").arg("--target-dir");
        match self {
            // With the features of the whole workspace, whose dependencies are then built once.
            Build::Usual => cargo.arg(target).args(["--package=candide", FEATURES]),
            Build::Log => cargo.arg(target).args([LOG, LOG_TESTING, REACH, "--test=*"]),
            Build::Loom => model(&mut cargo, &target, "loom"),
            Build::Shuttle => model(&mut cargo, &target, "shuttle"),
        };
        let output = set(&mut cargo)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("the tests do not build ({self:?})"));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let executables: Vec<PathBuf> = messages.lines().filter_map(executable_in).collect();
        if executables.is_empty() {
            return Err(format!("cargo built the tests and did not say where ({self:?})"));
        }
        Ok(executables)
    }
}

const LOG: &str = "--package=candide-log";
const LOG_TESTING: &str = "--package=candide-log-testing";
const REACH: &str = "--package=candide-reach";

/// The features of the engine that the crates of the workspace enable.
const FEATURES: &str = "--features=experiments,history,mimalloc";

/// Adds the arguments that build the library under model `name`, in a separate folder.
fn model<'a>(cargo: &'a mut Command, target: &Path, name: &str) -> &'a mut Command {
    cargo.arg(target.join(name)).args(["--package=candide", "--profile=model"]);
    cargo.env("RUSTFLAGS", format!("--cfg {name}"))
}

/// Returns the path of the executable that a message of cargo reports; `None` if it reports none.
fn executable_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}

/// Builds the tests that the first argument names, and runs them with the other arguments. A filter
/// that selects no test is an error.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let (build, arguments) = arguments.split_first().ok_or("name a build")?;
    let build = Build::named(build).ok_or_else(|| format!("there is no build {build}"))?;
    let binaries = build.make_with(root, |cargo| cargo)?;
    for filter in arguments.iter().filter(|argument| !argument.starts_with('-')) {
        let selected = |binary: &PathBuf| Ok(!names(binary, filter)?.is_empty());
        let selects = binaries.iter().map(selected).collect::<Result<Vec<_>, String>>()?;
        if !selects.contains(&true) {
            return Err(format!("{filter} selects no test ({build:?})"));
        }
    }
    for binary in binaries {
        let status = Command::new(&binary).args(arguments).status();
        let status = status.map_err(|error| format!("{}: {error}", binary.display()))?;
        if !status.success() {
            return Err(format!("{}: {status}", binary.display()));
        }
    }
    Ok(())
}

/// Returns the tests of a binary whose names contain `filter`.
pub(crate) fn names(binary: &Path, filter: &str) -> Result<Vec<String>, String> {
    let listed = Command::new(binary).args([filter, "--list"]).output();
    let listed = listed.map_err(|error| format!("{}: {error}", binary.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_string).collect())
}

/// Returns the test in `tests` that has the name `name`. If `name` is a module, returns the tests
/// of that module: one test for each protocol.
pub(crate) fn called<'t>(tests: &'t [String], name: &str) -> Vec<&'t str> {
    let is_named = |rest: &str| rest.is_empty() || rest.starts_with("::");
    let tests = tests.iter().map(String::as_str);
    tests.filter(|test| test.strip_prefix(name).is_some_and(is_named)).collect()
}

/// Returns a command that runs tests of a binary in their shortest form. The command's environment
/// has no variables of this project, and its output goes to `log`.
pub(crate) fn command(binary: &Path, log: &Path) -> Result<Command, String> {
    let explain = |error: io::Error| format!("{}: {error}", log.display());
    let output = File::create(log).map_err(explain)?;
    let mut command = Command::new(binary);
    for (name, _) in
        env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CANDIDE_"))
    {
        command.env_remove(name);
    }
    command.env("RUST_BACKTRACE", "0");
    command.stderr(output.try_clone().map_err(explain)?).stdout(output);
    Ok(command)
}

/// The way in which tests ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Passed,
    Failed,
    /// The tests exceeded their time and were stopped.
    TooLate,
}

/// Runs a command until it ends or exceeds the time `max`. Returns the way in which the command
/// ended, and the time that it took.
pub(crate) fn run_within(command: Command, max: Duration) -> Result<(Ending, Duration), String> {
    run_watched(command, max, |_| {})
}

/// Runs a command as [`run_within`] does. Meanwhile calls `watch` regularly, with the time that has
/// passed.
pub(crate) fn run_watched(
    mut command: Command,
    max: Duration,
    mut watch: impl FnMut(Duration),
) -> Result<(Ending, Duration), String> {
    let explain = |error: io::Error| format!("a test does not run: {error}");
    let mut child = command.spawn().map_err(explain)?;
    let begun = Instant::now();
    while begun.elapsed() < max {
        if let Some(status) = child.try_wait().map_err(explain)? {
            return Ok((
                if status.success() { Ending::Passed } else { Ending::Failed },
                begun.elapsed(),
            ));
        }
        watch(begun.elapsed());
        thread::sleep(Duration::from_millis(2));
    }
    // The command may have ended at this moment. Then there is nothing to kill.
    let _ = child.kill();
    child.wait().map_err(explain)?;
    Ok((Ending::TooLate, begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_selects_a_test_or_a_module() {
        let tests = ["a::skew::occ", "a::skew::mvto", "a::skewed", "b::a::skew::occ", "a::one"];
        let tests = tests.map(String::from);
        let called = |name| called(&tests, name);
        assert_eq!(called("a::skew"), ["a::skew::occ", "a::skew::mvto"]);
        assert_eq!(called("a::one"), ["a::one"]);
        assert_eq!(called("a::on"), [""; 0]);
    }

    #[test]
    fn a_test_that_exceeds_its_time_is_stopped() {
        let shell = |script: &str, max| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_within(command, max).expect("there is a shell").0
        };
        let long = Duration::from_secs(60);
        assert_eq!(shell("exit 0", long), Ending::Passed);
        assert_eq!(shell("exit 1", long), Ending::Failed);
        assert_eq!(shell("exec sleep 60", Duration::from_millis(20)), Ending::TooLate);
    }
}
