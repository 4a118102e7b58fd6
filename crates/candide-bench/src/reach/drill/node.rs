//! A process of the drill: the primary, or a standby that may take over.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use candide::{Database, LogOptions, Mvcc, OpenError};
use candide_harness::Failure;
use candide_reach::{Directory, ReachError, Replicate, Standby, StandbyError, StandbyOptions};

use super::super::silence::Silence;
use super::faults::{Faulty, Present};
use super::lines::{Said, Told};
use super::tables::{Lasts, Tables, replicated};

/// How often a standby looks, and a leader whether it is told something.
const LOOK: Duration = Duration::from_millis(10);
/// The number of looks after which a standby adds up the accounts.
const SUM_EVERY: u32 = 8;

/// The order for a process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: PathBuf,
    pub(super) dir: PathBuf,
    /// Whether it leads, or follows and may take over.
    pub(super) leads: bool,
    pub(super) promote_after: Duration,
    pub(super) workers: usize,
    pub(super) seed: u64,
    pub(super) present: Present,
}

/// Says something to the parent, as a whole line.
fn say(said: &Said) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(said.line().as_bytes())?;
    out.flush()
}

/// Hears the parent. The process ends when the parent has ended.
fn hear(present: Present) -> Receiver<Told> {
    let (sender, told) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match Told::parse(&line) {
                // At once, since the process may be waiting for the place.
                Some(Told::Place(fault)) => present.set(fault),
                Some(heard) => drop(sender.send(heard)),
                None => {}
            }
        }
        std::process::exit(1);
    });
    told
}

/// Is a process of the drill until another one leads, or the parent ends.
///
/// # Errors
/// What must not happen.
pub(super) fn run(node: &Node) -> Result<(), Failure> {
    let told = hear(node.present.clone());
    let ended = match node.leads {
        true => lead(node, &told),
        false => follow_until(node, &told).and_then(|leads| match leads {
            true => lead(node, &told),
            false => Ok(()),
        }),
    };
    ended.map_err(|what| Failure::Run(what.into()))
}

fn options() -> LogOptions {
    // Small files, so that segments follow one another and checkpoints are made.
    LogOptions::new().segment_bytes(64 << 10).checkpoint_bytes(512 << 10)
}

