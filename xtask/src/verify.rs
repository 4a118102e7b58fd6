//! Runs of random schedules of whole transactions, for a given time. The checks of a change run
//! only a few schedules.
//!
//! The scenes are in `crates/candide/src/tests/shuttle`. Each run has a new seed, and adds its
//! counts to `docs/verification-ledger.csv`, one line for each scene and protocol. Mutants show how
//! many schedules are enough: the task measures after how many distinct schedules each mutant is
//! found.

use crate::defects::Build;
use crate::engine_tests::{Ending, command, run_watched};
use crate::mutants;
use crate::progress::Progress;
use crate::workspace::target_folder;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TEST: &str = "tests::shuttle::shuttle_scenes_satisfy_the_guarantees_of_protocols";
const LEDGER: &str = "docs/verification-ledger.csv";
/// The files of the scenes. `SCENES_OF_ALL` is for all protocols with concurrent transactions, and
/// `SCENES_OF_VERSIONED` for the protocols that keep versions.
const SCENES_OF_ALL: [&str; 3] = ["scenes.rs", "life.rs", "logged.rs"];
const SCENES_OF_VERSIONED: [&str; 2] = ["versions.rs", "values.rs"];
const SCENE_FILES: &str = "crates/candide/src/tests/shuttle";
const LEDGER_HEAD: &str = "date,commit,scene,protocol,schedules,distinct,failures";

/// The output of the tests if a schedule reached a place of the mutant.
const MET: &str = "mutant: met";

/// The number of seeds with which the task searches for a mutant. The worst seed counts.
const SEEDS: u64 = 7;
/// The number of schedules of each scene in the first search for a mutant, with the first seed.
const FIRST_LOOK: u64 = 2_000;
/// The number of scenes to repeat with all seeds. These are the scenes that found the mutant after
/// the fewest schedules. The scene with the best result for its worst seed counts, since a search
/// for a defect runs all scenes.
const SCENES: usize = 4;
/// The most schedules of a repeated scene, for each seed.
const LOOK_MAX: u64 = 50_000;
/// The longest time that the search for a mutant may take, in each process.
const LOOK_TIME: Duration = Duration::from_secs(120);

/// The request in the arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    minutes: Option<u64>,
    scene: Option<String>,
    protocol: Option<String>,
    /// The mutants to search for; an empty list means all mutants. `None` if no mutants were
    /// requested.
    mutants: Option<Vec<String>>,
}

/// A line of the tests' output: the result of one scene under one protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Played {
    scene: String,
    protocol: String,
    schedules: u64,
    distinct: u64,
    failures: u64,
}

/// Runs schedules. If mutants were requested, measures the number of schedules after which each
/// mutant is found.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let request = parse(arguments)?;
    let binary = Build::Shuttle.make_one(root)?;
    match &request.mutants {
        Some(names) => measure(root, &binary, names, &request),
        None => verify(root, &binary, &request),
    }
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--minutes" => {
                let minutes = value()?.parse().ok().filter(|minutes| *minutes > 0);
                request.minutes = Some(minutes.ok_or("--minutes needs a whole number above zero")?);
            }
            "--scene" => request.scene = Some(value()?),
            "--protocol" => request.protocol = Some(value()?),
            "--mutants" => request.mutants = Some(Vec::new()),
            name => match &mut request.mutants {
                Some(mutants) if !name.starts_with('-') => mutants.push(name.to_string()),
                _ => {
                    return Err(format!(
                        "`verify` knows no {name}; it takes --minutes N, --scene, --protocol, --mutants"
                    ));
                }
            },
        }
    }
    if request.minutes.is_some() == request.mutants.is_some() {
        return Err("`verify` needs either --minutes N or --mutants".to_string());
    }
    Ok(request)
}

/// Returns the lines of a test's output that report a scene and a protocol.
fn played(output: &str) -> Vec<Played> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("schedules: ")?.split(' ');
        let (scene, protocol) = (words.next()?.to_string(), words.next()?.to_string());
        let mut number =
            |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        let (schedules, distinct, failures) =
            (number("run")?, number("distinct")?, number("failed")?);
        Some(Played { scene, protocol, schedules, distinct, failures })
    };
    output.lines().filter_map(line).collect()
}

