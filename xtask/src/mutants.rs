//! Whether the tests are worth something: each deliberate defect of the engine must make one of them fail.
//!
//! The defects are compiled into the library's own test binary and woken by an environment variable, so nothing is built
//! again from one to the next. Where they are is in `crates/candide/src/sync/instruments.rs`; [`CHECKS`] says which test
//! must find which.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where the mutants are named.
const INSTRUMENTS: &str = "crates/candide/src/sync/instruments.rs";

/// A test binary of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Build {
    /// As `cargo test` makes it.
    Usual,
    /// With every atomic, lock and thread replaced by loom's.
    Loom,
}

/// What must find a mutant.
struct Check {
    mutant: &'static str,
    build: Build,
    /// The longest that it may take to find it, in seconds. A test that does not end has found nothing that it could name.
    max_s: u64,
    /// Names tests as the test binary's own arguments do: the quickest that find it every time, not by luck.
    filter: &'static str,
}

/// One that takes a moment, ten seconds at most on a machine that does much else.
const fn check(mutant: &'static str, filter: &'static str) -> Check {
    Check { mutant, build: Build::Usual, max_s: 10, filter }
}

/// One that goes through executions of a model until the defect shows.
const fn model(mutant: &'static str, max_s: u64, filter: &'static str) -> Check {
    Check { mutant, build: Build::Loom, max_s, filter }
}

const CHECKS: &[Check] = &[
    model("no-fence", 60, "tests::loom::loom_write_skew"),
    check("no-read-validation", "tests::traps::write_skew_fails_one_of_the_two"),
    model("others-locks-ignored", 60, "tests::loom::loom_write_skew"),
    model("tombstone-unobserved", 60, "tests::loom::loom_absent_read_against_insert"),
    check("reclaim-early", "epoch::tests::a_pin_holds_the_bound_and_nothing_else_does"),
    check("evaluate-before-lock", "tests::traps::an_update_is_evaluated_under_the_lock"),
    check("held-not-installing", "tests::for_update::a_holder_that_commits_stops_readers"),
    check("held-for-ever", "tests::for_update::every_end_of_an_attempt_gives_back_what_it_holds"),
    check("no-node-validation", "tests::phantoms::an_insert_into_what_was_scanned_is_noticed"),
    check("split-untracked", "tests::phantoms::own_splits_keep_a_scan_and_others_inserts_spoil_it"),
    check("absent-skipped-by-scan", "tests::phantoms::an_uncommitted_insert_is_an_absence_that_a_scan_observes"),
    check("delete-one-group", "tests::phantoms::a_delete_is_noticed_by_scans_of_every_group"),
    check("entry-unvalidated", "tests::phantoms::who_reads_by_an_index_notices_that_the_indexed_column_changes"),
    check("reverse-off-by-one", "tests::phantoms::both_ways_lead_over_the_same_rows"),
    check("mark-ignored", "tests::table_model::all_sequences_of_up_to_four_operations_with_a_scan_held_open"),
    check("version-below-read", "tests::phases::a_commit_that_builds_on_another_has_the_greater_version"),
    check("version-below-replaced", "tests::phases::a_row_never_has_the_same_version_twice"),
    check("epoch-before-lock", "tests::phases::who_replaces_what_another_has_read_is_of_no_earlier_epoch"),
    check("node-observed-late", "tests::phases::what_was_searched_in_vain_is_observed_as_it_was_then"),
    check("install-before-validation", "tests::phases::an_attempt_that_does_not_validate_has_stored_nothing"),
    check("unlock-before-install", "tests::phases::a_row_whose_words_are_being_stored_is_not_read"),
    check("evaluate-between-installs", "tests::phases::an_updater_that_fails_leaves_no_half_of_its_commit"),
    check("token-ignored", "tests::for_update::holders_give_way_to_the_token"),
];

/// The longest that a check may take when there is nothing to find.
const SOUND_MAX: Duration = Duration::from_secs(300);

/// Runs the checks of all mutants, or of those named.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<(), String> {
    let source = fs::read_to_string(root.join(INSTRUMENTS)).map_err(|error| format!("{INSTRUMENTS}: {error}"))?;
    let known = names_in(&source);
    let checks = choose(&known, names)?;
    let builds: BTreeSet<Build> = checks.iter().map(|check| check.build).collect();
    let made = builds.into_iter().map(|build| Ok((build, build.make(root)?)));
    let binaries = made.collect::<Result<BTreeMap<_, _>, String>>()?;
    let log = log_file()?;
    let width = known.iter().map(String::len).max().unwrap_or(0);
    println!("{:width$}  {:>9}  {:>7}  found by", "mutant", "after", "allowed");
    let mut missed = Vec::new();
    let mut sound = Vec::new();
    for check in checks {
        let binary = &binaries[&check.build];
        if !sound.contains(&(check.build, check.filter)) {
            must_pass_as_it_is(binary, check, &log)?;
            sound.push((check.build, check.filter));
        }
        let (ending, after) = test(binary, check, Some(check.mutant), &log)?;
        let found = match ending {
            Ending::Failed => "",
            Ending::Passed => "NOT FOUND by ",
            Ending::TooLate => "NOT IN TIME by ",
        };
        let (after, allowed) = (format!("{:.2} s", after.as_secs_f64()), format!("{} s", check.max_s));
        println!("{:width$}  {after:>9}  {allowed:>7}  {found}{}", check.mutant, check.filter);
        if ending != Ending::Failed {
            missed.push(check.mutant);
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("no test failed in time with {}", missed.join(", "))) }
}

