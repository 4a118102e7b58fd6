//! Drills of primaries and standbys as processes, one after another.

use crate::engine_tests::{Ending, command as quiet, run_within};
use crate::workspace::target_folder;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time that a drill may take beside the one in which it disturbs processes: far longer than it
/// does, however busy the machine is.
const BESIDE: Duration = Duration::from_secs(1800);

/// What to run.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    runs: u64,
    seconds: u64,
    /// The first seed. Each run has its own.
    seed: Option<u64>,
    /// The command; `None` if it is to be built.
    command: Option<PathBuf>,
    /// Options of `candide reach drill`.
    options: Vec<String>,
}

impl Order {
    fn parse(arguments: &[String]) -> Result<Order, String> {
        let (runs, seconds, options) = (100, 10, Vec::new());
        let mut order = Order { runs, seconds, seed: None, command: None, options };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            let number = |text: &String| text.parse().map_err(|_| format!("{text} is no number"));
            match argument.as_str() {
                "--runs" => order.runs = number(value()?)?,
                "--seconds" => order.seconds = number(value()?)?,
                "--seed" => order.seed = Some(number(value()?)?),
                "--command" => order.command = Some(PathBuf::from(value()?)),
                "--" => order.options.extend(arguments.by_ref().cloned()),
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        Ok(order)
    }
}

/// Runs drills. What a failed one leaves stays below `target/drill`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let order = Order::parse(arguments)?;
    let program = match &order.command {
        Some(program) => program.clone(),
        None => build(root)?,
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = order.seed.unwrap_or(since.as_nanos() as u64 >> 10);
    let folder = root.join(target_folder()).join("drill");
    let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(explain)?;
    for number in 0..order.runs {
        let seed = first.wrapping_add(number);
        let of_run = folder.join(seed.to_string());
        if of_run.exists() {
            fs::remove_dir_all(&of_run).map_err(explain)?;
        }
        fs::create_dir(&of_run).map_err(explain)?;
        let log = of_run.join("log");
        let mut drill: Command = quiet(&program, &log)?;
        drill.args(["reach", "drill"]).arg(of_run.join("place"));
        drill.arg("--dir").arg(of_run.join("databases"));
        drill.args(["--seconds", &order.seconds.to_string(), "--seed", &seed.to_string()]);
        drill.args(&order.options);
        let most = BESIDE + Duration::from_secs(order.seconds);
        let (ending, _) = run_within(drill, most)?;
        let text = fs::read_to_string(&log).map_err(explain)?;
        if ending != Ending::Passed {
            eprintln!("{text}");
            let shown = of_run.display();
            return Err(format!(
                "the drill with seed {seed}: {ending:?}; its files are in {shown}"
            ));
        }
        let last: Vec<&str> = text.lines().rev().take(2).collect();
        println!("seed {seed}: {}", last.into_iter().rev().collect::<Vec<_>>().join("; "));
        fs::remove_dir_all(&of_run).map_err(explain)?;
    }
    Ok(())
}

/// Builds the command, and returns its path.
fn build(root: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--release", "--package=candide-bench"]);
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if !status.success() {
        return Err("the command does not build".to_string());
    }
    Ok(root.join(target_folder()).join("release").join("candide"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_drill_come_behind_two_dashes() {
        let parse = |text: &str| {
            Order::parse(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>())
        };
        let order = parse("--runs 2 --seconds 4 --seed 7 -- --pause 1s").unwrap();
        assert_eq!((order.runs, order.seconds, order.seed), (2, 4, Some(7)));
        assert_eq!((order.command, order.options), (None, vec!["--pause".into(), "1s".into()]));
        assert_eq!(parse("").unwrap().runs, 100);
        for wrong in ["--runs", "--runs many", "--pause 1s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
