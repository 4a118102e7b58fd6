//! A test of each memory ordering. If one ordering is weakened, and all others are unchanged, some
//! loom test should fail.
//!
//! One build of the tests serves for all orderings: under loom, an environment variable weakens the
//! ordering at one place (see `crates/candide/src/sync/weaken.rs`). First each test runs with all
//! orderings unchanged, which shows the places that the test reaches and the time that it takes.
//! Then, for each place, the tests that reach the place run with the ordering there weakened, the
//! quickest first, until one fails.
//!
//! A *survivor* is a weakened ordering with which all tests pass. A survivor is a question, not a
//! defect, and `docs/memory-ordering.md` answers the question. A survivor is no reason to weaken
//! the ordering in the source.

use crate::cores::on_all_cores;
use crate::defects::Build;
use crate::engine_tests::{Ending, command, names, run_within};
use crate::instrumented;
use crate::sites::{self, Site};
use crate::workspace::target_folder;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest time that a test may take with no ordering weakened.
const SOUND_MAX: Duration = Duration::from_secs(600);

/// A test that takes longer than this with no ordering weakened runs only with `--slow` or
/// `--must`: for a survivor, every test that reaches the place has to run.
const QUICK_MAX: Duration = Duration::from_secs(30);

/// The request in the arguments.
#[derive(Debug, Default)]
struct Options {
    list: bool,
    slow: bool,
    max: Option<Duration>,
    /// Whether a weakened ordering that no test finds is an error.
    must: bool,
    /// A part of the names of the tests to run; `None` if all tests are to run.
    test: Option<String>,
    which: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--list" => options.list = true,
                "--slow" => options.slow = true,
                "--must" => options.must = true,
                "--test" => {
                    options.test = Some(rest.next().ok_or("`--test` needs part of a name")?.clone())
                }
                "--minutes" => {
                    let minutes = rest.next().and_then(|minutes| minutes.parse().ok());
                    let minutes: u64 = minutes.ok_or("`--minutes` needs a number")?;
                    options.max = Some(Duration::from_secs(60 * minutes));
                }
                option if option.starts_with('-') => {
                    return Err(format!("there is no option `{option}`"));
                }
                which => options.which.push(which.to_string()),
            }
        }
        Ok(options)
    }

    fn wants(&self, trial: &Trial) -> bool {
        let is = |which: &String| match which.parse::<usize>() {
            Ok(number) => number == trial.number,
            Err(_) => trial.describe().contains(which.as_str()),
        };
        self.which.is_empty() || self.which.iter().any(is)
    }
}

/// One place with a weaker ordering.
#[derive(Debug)]
struct Trial {
    /// The number in the list of all trials.
    number: usize,
    site: Site,
    to: &'static str,
}

impl Trial {
    fn describe(&self) -> String {
        let Site { file, line, operation, function, ordering, .. } = &self.site;
        let file = file.rsplit_once("src/").map_or(file.as_str(), |(_, inside)| inside);
        format!(
            "{:>3}  {file}:{line} {function}: {operation} {ordering} -> {}",
            self.number, self.to
        )
    }
}

/// Returns all trials, numbered from one.
fn trials(root: &Path) -> Result<Vec<Trial>, String> {
    let sites = sites::all(root)?.into_iter();
    let pairs = sites.flat_map(|site| site.weakenings().iter().map(move |&to| (site.clone(), to)));
    Ok((1..).zip(pairs).map(|(number, (site, to))| Trial { number, site, to }).collect())
}

/// A loom test, and its behaviour with no ordering weakened.
#[derive(Debug)]
struct Test {
    name: String,
    takes: Duration,
    /// The places that the test reaches.
    sites: Vec<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    NotReached,
    Found,
    Survived,
}

/// Runs the trials that `arguments` select.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let all = trials(&instrumented::write(root)?)?;
    let trials: Vec<_> = all.iter().filter(|trial| options.wants(trial)).collect();
    if trials.is_empty() {
        return Err("no memory ordering is meant by that".to_string());
    }
    if options.list {
        trials.iter().for_each(|trial| println!("{}", trial.describe()));
        return Ok(());
    }
    let binary = Build::Loom.make_one(root)?;
    let begun = Instant::now();
    let folder = root.join(target_folder()).join("orderings");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let max = if options.slow || options.must { SOUND_MAX } else { QUICK_MAX };
    let names = names(&binary, options.test.as_deref().unwrap_or("loom"))?;
    let log = |core: usize| folder.join(format!("log-{core}"));
    let looks =
        on_all_cores(&names, |name, core| Test::look(&binary, name, &folder, &log(core), max))?;
    let mut tests: Vec<_> = looks.into_iter().flatten().collect();
    if let Some(unknown) =
        tests.iter().flat_map(|test| &test.sites).find(|site| !is_listed(site, &all))
    {
        return Err(format!(
            "a test has been at {unknown}, where this task finds no memory ordering"
        ));
    }
    tests.sort_by_key(|test| test.takes);
    let is_over = || options.max.is_some_and(|max| begun.elapsed() > max);
    let verdicts = on_all_cores(&trials, |&trial, core| {
        if is_over() { Ok(None) } else { trial.run(&binary, &tests, &log(core)).map(Some) }
    })?;
    let with = |wanted: Verdict| {
        let trials =
            trials.iter().zip(&verdicts).filter(move |(_, verdict)| **verdict == Some(wanted));
        trials.map(|(&trial, _)| trial).collect::<Vec<_>>()
    };
    let tried = verdicts.iter().flatten().count();
    list("no loom test reaches", &with(Verdict::NotReached));
    list("survived", &with(Verdict::Survived));
    println!("{tried} of {} tried in {} s", trials.len(), begun.elapsed().as_secs());
    let found = with(Verdict::Found).len();
    if options.must && found < trials.len() {
        return Err(format!("{found} of {} were found, and all should have been", trials.len()));
    }
    Ok(())
}