/// Runs the tests with these environment variables. Returns the tests' output and the way in which
/// they ended. Prints progress if the number of seconds to run is given.
fn play(
    root: &Path,
    binary: &Path,
    variables: &[(&str, &str)],
    max: Duration,
    seconds: Option<u64>,
) -> Result<(String, Ending), String> {
    let log = root.join(target_folder()).join("verify.log");
    let mut command = command(binary, &log)?;
    command.args(["--exact", TEST, "--nocapture"]).envs(variables.iter().copied());
    let mut progress = seconds.map(Progress::new);
    let (ending, _) = run_watched(command, max, |passed| {
        if let Some(progress) = &mut progress {
            progress.reach(passed.as_secs());
        }
    })?;
    let output = fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok((String::from_utf8_lossy(&output).into_owned(), ending))
}

fn verify(root: &Path, binary: &Path, request: &Request) -> Result<(), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    // The commit that has been built. By the end of the tests, another commit may be checked out.
    let (date, commit) = (date_of(now.as_secs() / 86_400), commit(root)?);
    let minutes = request.minutes.expect("asked for");
    let (seconds, seed) = ((60 * minutes).to_string(), (now.as_nanos() as u64).to_string());
    let mut variables = vec![("CANDIDE_SECONDS", seconds.as_str()), ("CANDIDE_SEED", &seed)];
    variables.extend(request.scene.as_deref().map(|scene| ("CANDIDE_SCENE", scene)));
    variables.extend(request.protocol.as_deref().map(|protocol| ("CANDIDE_PROTOCOL", protocol)));
    println!("seed {seed}, {minutes} min");
    let (output, ending) = play(
        root,
        binary,
        &variables,
        Duration::from_secs(120 * minutes + 60),
        Some(60 * minutes),
    )?;
    let played = played(&output);
    let path = root.join(LEDGER);
    let explain = |error: std::io::Error| format!("{LEDGER}: {error}");
    let is_new = !path.exists();
    let mut ledger = OpenOptions::new().create(true).append(true).open(&path).map_err(explain)?;
    let mut lines = if is_new { format!("{LEDGER_HEAD}\n") } else { String::new() };
    for Played { scene, protocol, schedules, distinct, failures } in &played {
        println!(
            "{scene:14}  {protocol:8}  {schedules:>9} schedules, {distinct:>9} distinct, {failures} failed"
        );
        lines += &format!("{date},{commit},{scene},{protocol},{schedules},{distinct},{failures}\n");
    }
    ledger.write_all(lines.as_bytes()).map_err(explain)?;
    output.lines().filter(|line| line.starts_with("replay: ")).for_each(|line| println!("{line}"));
    let (ledger, scenes) = (fs::read_to_string(&path).map_err(explain)?, scenes(root)?);
    print_totals(&ledger, [&scenes[0], &scenes[1]]);
    match ending {
        Ending::Passed => Ok(()),
        Ending::Failed if played.iter().all(|played| played.failures == 0) => {
            Err(format!("the tests failed without a schedule to replay:\n{}", last_lines(&output)))
        }
        Ending::Failed => Err("schedules failed; the lines above replay them".to_string()),
        Ending::TooLate => Err("the tests did not end in twice the time".to_string()),
    }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Returns the scenes that all protocols run, and the scenes that protocols with versions run.
fn scenes(root: &Path) -> Result<[Vec<String>; 2], String> {
    let of = |files: &[&str]| {
        let mut scenes = Vec::new();
        for file in files {
            let path = root.join(SCENE_FILES).join(file);
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            scenes.extend(scenes_in(&text).map(str::to_string));
        }
        if scenes.is_empty() {
            Err(format!("no scene was recognized in {files:?}"))
        } else {
            Ok(scenes)
        }
    };
    Ok([of(&SCENES_OF_ALL)?, of(&SCENES_OF_VERSIONED)?])
}

/// Returns the names of the scenes in a file's text.
fn scenes_in(text: &str) -> impl Iterator<Item = &str> {
    let made = ["Scene::new(\"", "Scene::peaceful(\""];
    let names = made.into_iter().flat_map(|made| text.split(made).skip(1));
    names.filter_map(|rest| rest.split('"').next())
}

