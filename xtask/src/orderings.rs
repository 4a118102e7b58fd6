//! What each memory ordering is there for: made weaker, one at a time, some loom test should fail.
//!
//! One build of the tests serves for all: under loom, an environment variable weakens the ordering at one place (see
//! `crates/candide/src/sync/weaken.rs`). Each test is run once as it is, to learn which places it reaches and how long it takes;
//! then each weakened place is given to the tests that reach it, the quickest first, until one fails.
//!
//! A survivor is a question and no defect: `docs/memory-ordering.md` answers it. No ordering becomes weaker because nothing
//! has failed here.

use crate::engine_tests::{Build, Ending, command, names, run_within, target_folder};
use crate::progress::Progress;
use crate::sites::{self, Site};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest that a test may take as it is.
const SOUND_MAX: Duration = Duration::from_secs(600);

/// A test that takes longer as it is takes part only with `--slow`: a survivor meets every test that reaches it.
const QUICK_MAX: Duration = Duration::from_secs(30);

/// What is wanted.
#[derive(Debug, Default)]
struct Options {
    list: bool,
    slow: bool,
    max: Option<Duration>,
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
                "--minutes" => {
                    let minutes = rest.next().and_then(|minutes| minutes.parse().ok());
                    let minutes: u64 = minutes.ok_or("`--minutes` needs a number")?;
                    options.max = Some(Duration::from_secs(60 * minutes));
                }
                option if option.starts_with('-') => return Err(format!("there is no option `{option}`")),
                which => options.which.push(which.to_string()),
            }
        }
        Ok(options)
    }

    fn wants(&self, trial: &Trial) -> bool {
        let is = |which: &String| match which.parse::<usize>() {
            Ok(number) => number == trial.number,
            Err(_) => trial.site.place().contains(which.as_str()),
        };
        self.which.is_empty() || self.which.iter().any(is)
    }
}

/// One place with a weaker ordering.
#[derive(Debug)]
struct Trial {
    /// In the list of all.
    number: usize,
    site: Site,
    to: &'static str,
}

impl Trial {
    fn describe(&self) -> String {
        let Site { file, line, operation, function, ordering, .. } = &self.site;
        let file = file.rsplit_once("src/").map_or(file.as_str(), |(_, inside)| inside);
        format!("{:>3}  {file}:{line} {function}: {operation} {ordering} -> {}", self.number, self.to)
    }
}

/// All trials, numbered from one.
fn trials(root: &Path) -> Result<Vec<Trial>, String> {
    let sites = sites::all(root)?.into_iter();
    let pairs = sites.flat_map(|site| site.weakenings().iter().map(move |&to| (site.clone(), to)));
    Ok((1..).zip(pairs).map(|(number, (site, to))| Trial { number, site, to }).collect())
}

/// A loom test, and what it does when nothing is weakened.
#[derive(Debug)]
struct Test {
    name: String,
    takes: Duration,
    /// The places it reaches.
    sites: Vec<String>,
}

/// What has become of a trial.
enum Verdict {
    NotReached,
    Found(String),
    Survived(String),
}

/// Tries what `arguments` want.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let all = trials(root)?;
    let trials: Vec<_> = all.iter().filter(|trial| options.wants(trial)).collect();
    if trials.is_empty() {
        return Err("no memory ordering is meant by that".to_string());
    }
    if options.list {
        trials.iter().for_each(|trial| println!("{}", trial.describe()));
        return Ok(());
    }
    let binary = Build::Loom.make(root)?;
    let begun = Instant::now();
    let folder = root.join(target_folder()).join("orderings");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tests = Vec::new();
    let known = names(&binary, "loom")?;
    let mut progress = Progress::new(known.len() as u64);
    for name in known {
        let max = if options.slow { SOUND_MAX } else { QUICK_MAX };
        match Test::look(&binary, &name, &folder, max)? {
            Some(test) => tests.push(test),
            None => println!("{name} is left out: it takes more than {} s", max.as_secs()),
        }
        progress.step();
    }
    if let Some(unknown) = tests.iter().flat_map(|test| &test.sites).find(|site| !is_listed(site, &all)) {
        return Err(format!("a test has been at {unknown}, where this task finds no memory ordering"));
    }
    tests.sort_by_key(|test| test.takes);
    let (mut survivors, mut unreached, mut tried) = (Vec::new(), Vec::new(), 0);
    let mut progress = Progress::new(trials.len() as u64);
    for &trial in &trials {
        if options.max.is_some_and(|max| begun.elapsed() > max) {
            break;
        }
        tried += 1;
        match trial.run(&binary, &tests, &folder)? {
            Verdict::NotReached => unreached.push(trial),
            Verdict::Found(by) => println!("{}  found by {by}", trial.describe()),
            Verdict::Survived(tests) => {
                println!("{}  SURVIVED {tests}", trial.describe());
                survivors.push(trial);
            }
        }
        progress.step();
    }
    list("no loom test reaches", &unreached);
    list("survived", &survivors);
    println!("{tried} of {} tried in {} s", trials.len(), begun.elapsed().as_secs());
    Ok(())
}

