//! Processes that are killed: one after another opens a database in files, checks it, runs
//! transactions and reports which are acknowledged, until it is killed at a random moment.
//!
//! The writes that a process has handed to the operating system survive the process, so this checks
//! the level [`Written`](candide::Level::Written), which the level `Durable` includes.

mod child;
mod told;

pub use child::{Child, run as run_child};

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use candide::Level;

use crate::failure::Failure;
use crate::files::level_name;
use crate::progress::{self, Agenda};
use crate::registry::Choices;
use crate::results::{Finding, grouped};
use crate::{interrupt, output};
use told::Told;

/// The order for a loop of kills.
#[derive(Debug)]
pub struct Order {
    /// The number of processes that are killed.
    pub runs: u64,
    /// The directory of the database, which must not exist; `None` for a directory among the
    /// temporary files, which is removed at the end.
    pub place: Option<PathBuf>,
    /// The level for which transactions wait.
    pub level: Level,
    /// The number of threads that run transactions.
    pub workers: usize,
    /// The seed from which all moments and transfers are drawn.
    pub seed: u64,
    /// The protocols of the processes, in turn.
    pub protocols: Choices,
}

/// The longest time that a process runs after it has opened the database.
const ALIVE_MAX: Duration = Duration::from_millis(120);
/// The number of processes of which one is killed while it opens the database.
const EARLY: usize = 8;

/// Runs and kills processes. Returns [`Finding::Bad`] if an acknowledged transaction is lost or an
/// invariant does not hold; the database then stays.
///
/// # Errors
/// No process can be started.
pub fn run(order: &Order) -> Result<Finding, Failure> {
    if order.level == Level::Memory {
        return Err(Failure::Usage(
            "a killed process loses commits that are only in memory; use --ack written or --ack durable"
                .to_string(),
        ));
    }
    let (place, is_own) = match &order.place {
        Some(place) => (place.clone(), false),
        None => {
            let name = format!("candide-kill-{}", std::process::id());
            (std::env::temp_dir().join(name), true)
        }
    };
    if place.exists() {
        let place = place.display();
        return Err(Failure::Usage(format!(
            "{place} is there already; name a directory that does not exist"
        )));
    }
    interrupt::listen()?;
    let begun = Instant::now();
    let title = "killing processes";
    let mut told = Told::default();
    let ended = progress::with_bar(
        &Agenda::new(1, Duration::ZERO),
        title,
        order.runs,
        false,
        |done| -> Result<Option<String>, String> {
            let mut draws = fastrand::Rng::with_seed(order.seed);
            for number in 0..order.runs {
                if interrupt::is_pressed() {
                    break;
                }
                let is_early = draws.usize(0..EARLY) == 0;
                let alive = ALIVE_MAX.mul_f64(draws.f64());
                let wrong = kill_one(order, &place, number, (is_early, alive), &mut told)?;
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if wrong.is_some() {
                    return Ok(wrong);
                }
            }
            look(order, &place, &mut told)
        },
    );
    let wrong = ended.map_err(|error| Failure::Run(error.into()))?;
    let took = begun.elapsed().as_secs_f64();
    output::print(|out| {
        writeln!(
            out,
            "{} processes killed in {took:.1} s, {:.1} a second; {} transactions acknowledged as \
             {}; at most {} of a process were found without acknowledgement",
            grouped(told.killed as f64),
            told.killed as f64 / took,
            grouped(told.acknowledged as f64),
            level_name(order.level),
            grouped(told.in_flight_max as f64),
        )
    })?;
    match wrong {
        None => {
            if is_own {
                std::fs::remove_dir_all(&place)?;
            }
            Ok(Finding::Good)
        }
        Some(what) => {
            output::say(&format!("FAILED: {what}\nthe database is in {}", place.display()));
            Ok(Finding::Bad)
        }
    }
}

/// Starts a process, kills it, and reads its reports. Returns the faults of the database that the
/// process found.
fn kill_one(
    order: &Order,
    place: &Path,
    number: u64,
    (is_early, alive): (bool, Duration),
    told: &mut Told,
) -> Result<Option<String>, String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let mut child = command(order, place, number)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed("a process cannot be started", error))?;
    let lines = BufReader::new(child.stdout.take().ok_or("the process has no output")?);
    let (opened, is_open) = std::sync::mpsc::channel();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        for line in lines.split(b'\n').map_while(Result::ok) {
            if line == told::OPENED.as_bytes() {
                let _ = opened.send(());
            }
            all.push(String::from_utf8_lossy(&line).into_owned());
        }
        all
    });
    if !is_early {
        // The channel is closed when the process has ended without being killed.
        let _ = is_open.recv();
    }
    thread::sleep(if is_early { alive / 10 } else { alive });
    let ended = child.try_wait().map_err(|error| failed("the process", error))?;
    child.kill().map_err(|error| failed("the process cannot be killed", error))?;
    let output = child.wait_with_output().map_err(|error| failed("the process", error))?;
    let lines = reader.join().map_err(|_| "the reader of the pipe has panicked")?;
    if let Some(status) = ended {
        let message = String::from_utf8_lossy(&output.stderr);
        return Ok(Some(format!("process {number} has ended by itself, {status}: {message}")));
    }
    told.killed += 1;
    Ok(told.hear(&lines).err().map(|what| format!("process {number}: {what}")))
}

/// Opens the database once more, and only checks it.
fn look(order: &Order, place: &Path, told: &mut Told) -> Result<Option<String>, String> {
    if told.killed == 0 {
        return Ok(None);
    }
    let output = command(order, place, 0)
        .arg("--look")
        .output()
        .map_err(|error| format!("a process cannot be started: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Ok(Some(format!("the database does not open at the end: {message}")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    Ok(told.hear(&lines).err().map(|what| format!("at the end: {what}")))
}

/// Returns the command of the process with this number.
fn command(order: &Order, place: &Path, number: u64) -> Command {
    let protocols = &order.protocols.0;
    let protocol = protocols[number as usize % protocols.len()].name();
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "candide".into()));
    command.arg("crash").arg("--child").arg(place);
    command.args(["--ack", level_name(order.level), "--protocol", protocol]);
    command.args(["--threads", &order.workers.to_string()]);
    command.args(["--seed", &order.seed.wrapping_add(number).to_string()]);
    command
}
