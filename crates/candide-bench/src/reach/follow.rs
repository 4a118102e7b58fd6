//! Databases that are made from a place, and that follow it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use candide_harness::check::Finding;
use candide_harness::{Failure, interrupt, output};
use candide_log::disk::RealDisk;
use candide_reach::tools::{Generation, Status, status};
use candide_reach::{
    Patience, Promoted, Restored, Standby, StandbyError, StandbyOptions, belongs_to,
    restore as restore_from,
};

use super::look::hexadecimal;
use super::paths;
use super::silence::Silence;
use crate::ending::Ending;

/// How often a standby is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often a standby that takes over and lags tells how far it has come.
const TOLD: Duration = Duration::from_secs(1);

/// The looks in a row with an error after which a standby is not waited for.
const TROUBLES: u32 = 100;
/// The generations of which one has the last block, unless none of them has written anything.
const GENERATIONS: usize = 100;

const GOOD: Ending = Ending { finding: Finding::Good, early: false };

/// Makes a database that has all that the place has.
pub(super) fn restore(path: &Path, dir: &Path) -> Result<Ending, Failure> {
    paths::check_apart(path, dir)?;
    let place = paths::place(path)?;
    paths::check_new(dir)?;
    let existed = dir.exists();
    let restored = restore_from(place, dir, StandbyOptions::new());
    let Restored { database, position } = restored.map_err(|error| {
        let _ = fs::remove_dir_all(dir);
        if existed {
            let _ = fs::create_dir(dir);
        }
        paths::failed_standby(path, dir, &error)
    })?;
    output::print(|out| {
        writeln!(
            out,
            "{} has database {} up to object {} of generation {}",
            dir.display(),
            hexadecimal(&database),
            position.last.place,
            position.last.generation
        )
    })?;
    Ok(GOOD)
}

/// Sets a database aside, and makes one in its stead that follows the place.
pub(super) fn rejoin(dir: &Path, path: &Path) -> Result<Ending, Failure> {
    paths::check_apart(path, dir)?;
    paths::check_database(dir)?;
    let generations = check_same(dir, path)?;
    let place = paths::place(path)?;
    let aside = set_aside(dir)?;
    let followed = Standby::follow(place, dir, StandbyOptions::new());
    let caught_up = followed.and_then(|standby| catch_up(&standby, last_block(&generations)));
    let (generation, at) = match caught_up {
        Ok(applied) => applied,
        Err(error) => {
            let _ = fs::remove_dir_all(dir);
            fs::rename(&aside, dir)?;
            return Err(paths::failed_standby(path, dir, &error));
        }
    };
    output::print(|out| {
        writeln!(
            out,
            "{} is set aside as {}\n{} follows, from object {at} of generation {generation} on; \
             `candide reach standby` and programs go on",
            dir.display(),
            aside.display(),
            dir.display()
        )
    })?;
    Ok(GOOD)
}

/// Returns the newest generations of a place, or an error unless the database in a directory is the
/// one whose log is there, or a standby of it.
fn check_same(dir: &Path, path: &Path) -> Result<Vec<Generation>, Failure> {
    let newest = status(Arc::new(paths::place(path)?), GENERATIONS, Patience::default());
    let Status { database, generations } =
        newest.map_err(|error| paths::failed(path, &error))?.ok_or_else(|| paths::empty(path))?;
    let belongs = belongs_to(dir, database);
    if belongs.map_err(|error| paths::failed_standby(path, dir, &error))? {
        return Ok(generations);
    }
    Err(Failure::Usage(format!(
        "{} is another database than that whose log is in {}",
        dir.display(),
        path.display()
    )))
}

/// Returns the generation and the place of the last block that a place has.
fn last_block(generations: &[Generation]) -> (u64, u64) {
    let block = |generation: &Generation| {
        let (at, is_end, _) = generation.last?;
        Some((generation.number, at - u64::from(is_end))).filter(|block| block.1 > 0)
    };
    generations.iter().find_map(block).unwrap_or((0, 0))
}