fn open_place(node: &Node) -> Result<Faulty, String> {
    let folder = Directory::new(&node.place).map_err(text)?;
    Ok(Faulty::new(folder, node.present.clone()))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Follows, again if the place fails while it takes over. Returns whether it has taken over.
fn follow_until(node: &Node, told: &Receiver<Told>) -> Result<bool, String> {
    let mut promote_after = Some(node.promote_after);
    loop {
        if let Some(leads) = follow(node, told, &mut promote_after)? {
            return Ok(leads);
        }
    }
}

/// Follows, and takes over after a silence. Returns whether it has; `None` if the place has failed
/// meanwhile.
fn follow(
    node: &Node,
    told: &Receiver<Told>,
    promote_after: &mut Option<Duration>,
) -> Result<Option<bool>, String> {
    let standby = loop {
        let options = StandbyOptions::new().log(options());
        match Standby::follow(open_place(node)?, &node.dir, options) {
            Ok(standby) => break standby,
            Err(StandbyError::Nothing | StandbyError::Reach(ReachError::Place(_))) => {
                thread::sleep(LOOK);
            }
            // It was killed while it took over, and had led already.
            Err(StandbyError::Open(OpenError::Remote(error)))
                if matches!(error.downcast_ref(), Some(ReachError::Misuse(_))) =>
            {
                say(&Said::Led).map_err(text)?;
                return Ok(Some(false));
            }
            Err(error) => return Err(text(error)),
        }
    };
    say(&Said::Follows).map_err(text)?;
    let mut tables = None;
    let mut silence = Silence::after(standby.applied());
    for look in 0_u32.. {
        if let Some(failure) = standby.failure() {
            return Err(failure);
        }
        tables = tables.or_else(|| Tables::of(standby.database()).ok());
        match told.try_recv() {
            Ok(Told::Stay) => {
                *promote_after = None;
                say(&Said::Stays).map_err(text)?;
            }
            Ok(Told::Where) => tell_where(&standby, tables.as_ref())?,
            Ok(Told::Look(read)) => say(&Said::Refused(read)).map_err(text)?,
            Ok(Told::Stop | Told::Place(_)) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(Some(false)),
        }
        if let Some(tables) = tables.as_ref().filter(|_| look % SUM_EVERY == 0) {
            tables.db.read_view(|tx| tables.look(tx)).map_err(text)??;
        }
        let silent = silence.look(standby.applied());
        if promote_after.is_some_and(|most| silent >= most) {
            break;
        }
        thread::sleep(LOOK);
    }
    drop(tables);
    say(&Said::Promoting).map_err(text)?;
    match standby.promote() {
        Ok(promoted) => drop(promoted),
        Err(StandbyError::Reach(ReachError::Led { .. } | ReachError::Superseded { .. })) => {
            say(&Said::Led).map_err(text)?;
            return Ok(Some(false));
        }
        Err(StandbyError::Reach(ReachError::Place(_))) => return Ok(None),
        Err(error) => return Err(text(error)),
    }
    say(&Said::Promoted).map_err(text)?;
    Ok(Some(true))
}

/// Says where a standby is, if it stays there meanwhile.
fn tell_where(standby: &Standby, tables: Option<&Tables>) -> Result<(), String> {
    let Some(tables) = tables else { return Ok(()) };
    let (generation, at) = standby.applied();
    let (lasts, hash) = tables.db.read_view(|tx| tables.look(tx)).map_err(text)??;
    if standby.applied() == (generation, at) {
        say(&Said::At(generation, at, hash, lasts)).map_err(text)?;
    }
    Ok(())
}

/// Leads until another process does.
fn lead(node: &Node, told: &Receiver<Told>) -> Result<(), String> {
    let db = loop {
        let log = options().replicate(open_place(node)?);
        match Database::<Mvcc>::builder().open(&node.dir, log) {
            Ok(db) => break db,
            Err(OpenError::Led { .. } | OpenError::Diverged { .. }) => {
                return say(&Said::Led).map_err(text);
            }
            Err(OpenError::Remote(error)) => match error.downcast_ref() {
                // Another process has claimed after it.
                Some(ReachError::Superseded { .. }) => return say(&Said::Led).map_err(text),
                Some(ReachError::Place(_)) => thread::sleep(LOOK),
                _ => return Err(text(error)),
            },
            Err(error) => return Err(text(error)),
        }
    };
    let tables = Tables::of(&db).map_err(text)?;
    let ended = work(node, &tables, told);
    let is_fenced = db.log_failure().is_some();
    drop(tables);
    match ended {
        // A transaction that fails is the first to notice.
        _ if is_fenced => say(&Said::Fenced).map_err(text),
        Err(what) => Err(what),
        Ok(()) => {
            db.close().map_err(text)?;
            say(&Said::Stopped).map_err(text)
        }
    }
}

/// Runs transactions until the parent says stop, or one fails.
fn work(node: &Node, tables: &Tables, told: &Receiver<Told>) -> Result<(), String> {
    let db = &tables.db;
    tables.fill().map_err(text)?;
    let read = || db.with(replicated()).run(|tx| tables.look(tx));
    let (found, _) = read().map_err(text)??;
    let position = db.run_logged(|_| Ok(())).position().ok_or("a database without a log")?;
    say(&Said::Opened(position.generation, found.clone())).map_err(text)?;
    let (is_over, failure) = (AtomicBool::new(false), OnceLock::new());
    let is_to_end = || is_over.load(Ordering::Relaxed) || failure.get().is_some();
    thread::scope(|scope| {
        for worker in 0..node.workers as u64 {
            let (found, is_to_end, failure) = (&found, &is_to_end, &failure);
            scope.spawn(move || {
                if let Err(what) = transact(node, tables, (worker, found), is_to_end) {
                    failure.get_or_init(|| what);
                }
            });
        }
        while !is_to_end() {
            match told.recv_timeout(LOOK) {
                Ok(Told::Look(number)) => {
                    let said = match read() {
                        Ok(Ok((lasts, _))) => say(&Said::Saw(number, lasts)).map_err(text),
                        Ok(Err(what)) => Err(what),
                        Err(_) => say(&Said::Refused(number)).map_err(text),
                    };
                    if let Err(what) = said {
                        failure.get_or_init(|| what);
                    }
                }
                Ok(Told::Where | Told::Stay | Told::Place(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Told::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Runs the transactions of a worker, and says which are acknowledged.
fn transact(
    node: &Node,
    tables: &Tables,
    (worker, found): (u64, &Lasts),
    is_over: &dyn Fn() -> bool,
) -> Result<(), String> {
    let numbers = tables.db.sequence("numbers").map_err(text)?;
    let mut draws = fastrand::Rng::with_seed(node.seed.wrapping_mul(1_000_003) ^ worker);
    let last = found.get(&worker).copied().unwrap_or(0);
    for number in last + 1.. {
        if is_over() {
            break;
        }
        let drawn = tables.transact(&numbers, (worker, number), &mut draws).map_err(text)?;
        say(&Said::Done(worker, number, drawn)).map_err(text)?;
    }
    Ok(())
}