/// Returns whether a place is in the list of trials. A place outside the engine (in its tests)
/// counts as listed.
fn is_listed(place: &str, all: &[Trial]) -> bool {
    !sites::is_engine(place) || all.iter().any(|trial| trial.site.place() == place)
}

fn list(title: &str, trials: &[&Trial]) {
    println!("\n{title} ({}):", trials.len());
    trials.iter().for_each(|trial| println!("{}", trial.describe()));
}

impl Test {
    /// Runs the test with no ordering weakened. Keeps the result for later runs with the same
    /// binary. Returns `None` if the test takes too long.
    fn look(
        binary: &Path,
        name: &str,
        folder: &Path,
        log: &Path,
        max: Duration,
    ) -> Result<Option<Test>, String> {
        let notes = folder.join(name.replace("::", "-"));
        let explain = |error| format!("{}: {error}", notes.display());
        let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        let (known, takes) = (notes.with_extension("sites"), notes.with_extension("ms"));
        if changed(&takes).is_none_or(|looked| changed(binary).is_none_or(|built| looked < built)) {
            // A test that reaches no place does not write the file.
            fs::write(&known, "").map_err(explain)?;
            let mut command = command(binary, log)?;
            command.args(["--exact", name]).env("CANDIDE_SITES", &known);
            let (ending, after) = run_within(command, max)?;
            match ending {
                Ending::Passed => {}
                Ending::Failed => {
                    return Err(format!(
                        "{name} fails with nothing weakened; see {}",
                        log.display()
                    ));
                }
                Ending::TooLate => {
                    println!("{name} is left out: it takes more than {} s", max.as_secs());
                    return Ok(None);
                }
            }
            println!("{name} takes {:.1} s", after.as_secs_f64());
            fs::write(&takes, after.as_millis().to_string()).map_err(explain)?;
        }
        let millis = fs::read_to_string(&takes)
            .map_err(explain)?
            .parse()
            .map_err(|error| format!("{name}: {error}"))?;
        let sites =
            fs::read_to_string(&known).map_err(explain)?.lines().map(str::to_string).collect();
        Ok(Some(Test { name: name.to_string(), takes: Duration::from_millis(millis), sites }))
    }

    /// Returns the longest time that the test may take with an ordering weakened. Such a run has
    /// more executions to explore, and other tests use the machine at the same time.
    fn max(&self) -> Duration {
        4 * self.takes + Duration::from_secs(120)
    }
}

impl Trial {
    /// Runs the tests that reach the place with the weaker ordering until one fails, and prints the
    /// result.
    fn run(&self, binary: &Path, tests: &[Test], log: &Path) -> Result<Verdict, String> {
        let place = self.site.place();
        let (mut passed, mut too_late) = (0, 0);
        for test in tests.iter().filter(|test| test.sites.contains(&place)) {
            let mut command = command(binary, log)?;
            command
                .args(["--exact", &test.name])
                .env("CANDIDE_WEAKEN", format!("{place}={}", self.to));
            match run_within(command, test.max())? {
                (Ending::Passed, _) => passed += 1,
                (Ending::TooLate, _) => too_late += 1,
                (Ending::Failed, after) => {
                    let name = test.name.rsplit("::").next().unwrap_or(&test.name);
                    let (after, complaint) = (after.as_secs_f64(), complaint(log));
                    println!(
                        "{}  found by {name} after {after:.1} s: {complaint}",
                        self.describe()
                    );
                    return Ok(Verdict::Found);
                }
            }
        }
        if passed + too_late == 0 {
            return Ok(Verdict::NotReached);
        }
        let late = if too_late > 0 { format!("; {too_late} did not end") } else { String::new() };
        println!("{}  SURVIVED {passed} tests{late}", self.describe());
        Ok(Verdict::Survived)
    }
}

/// Returns the first panic in a log.
fn complaint(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at "));
    let place = lines
        .next()
        .and_then(|line| line.split_once("panicked at "))
        .map_or("no panic", |(_, place)| place);
    let message = lines.next().unwrap_or_default();
    // If loom itself panicked, the place of the panic is left out.
    if place.starts_with("crates/") { format!("{place} {message}") } else { message.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_of_orderings_are_chosen_by_number_and_by_file() {
        let all = trials(&crate::root()).expect("the engine's source");
        let wanted = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string()).collect();
            let options = Options::parse(&arguments).expect("good arguments");
            all.iter()
                .filter(|trial| options.wants(trial))
                .map(|trial| trial.number)
                .collect::<Vec<_>>()
        };
        assert_eq!(wanted(&["--list", "--minutes", "5"]), (1..=all.len()).collect::<Vec<_>>());
        assert_eq!(wanted(&["2", "7"]), [2, 7]);
        assert!(
            !wanted(&["epoch/mod.rs"]).is_empty() && wanted(&["epoch/mod.rs"]).len() < all.len()
        );
        assert_eq!(wanted(&["--must", "--test", "7", "2"]), [2]);
        assert!(Options::parse(&["--minutes".to_string()]).is_err());
        assert!(Options::parse(&["--quickly".to_string()]).is_err());
    }
}