/// Returns, for each scene and protocol, the number of distinct schedules that have been run.
/// Scenes that have never been run are included with zero. The lines of the ledger determine the
/// set of protocols, and the protocols that keep versions.
fn totals<'a>(
    ledger: &'a str,
    [of_all, of_versioned]: [&'a [String]; 2],
) -> BTreeMap<(&'a str, &'a str), u64> {
    let mut totals: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in ledger.lines().skip(1) {
        if let [_, _, scene, protocol, _, distinct, _] = line.split(',').collect::<Vec<_>>()[..] {
            *totals.entry((scene, protocol)).or_default() += distinct.parse::<u64>().unwrap_or(0);
        }
    }
    let played: Vec<(&str, &str)> = totals.keys().copied().collect();
    for (scene, protocol) in played {
        let mut expect = |scenes: &'a [String]| {
            for scene in scenes {
                totals.entry((scene, protocol)).or_default();
            }
        };
        expect(of_all);
        if of_versioned.iter().any(|versioned| versioned == scene) {
            expect(of_versioned);
        }
    }
    totals
}

/// Prints the number of schedules in the whole ledger, and the scene and protocol with the fewest
/// schedules.
fn print_totals(ledger: &str, scenes: [&[String]; 2]) {
    let totals = totals(ledger, scenes);
    let sum: u64 = totals.values().sum();
    if let Some(((scene, protocol), least)) = totals.iter().min_by_key(|(_, distinct)| **distinct) {
        println!(
            "ledger: {sum} distinct schedules in all, {least} of {scene} under {protocol}, which has the fewest"
        );
    }
}

/// Returns the commit that is checked out, with a mark if the engine's files differ from that
/// commit.
fn commit(root: &Path) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output();
        let output = output.map_err(|error| format!("git does not start: {error}"))?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let changed = !git(&["status", "--porcelain", "--untracked-files=no", "crates"])?.is_empty();
    Ok(git(&["rev-parse", "--short=10", "HEAD"])? + if changed { "+" } else { "" })
}