/// Whether a place is one of the list's, or is not in the engine but in its tests.
fn is_listed(place: &str, all: &[Trial]) -> bool {
    !sites::is_engine(place) || all.iter().any(|trial| trial.site.place() == place)
}

fn list(title: &str, trials: &[&Trial]) {
    println!("\n{title} ({}):", trials.len());
    trials.iter().for_each(|trial| println!("{}", trial.describe()));
}

impl Test {
    /// What the test does as it is; known already if it has been run since the binary was built. Nothing if it takes too long.
    fn look(binary: &Path, name: &str, folder: &Path, max: Duration) -> Result<Option<Test>, String> {
        let (notes, log) = (folder.join(name.replace("::", "-")), folder.join("log"));
        let explain = |error| format!("{}: {error}", notes.display());
        let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        let (known, takes) = (notes.with_extension("sites"), notes.with_extension("ms"));
        if changed(&takes).is_none_or(|looked| changed(binary).is_none_or(|built| looked < built)) {
            let mut command = command(binary, &log)?;
            command.args(["--exact", name]).env("CANDIDE_SITES", &known);
            let (ending, after) = run_within(command, max)?;
            match ending {
                Ending::Passed => {}
                Ending::Failed => return Err(format!("{name} fails with nothing weakened; see {}", log.display())),
                Ending::TooLate => return Ok(None),
            }
            println!("{name} takes {:.1} s", after.as_secs_f64());
            fs::write(&takes, after.as_millis().to_string()).map_err(explain)?;
        }
        let millis =
            fs::read_to_string(&takes).map_err(explain)?.parse().map_err(|error| format!("{name}: {error}"))?;
        let sites = fs::read_to_string(&known).map_err(explain)?.lines().map(str::to_string).collect();
        Ok(Some(Test { name: name.to_string(), takes: Duration::from_millis(millis), sites }))
    }

    /// The longest that it may take with something weakened: there is more to explore then, and others use the machine.
    fn max(&self) -> Duration {
        4 * self.takes + Duration::from_secs(20)
    }
}

impl Trial {
    fn run(&self, binary: &Path, tests: &[Test], folder: &Path) -> Result<Verdict, String> {
        let log: PathBuf = folder.join("log");
        let place = self.site.place();
        let (mut passed, mut too_late) = (0, 0);
        for test in tests.iter().filter(|test| test.sites.contains(&place)) {
            let mut command = command(binary, &log)?;
            command.args(["--exact", &test.name]).env("CANDIDE_WEAKEN", format!("{place}={}", self.to));
            match run_within(command, test.max())? {
                (Ending::Passed, _) => passed += 1,
                (Ending::TooLate, _) => too_late += 1,
                (Ending::Failed, after) => {
                    let name = test.name.rsplit("::").next().unwrap_or(&test.name);
                    return Ok(Verdict::Found(format!(
                        "{name} after {:.1} s: {}",
                        after.as_secs_f64(),
                        complaint(&log)
                    )));
                }
            }
        }
        Ok(match (passed, too_late) {
            (0, 0) => Verdict::NotReached,
            (passed, 0) => Verdict::Survived(format!("{passed} tests")),
            (passed, too_late) => Verdict::Survived(format!("{passed} tests; {too_late} did not end")),
        })
    }
}

/// The first panic that a log tells of.
fn complaint(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at "));
    let place = lines.next().and_then(|line| line.split_once("panicked at ")).map_or("no panic", |(_, place)| place);
    let message = lines.next().unwrap_or_default();
    // Where loom itself found it says nothing.
    if place.starts_with("crates/") { format!("{place} {message}") } else { message.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_chosen_by_number_and_by_file() {
        let all = trials(&crate::root()).expect("the engine's source");
        let wanted = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string()).collect();
            let options = Options::parse(&arguments).expect("good arguments");
            all.iter().filter(|trial| options.wants(trial)).map(|trial| trial.number).collect::<Vec<_>>()
        };
        assert_eq!(wanted(&["--list", "--minutes", "5"]), (1..=all.len()).collect::<Vec<_>>());
        assert_eq!(wanted(&["2", "7"]), [2, 7]);
        assert!(!wanted(&["epoch.rs"]).is_empty() && wanted(&["epoch.rs"]).len() < all.len());
        assert!(Options::parse(&["--minutes".to_string()]).is_err());
        assert!(Options::parse(&["--quickly".to_string()]).is_err());
    }
}
