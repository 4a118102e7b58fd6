//! A comparison of the command's build time and size with the limits in `docs/build-budget.csv`.
//!
//! By default the task builds the command from nothing. The checks of a change use `--built FILE`
//! and `--coarse`. The first option checks only the size and the copies of an existing command,
//! which do not depend on the load of the machine. With the second option a limit may be exceeded
//! by 15 %, so that a change that only moves code passes.

mod build;
mod limits;
mod sizes;

use build::Build;
use limits::{Budget, FILE, Measured, RELEASE, Tolerance};
use sizes::Sizes;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of crates to list.
const LISTED: usize = 10;

/// The request in the arguments.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// An existing command, and the profile whose limits the command must keep. `None` if the
    /// command is to be built.
    built: Option<(PathBuf, String)>,
    tolerance: Tolerance,
}

/// Builds the command, or takes an existing one, and checks it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let request = parse(arguments)?;
    let text = fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let budget = Budget::parse(&text).map_err(|problem| format!("{FILE}: {problem}"))?;
    match &request.built {
        Some((command, profile)) => check(&budget, profile, command, None, &request),
        None => {
            budget.demand(RELEASE)?;
            let build = Build::make(root)?;
            let [user, system] = build.cpu.map(|time| time.as_secs_f64());
            let (cpu, wall) = (user + system, build.wall.as_secs_f64());
            println!("built: {}", build.command.display());
            println!("CPU seconds: {cpu:.1} (user {user:.1}, system {system:.1})");
            println!("wall seconds: {wall:.1}");
            check(&budget, RELEASE, &build.command, Some(cpu), &request)
        }
    }
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let (mut built, mut profile) = (None, None);
    let mut tolerance = Tolerance::Exact;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--built" => built = Some(PathBuf::from(value()?)),
            "--profile" => profile = Some(value()?),
            "--coarse" => tolerance = Tolerance::Coarse,
            unknown => {
                let known = "--built FILE, --profile NAME, --coarse";
                return Err(format!("`build-budget` knows no {unknown}; it takes {known}"));
            }
        }
    }
    if built.is_none() && profile.is_some() {
        return Err(format!("--profile belongs to --built; without that {RELEASE} is built"));
    }
    let built = built.map(|command| (command, profile.unwrap_or_else(|| RELEASE.to_string())));
    Ok(Request { built, tolerance })
}

/// Prints the contents of a command, and compares it with the limits of its profile.
fn check(
    budget: &Budget,
    profile: &str,
    command: &Path,
    cpu_seconds: Option<f64>,
    request: &Request,
) -> Result<(), String> {
    budget.demand(profile)?;
    let sizes = Sizes::read(command)?;
    println!("text bytes: {}\nfile bytes: {}", sizes.text, sizes.file);
    println!("functions: {}", sizes.functions());
    println!("\nbytes of the functions of the largest crates:");
    for (name, bytes) in sizes.crates().into_iter().take(LISTED) {
        println!("{bytes:>12}  {name}");
    }
    println!();
    let verdict =
        budget.check(profile, &Measured { sizes: &sizes, cpu_seconds }, request.tolerance);
    println!("limits of the profile {profile}:");
    verdict.checked.iter().chain(&verdict.unchecked).for_each(|line| println!("  {line}"));
    verdict.tolerated.iter().for_each(|line| println!("  tolerated: {line}"));
    match verdict.failures.as_slice() {
        [] => Ok(()),
        failures => {
            let failures = failures.join("\n  ");
            Err(format!("the build does not keep its limits:\n  {failures}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    fn parsed(arguments: &[&str]) -> Result<Request, String> {
        parse(&arguments.iter().map(|argument| argument.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_choose_the_form_of_the_budget() {
        let tolerance = Tolerance::Exact;
        assert_eq!(parsed(&[]), Ok(Request { built: None, tolerance }));
        let built = |profile: &str| Some((PathBuf::from("candide"), profile.to_string()));
        let short = parsed(&["--built", "candide"]);
        assert_eq!(short, Ok(Request { built: built(RELEASE), tolerance }));
        let of_debug = parsed(&["--coarse", "--profile", "debug", "--built", "candide"]);
        let tolerance = Tolerance::Coarse;
        assert_eq!(of_debug, Ok(Request { built: built("debug"), tolerance }));
    }

    #[test]
    fn unknown_arguments_of_build_budget_are_refused() {
        let refused = |arguments: &[&str]| parsed(arguments).expect_err("a mistake");
        assert_eq!(refused(&["--built"]), "--built needs a value");
        assert!(refused(&["--json"]).contains("knows no --json"));
        assert!(refused(&["--profile", "debug"]).contains("belongs to --built"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_command_above_a_limit_fails() {
        let command = env::current_exe().expect("a program that runs");
        let request = parsed(&[]).expect("no mistake");
        let run = |most: u64| {
            let text = format!("profile,limit,most,reason\ntest,\"text bytes\",{most},this test\n");
            check(&Budget::parse(&text).expect("limits"), "test", &command, None, &request)
        };
        assert_eq!(run(1_000_000_000), Ok(()));
        let failure = run(1000).expect_err("a program of more than a thousand bytes");
        assert!(failure.contains("text bytes: ") && failure.contains("is 1000;"), "{failure}");
    }
}