/// Returns the date of a day in the form 2026-11-22. `days` is the number of days since the start
/// of 1970.
fn date_of(days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    for days in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        month += 1;
        if day < days {
            break;
        }
        day -= days;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

/// Prints a table with the number of distinct schedules after which each mutant is found, in the
/// scene that finds it first.
fn measure(root: &Path, binary: &Path, names: &[String], request: &Request) -> Result<(), String> {
    let names = mutants::known(root, names)?;
    println!(
        "| mutant | scene | protocol | distinct schedules, worst of {SEEDS} seeds |\n|---|---|---|---|"
    );
    let mut progress = Progress::new(names.len() as u64);
    for (done, name) in (0..).zip(&names) {
        progress.reach(done);
        let (seed, schedules) = ("1", FIRST_LOOK.to_string());
        let mut variables = vec![("CANDIDE_MUTANT", name.as_str()), ("CANDIDE_SEED", seed)];
        variables.push(("CANDIDE_SCHEDULES", &schedules));
        variables.extend(request.scene.as_deref().map(|scene| ("CANDIDE_SCENE", scene)));
        variables
            .extend(request.protocol.as_deref().map(|protocol| ("CANDIDE_PROTOCOL", protocol)));
        let (output, ending) = play(root, binary, &variables, LOOK_TIME, None)?;
        let mut found: Vec<_> =
            played(&output).into_iter().filter(|played| played.failures > 0).collect();
        if found.is_empty() {
            let why = match ending {
                Ending::Passed if !output.contains(MET) => "not in what this runs".to_string(),
                Ending::Passed => format!("none, in {FIRST_LOOK} of each"),
                _ => format!("none, in {FIRST_LOOK} of each (and the tests broke off)"),
            };
            println!("| `{name}` | {why} | | |");
            continue;
        }
        found.sort_by_key(|played| played.distinct);
        let mut best: Option<(&Played, u64)> = None;
        for first in found.iter().take(SCENES) {
            let max = best.map_or(LOOK_MAX, |(_, worst)| worst);
            if let Some(worst) = worst_of_seeds(root, binary, name, first, max)? {
                best = Some((first, worst));
            }
        }
        match best {
            Some((Played { scene, protocol, .. }, worst)) => {
                println!("| `{name}` | {scene} | {protocol} | {worst} |")
            }
            None => println!("| `{name}` | {}, but not by every seed | | |", found[0].scene),
        }
    }
    Ok(())
}

/// Returns the number of schedules after which a scene finds a mutant with the worst of all seeds.
/// The first seed has found the mutant already. Returns `None` if a seed does not find the mutant
/// within `max`.
fn worst_of_seeds(
    root: &Path,
    binary: &Path,
    name: &str,
    first: &Played,
    max: u64,
) -> Result<Option<u64>, String> {
    let mut worst = first.distinct;
    for seed in 2..=SEEDS {
        match look_again(root, binary, name, first, seed, max)? {
            Some(distinct) => worst = worst.max(distinct),
            None => return Ok(None),
        }
    }
    Ok((worst < max).then_some(worst))
}

/// Returns the number of distinct schedules of one scene after which another seed finds a mutant;
/// `None` if that seed does not find the mutant.
fn look_again(
    root: &Path,
    binary: &Path,
    name: &str,
    first: &Played,
    seed: u64,
    max: u64,
) -> Result<Option<u64>, String> {
    let (seed, schedules) = (seed.to_string(), max.to_string());
    let variables = [
        ("CANDIDE_MUTANT", name),
        ("CANDIDE_SEED", &seed),
        ("CANDIDE_SCHEDULES", &schedules),
        ("CANDIDE_SCENE", &first.scene),
        ("CANDIDE_PROTOCOL", &first.protocol),
        ("CANDIDE_TRACE", "1"),
    ];
    let (output, ending) = play(root, binary, &variables, LOOK_TIME, None)?;
    Ok(match (played(&output).first(), ending) {
        (Some(played), _) => (played.failures > 0).then_some(played.distinct),
        // The test crashed, or a schedule did not end.
        (None, _) => (ending != Ending::Passed).then(|| traced(&output)),
    })
}

/// Returns the number of the schedule that began last.
fn traced(output: &str) -> u64 {
    let begun = output.lines().rev().find_map(|line| line.strip_prefix("schedule: ")?.parse().ok());
    begun.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn arguments_of_verify_are_parsed_or_refused() {
        let request =
            parse(&words("--minutes 3 --scene growth --protocol occ")).expect("well-formed");
        assert_eq!(
            (request.minutes, request.scene.as_deref(), request.protocol.as_deref()),
            (Some(3), Some("growth"), Some("occ"))
        );
        let request = parse(&words("--mutants no-fence reclaim-early")).expect("well-formed");
        assert_eq!(request.mutants, Some(words("no-fence reclaim-early")));
        for wrong in [
            "--minutes",
            "--minutes 0",
            "--minutes x",
            "--scene growth",
            "growth",
            "--minutes 1 --mutants",
        ] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn the_number_of_played_schedules_is_read_from_the_output() {
        let output = "protocol: occ\nschedules: growth occ run=12 distinct=11 failed=1 {\"conflict\": 3}\nreplay: x\nschedules: odd";
        let (scene, protocol) = ("growth".to_string(), "occ".to_string());
        assert_eq!(traced("schedule: 3\nschedule: 4\nSegm"), 4);
        assert_eq!(
            played(output),
            [Played { scene, protocol, schedules: 12, distinct: 11, failures: 1 }]
        );
    }

    #[test]
    fn scenes_that_were_never_played_come_first() {
        let ledger = format!(
            "{LEDGER_HEAD}\nd,c,moves,occ,9,8,0\nd,c,moves,mvcc,9,7,0\nd,c,moves,occ,9,6,0\nd,c,hot,mvcc,5,4,0\n"
        );
        let text = "Scene::new(\"moves\").part(a)\nlet scene = Scene::peaceful(\"growth\")";
        let of_all: Vec<String> = scenes_in(text).map(str::to_string).collect();
        let of_versioned = ["hot".to_string(), "parked".to_string()];
        let totals: Vec<_> = totals(&ledger, [&of_all, &of_versioned]).into_iter().collect();
        assert_eq!(
            totals,
            [
                (("growth", "mvcc"), 0),
                (("growth", "occ"), 0),
                (("hot", "mvcc"), 4),
                (("moves", "mvcc"), 7),
                (("moves", "occ"), 14),
                (("parked", "mvcc"), 0),
            ]
        );
        let [of_all, of_versioned] = scenes(&crate::root()).expect("the scenes");
        assert!(
            of_all.iter().any(|name| name == "twins")
                && of_versioned.iter().any(|name| name == "values")
        );
    }

    #[test]
    fn days_are_converted_to_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_779, "2026-11-22"),
        ] {
            assert_eq!(date_of(day), date);
        }
    }
}
