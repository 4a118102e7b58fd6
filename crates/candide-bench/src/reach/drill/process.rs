//! The processes of the drill, as their parent has them.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::lines::{Said, Told};

/// What comes from a process.
#[derive(Debug)]
pub(super) struct Event {
    /// The number of the process.
    pub(super) process: u64,
    pub(super) at: Instant,
    /// `None` when it has ended.
    pub(super) said: Option<Said>,
}

/// A process that runs, or has been killed and not started again.
#[derive(Debug)]
pub(super) struct Process {
    /// Its number among all processes of the drill.
    pub(super) number: u64,
    child: Child,
    /// What it has printed to standard error.
    errors: Option<thread::JoinHandle<String>>,
    /// The generation that it leads, or has led.
    pub(super) leads: Option<u64>,
    pub(super) follows: bool,
    /// Whether it follows and does not take over.
    pub(super) stays: bool,
    /// Whether it needs a new directory, since another process has led.
    pub(super) is_outrun: bool,
    pub(super) is_killed: bool,
    pub(super) has_stopped: bool,
    /// Until when it is paused.
    pub(super) paused: Option<Instant>,
}

/// What is the same for all processes.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) place: PathBuf,
    pub(super) promote_after: Duration,
    pub(super) workers: usize,
}

impl Process {
    /// Starts a process with the database in `dir`.
    pub(super) fn start(
        setting: &Setting,
        dir: &Path,
        leads: bool,
        number: u64,
        events: &Sender<Event>,
    ) -> Result<Process, String> {
        let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        command.args(["reach", "drill"]).arg(&setting.place).arg("--node").arg(dir);
        let promote_after = humantime::format_duration(setting.promote_after).to_string();
        command.args(["--promote-after", &promote_after.replace(' ', "")]);
        command.args(["--threads", &setting.workers.to_string()]);
        command.args(["--seed", &number.to_string()]);
        if leads {
            command.arg("--leads");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| format!("a process cannot be started: {error}"))?;
        let output = child.stdout.take().ok_or("the process has no output")?;
        let mut errors = child.stderr.take().ok_or("the process has no error output")?;
        let events = events.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(said) = Said::parse(&line) {
                    let _ = events.send(Event {
                        process: number,
                        at: Instant::now(),
                        said: Some(said),
                    });
                }
            }
            let _ = events.send(Event { process: number, at: Instant::now(), said: None });
        });
        let errors = thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Ok(Process {
            number,
            child,
            errors: Some(errors),
            leads: None,
            follows: false,
            stays: false,
            is_outrun: false,
            is_killed: false,
            has_stopped: false,
            paused: None,
        })
    }

    /// Tells the process something. One that has ended does not hear it.
    pub(super) fn tell(&mut self, told: Told) {
        if let Some(input) = &mut self.child.stdin {
            let _ = input.write_all(told.line().as_bytes()).and_then(|()| input.flush());
        }
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        self.is_killed = true;
        self.paused = None;
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map(drop).map_err(|error| format!("a process cannot be killed: {error}"))
    }

    /// Pauses the process, or lets it go on.
    pub(super) fn pause(&mut self, until: Option<Instant>) -> Result<(), String> {
        self.paused = until;
        let signal = if until.is_some() { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`kill {signal}` has failed: {status}")),
            Err(error) => Err(format!("`kill {signal}` cannot be run: {error}")),
        }
    }

    /// Returns whether the process may do something.
    pub(super) fn is_up(&self) -> bool {
        !self.is_killed && !self.is_outrun && !self.has_stopped
    }

    /// Waits until the process has ended. Returns what is wrong, unless it was killed or has ended
    /// as it should.
    pub(super) fn ended(&mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        if self.is_killed || (status.success() && (self.is_outrun || self.has_stopped)) {
            return Ok(());
        }
        let number = self.number;
        Err(format!("process {number} has ended by itself, {status}: {}", errors.trim_end()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