/// How the tests of a check have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    /// They had to be stopped.
    TooLate,
}

/// The mutants' names: the first parts of the pairs whose second is a `Mutant`.
fn names_in(source: &str) -> Vec<String> {
    let pairs = source.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", Mutant::"));
    pairs.map(|(name, _)| name.to_string()).collect()
}

/// The checks of the mutants named, or of all. It is an error if a mutant has no check, or a check no mutant.
fn choose(known: &[String], names: &[String]) -> Result<Vec<&'static Check>, String> {
    let list = || known.join(", ");
    if let Some(unchecked) = known.iter().find(|name| !CHECKS.iter().any(|check| check.mutant == name.as_str())) {
        return Err(format!("nothing says which test must find the mutant {unchecked}"));
    }
    if let Some(check) = CHECKS.iter().find(|check| !known.iter().any(|name| name == check.mutant)) {
        return Err(format!("{INSTRUMENTS} knows no mutant {}; it has {}", check.mutant, list()));
    }
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no mutant {unknown}; there are {}", list()));
    }
    let wanted = |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.mutant);
    Ok(CHECKS.iter().filter(wanted).collect())
}

impl Build {
    /// Builds the binary and says where it is.
    fn make(self, root: &Path) -> Result<PathBuf, String> {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args(["test", "--lib", "--no-run", "--message-format=json-render-diagnostics"]);
        match self {
            // The whole workspace, because that is what has been built already when its tests have been run.
            Build::Usual => cargo.arg("--workspace"),
            Build::Loom => {
                let target = target_folder().join("loom");
                cargo.args(["--package", "candide", "--release", "--target-dir"]).arg(target);
                cargo.env("RUSTFLAGS", "--cfg loom")
            }
        };
        let output =
            cargo.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo does not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("the tests do not build ({self:?})"));
        }
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let executable = messages.lines().filter_map(executable_in).next_back();
        executable.ok_or_else(|| format!("cargo built the tests and did not say where ({self:?})"))
    }
}

/// The executable that a message of cargo's is about, if it is the library's tests.
fn executable_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_wanted = message["target"]["name"] == "candide" && message["target"]["kind"][0] == "lib";
    message["executable"].as_str().filter(|_| is_wanted).map(PathBuf::from)
}

/// Where cargo puts what it builds, from the workspace's folder.
fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// Where the output of the test at hand goes; each overwrites the one before.
fn log_file() -> Result<PathBuf, String> {
    let folder = crate::root().join(target_folder());
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.join("mutants.log"))
}

/// Without a defect the check's tests must be there, and pass.
fn must_pass_as_it_is(binary: &Path, check: &Check, log: &Path) -> Result<(), String> {
    let listed = Command::new(binary).args([check.filter, "--list"]).output();
    let listed = listed.map_err(|error| format!("{}: {error}", binary.display()))?;
    if !String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test")) {
        return Err(format!("no test is called {} ({:?})", check.filter, check.build));
    }
    match test(binary, check, None, log)?.0 {
        Ending::Passed => Ok(()),
        Ending::Failed => Err(format!("{} fails without any mutant; see {}", check.filter, log.display())),
        Ending::TooLate => Err(format!("{} does not end within {} s", check.filter, SOUND_MAX.as_secs())),
    }
}

/// Runs a check's tests once, with or without a defect; says how they ended, and after how long.
fn test(binary: &Path, check: &Check, mutant: Option<&str>, log: &Path) -> Result<(Ending, Duration), String> {
    let explain = |error| format!("{}: {error}", binary.display());
    let output = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(binary);
    command.arg(check.filter).env_remove("CANDIDE_MUTANT").env("RUST_BACKTRACE", "0");
    command.stderr(output.try_clone().map_err(explain)?).stdout(output);
    if let Some(mutant) = mutant {
        command.env("CANDIDE_MUTANT", mutant);
    }
    let max = if mutant.is_some() { Duration::from_secs(check.max_s) } else { SOUND_MAX };
    run_within(command, max).map_err(explain)
}

/// Runs a command until it ends, or has taken as long as it may.
fn run_within(mut command: Command, max: Duration) -> std::io::Result<(Ending, Duration)> {
    let mut child = command.spawn()?;
    let begun = Instant::now();
    while begun.elapsed() < max {
        if let Some(status) = child.try_wait()? {
            return Ok((if status.success() { Ending::Passed } else { Ending::Failed }, begun.elapsed()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    // It may have ended this moment; then there is nothing to kill.
    let _ = child.kill();
    child.wait()?;
    Ok((Ending::TooLate, begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_has_a_check_and_every_check_a_mutant() {
        let source = fs::read_to_string(crate::root().join(INSTRUMENTS)).expect("the engine's source");
        let known = names_in(&source);
        assert_eq!(choose(&known, &[]).map(|checks| checks.len()), Ok(known.len()));
        let one = choose(&known, &["no-fence".to_string()]).expect("a known name");
        assert_eq!(one.iter().map(|check| check.mutant).collect::<Vec<_>>(), ["no-fence"]);
        assert!(choose(&known, &["no-sense".to_string()]).is_err_and(|problem| problem.contains("no-fence")));
        assert!(choose(&[], &[]).is_err());
        let more = [known, vec!["new".to_string()]].concat();
        assert!(choose(&more, &[]).is_err_and(|problem| problem.contains("new")));
    }
    #[test]
    fn a_check_that_does_not_end_in_time_is_stopped() {
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
