//! A check of the tests: with each deliberate defect, some test must fail.
//!
//! The list of [`defects`] names the test that must find each defect. The test
//! binaries contain all defects. An environment variable enables one defect, so nothing is built
//! again for the next defect.

use crate::cores::on_threads;
use crate::defects::{self, Build, Defect};
use crate::engine_tests::{Ending, called, command, names, run_within};
use crate::workspace::target_folder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A defect, and a test that must find it.
#[derive(Debug, Clone, Copy)]
struct Check<'a> {
    mutant: &'a str,
    build: Build,
    /// The test, or a module of tests.
    test: &'a str,
}

/// The longest time that a check may take, with or without a defect, even on a busy machine. A test
/// that does not end in this time does not count as having found a mutant.
const CHECK_MAX: Duration = Duration::from_secs(600);

/// A test binary, and the names of its tests.
struct Binary {
    path: PathBuf,
    tests: Vec<String>,
}

impl Binary {
    fn new(path: PathBuf) -> Result<Binary, String> {
        let tests = names(&path, "")?;
        Ok(Binary { path, tests })
    }

    /// Returns the binary of a build that has the check's tests.
    fn of<'a>(
        binaries: &'a BTreeMap<Build, Vec<Binary>>,
        check: &Check<'_>,
    ) -> Result<&'a Binary, String> {
        let has_it = |binary: &&Binary| !called(&binary.tests, check.test).is_empty();
        let binary = binaries[&check.build].iter().find(has_it);
        binary.ok_or_else(|| format!("no test is called {} ({:?})", check.test, check.build))
    }
}

/// Returns the mutants in `names`. Returns all mutants if `names` is empty.
pub(crate) fn known(root: &Path, names: &[String]) -> Result<Vec<String>, String> {
    let defects = defects::all(root)?;
    let mut known: Vec<_> =
        choose(&defects, names)?.iter().map(|check| check.mutant.to_string()).collect();
    known.dedup();
    Ok(known)
}

/// Runs the checks of the mutants in `names`. Runs all checks if `names` is empty.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<(), String> {
    let defects = defects::all(root)?;
    let checks = choose(&defects, names)?;
    let builds: BTreeSet<Build> = checks.iter().map(|check| check.build).collect();
    let made = builds.into_iter().map(|build| {
        let binaries = build.make(root)?.into_iter().map(Binary::new);
        Ok((build, binaries.collect::<Result<Vec<_>, String>>()?))
    });
    let binaries = made.collect::<Result<BTreeMap<_, _>, String>>()?;
    let folder = log_folder()?;
    let width = defects.iter().map(|defect| defect.name.len()).max().unwrap_or(0);
    println!("{:width$}  {:>9}  found by", "mutant", "after");
    // Two for each core, since some defects are found by a test's deadline.
    let missed = on_threads(2, &by_test(&checks), |checks, thread| {
        let log = folder.join(format!("mutants-{thread}.log"));
        let binary = Binary::of(&binaries, &checks[0])?;
        must_pass_as_it_is(binary, &checks[0], &log)?;
        let mut missed = Vec::new();
        for check in checks {
            let (ending, after) = test(binary, check, Some(check.mutant), &log)?;
            let found = match ending {
                Ending::Failed => "",
                Ending::Passed => "NOT FOUND by ",
                Ending::TooLate => "NOT ENDED by ",
            };
            let after = format!("{:.2} s", after.as_secs_f64());
            println!("{:width$}  {after:>9}  {found}{}", check.mutant, check.test);
            if ending != Ending::Failed {
                missed.push(check.mutant);
            }
        }
        Ok(missed)
    })?
    .concat();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("no test failed with {}", missed.join(", ")))
    }
}

/// Divides checks into those of the same test, which has to pass once without a defect. Checks of
/// loom tests come first, since they take the longest.
fn by_test<'a>(checks: &[Check<'a>]) -> Vec<Vec<Check<'a>>> {
    let mut tests = BTreeMap::<_, Vec<_>>::new();
    for &check in checks {
        tests.entry((check.build != Build::Loom, check.test)).or_default().push(check);
    }
    tests.into_values().collect()
}

/// Returns the checks of the mutants in `names`. Returns all checks if `names` is empty.
fn choose<'a>(defects: &'a [Defect], names: &[String]) -> Result<Vec<Check<'a>>, String> {
    if let Some(unknown) =
        names.iter().find(|name| !defects.iter().any(|defect| defect.name == **name))
    {
        let known: Vec<_> = defects.iter().map(|defect| defect.name.as_str()).collect();
        return Err(format!("there is no mutant {unknown}; there are {}", known.join(", ")));
    }
    let wanted = |defect: &&Defect| names.is_empty() || names.contains(&defect.name);
    let checks = defects.iter().filter(wanted).flat_map(|defect| {
        let checks = defect.checks.iter();
        checks.map(|(build, test)| Check { mutant: &defect.name, build: *build, test })
    });
    Ok(checks.collect())
}

/// Returns the folder of the files for the output of tests, one file for each thread. Each test
/// overwrites the output of the test before.
fn log_folder() -> Result<PathBuf, String> {
    let folder = crate::workspace::root().join(target_folder());
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Checks that the check's tests pass without a defect.
fn must_pass_as_it_is(binary: &Binary, check: &Check<'_>, log: &Path) -> Result<(), String> {
    match test(binary, check, None, log)?.0 {
        Ending::Passed => Ok(()),
        Ending::Failed => {
            Err(format!("{} fails without any mutant; see {}", check.test, log.display()))
        }
        Ending::TooLate => {
            Err(format!("{} does not end within {} s", check.test, CHECK_MAX.as_secs()))
        }
    }
}

/// Runs a check's tests once, with or without a defect. Returns the way in which they ended, and
/// the time that they took.
fn test(
    binary: &Binary,
    check: &Check<'_>,
    mutant: Option<&str>,
    log: &Path,
) -> Result<(Ending, Duration), String> {
    let mut command = command(&binary.path, log)?;
    command.arg("--exact").args(called(&binary.tests, check.test));
    if let Some(mutant) = mutant {
        command.env("CANDIDE_MUTANT", mutant);
    }
    run_within(command, CHECK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_of_a_defect_runs_once_and_models_run_first() {
        let defects = defects::all(&crate::workspace::root()).expect("a well-formed list");
        let checks = choose(&defects, &[]).expect("each");
        let divided = by_test(&checks);
        assert_eq!(divided.concat().len(), checks.len(), "no check is left out");
        assert!(divided.iter().flatten().all(|check| check.build != Build::Shuttle));
        assert!(divided[0].iter().all(|check| check.build == Build::Loom));
        let one = choose(&defects, &["no-fence".to_string()]).expect("a known name");
        assert!(one.len() == 2 && one.iter().all(|check| check.mutant == "no-fence"));
        let unknown = choose(&defects, &["no-sense".to_string()]);
        assert!(unknown.is_err_and(|problem| problem.contains("no-fence")));
    }
}