/// Waits until a standby has a block. Returns where it is then.
fn catch_up(standby: &Standby, block: (u64, u64)) -> Result<(u64, u64), StandbyError> {
    let mut troubles = 0;
    while standby.applied() < block {
        if let Some(failure) = standby.failure() {
            return Err(StandbyError::Stopped(failure));
        }
        match standby.trouble() {
            Some(what) if troubles == TROUBLES => return Err(StandbyError::Stopped(what)),
            Some(_) => troubles += 1,
            None => troubles = 0,
        }
        thread::sleep(LOOK);
    }
    Ok(standby.applied())
}

/// Renames the directory of a database that is not in use. Returns its new name.
fn set_aside(dir: &Path) -> Result<PathBuf, Failure> {
    let disk = RealDisk::open(dir)?;
    let lock = candide_log::disk::Disk::lock(&disk);
    let _lock = lock.map_err(|error| {
        Failure::Usage(format!("{}: {error}; close the database first", dir.display()))
    })?;
    let mut number = 1;
    loop {
        let mut name = std::path::absolute(dir)?.into_os_string();
        name.push(format!(".aside-{number}"));
        let aside = PathBuf::from(name);
        if !aside.exists() {
            fs::rename(dir, &aside)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Follows a place until Ctrl-C, or until the standby has taken over.
pub(super) fn standby(
    path: &Path,
    dir: &Path,
    promote_after: Option<Duration>,
) -> Result<Ending, Failure> {
    paths::check_apart(path, dir)?;
    let place = paths::place(path)?;
    if paths::check_database(dir).is_ok() {
        check_same(dir, path)?;
    }
    interrupt::listen()?;
    let failed = |error| paths::failed_standby(path, dir, &error);
    let standby = Standby::follow(place, dir, StandbyOptions::new()).map_err(failed)?;
    let (generation, at) = standby.applied();
    let begun =
        format!("{} follows, from object {at} of generation {generation} on", dir.display());
    output::print(|out| writeln!(out, "{begun}"))?;
    let mut silence = Silence::after(standby.applied());
    let mut told = None;
    loop {
        if interrupt::is_pressed() {
            return Ok(Ending { finding: Finding::Good, early: true });
        }
        if let Some(failure) = standby.failure() {
            let what = format!("{}: the standby has stopped: {failure}", dir.display());
            return Err(Failure::Run(what.into()));
        }
        let trouble = standby.trouble();
        if trouble != told {
            match &trouble {
                Some(what) => output::say(&format!("{what}; it is tried again")),
                None => output::say("the place answers again"),
            }
            told = trouble;
        }
        let silent = silence.look(standby.applied());
        if promote_after.is_some_and(|most| silent >= most) {
            break;
        }
        thread::sleep(LOOK);
    }
    let (generation, at) = standby.applied();
    let since = promote_after.unwrap_or_default();
    let title = format!(
        "nothing new for {} after object {at} of generation {generation}: taking over",
        humantime::format_duration(since)
    );
    output::print(|out| writeln!(out, "{title}"))?;
    drop(promote(standby)?.map_err(failed)?);
    output::print(|out| {
        writeln!(out, "{} has taken over; open it with this place", dir.display())
    })?;
    Ok(GOOD)
}

/// Lets a standby take over. Prints how far it has come, each second and at the end.
fn promote(standby: Standby) -> Result<Result<Promoted, StandbyError>, Failure> {
    let progress = standby.progress();
    let tell = || {
        let (generation, at) = progress.applied();
        output::print(|out| writeln!(out, "object {at} of generation {generation} is applied"))
    };
    thread::scope(|scope| {
        let promoting = scope.spawn(move || standby.promote());
        let mut told = Instant::now();
        while !promoting.is_finished() {
            thread::sleep(LOOK);
            if told.elapsed() >= TOLD {
                told = Instant::now();
                tell()?;
            }
        }
        tell()?;
        Ok(promoting.join().expect("a promotion does not panic"))
    })
}
