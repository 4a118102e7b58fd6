//! Looking at a place.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use candide_harness::check::Finding;
use candide_harness::results::grouped;
use candide_harness::{Failure, output, table};
use candide_reach::tools::{self, Generation, Status, Verified};
use candide_reach::{Directory, Patience, Place};

use super::paths;
use crate::ending::Ending;

/// Prints who leads, the newest generations, and what they have.
pub(super) fn status(path: &Path, most: usize) -> Result<Ending, Failure> {
    let place = shared(path)?;
    let status = tools::status(place, most, Patience::default());
    let Status { database, generations } =
        status.map_err(|error| paths::failed(path, &error))?.ok_or_else(|| paths::empty(path))?;
    let header = [
        "generation",
        "claim",
        "claimed",
        "last object",
        "made",
        "floors",
        "snapshot up to",
        "objects",
        "bytes",
    ];
    let mut shown = table(&header, 7..9);
    let (mut objects, mut bytes) = (0, 0);
    for generation in &generations {
        let size = size_of_generation(path, generation.number)?;
        (objects, bytes) = (objects + size.0, bytes + size.1);
        let (last, made) = match generation.last {
            Some((at, true, time)) => (format!("{at}, its end"), moment(time)),
            Some((at, false, time)) => (at.to_string(), moment(time)),
            None => ("none".to_string(), String::new()),
        };
        let (floors, floor) = match generation.floor {
            Some((number, at)) => (number.to_string(), format!("object {at}")),
            None => ("0".to_string(), String::new()),
        };
        shown.add_row([
            generation.number.to_string(),
            format!("{:016x}", generation.claimant),
            moment(generation.claimed),
            last,
            made,
            floors,
            floor,
            number(size.0),
            number(size.1),
        ]);
    }
    output::print(|out| {
        writeln!(out, "{} has the log of database {}", path.display(), hexadecimal(&database))?;
        if let Some(newest) = generations.first() {
            writeln!(out, "{}", leads(newest))?;
        }
        let counted = generations.len();
        writeln!(
            out,
            "{} objects of {} bytes in the {counted} newest generations\n\n{shown}",
            number(objects),
            number(bytes)
        )
    })?;
    Ok(Ending { finding: Finding::Good, early: false })
}

/// Says who leads, and when the place has heard of it.
fn leads(newest: &Generation) -> String {
    let Generation { number, claimant, claimed, last, .. } = newest;
    let claim = format!("generation {number} is led by claim {claimant:016x}");
    match last {
        Some((_, true, _)) => format!("{claim}, and is ended: a claim is under way"),
        Some((at, false, time)) => {
            format!("{claim}; its last object, {at}, was made {} ago", ago(*time))
        }
        None => format!("{claim}, which was made {} ago and has written nothing", ago(*claimed)),
    }
}

/// Checks every object, the log from its beginning to its end, and the newest snapshot.
pub(super) fn verify(path: &Path) -> Result<Ending, Failure> {
    let place = shared(path)?;
    let verified = tools::verify(place, Patience::default());
    let Verified { objects, bytes, last, faults } =
        verified.map_err(|error| paths::failed(path, &error))?;
    if !faults.is_empty() {
        for (name, what) in &faults {
            // Some errors begin with the name.
            let what = what.strip_prefix(&format!("{name} ")).unwrap_or(what);
            output::say(&format!("FAILED: {}: {name}: {what}", path.display()));
        }
        return Ok(Ending { finding: Finding::Bad, early: false });
    }
    if objects == 0 {
        return Err(paths::empty(path));
    }
    output::print(|out| {
        writeln!(
            out,
            "{} is sound, up to object {} of generation {}: {} objects of {} bytes",
            path.display(),
            last.place,
            last.generation,
            number(objects),
            number(bytes)
        )
    })?;
    Ok(Ending { finding: Finding::Good, early: false })
}

fn shared(path: &Path) -> Result<Arc<dyn Place>, Failure> {
    paths::place(path).map(|place: Directory| -> Arc<dyn Place> { Arc::new(place) })
}

/// Returns the number of objects of a generation, and their bytes, as the files are now.
fn size_of_generation(place: &Path, generation: u64) -> Result<(u64, u64), Failure> {
    let mut sum = (0, 0);
    for kind in ["claim", "log", "floor", "snapshot"] {
        add_size(&place.join(kind).join(format!("{generation:012}")), &mut sum)?;
    }
    Ok(sum)
}

/// Adds the files of a path. What is deleted meanwhile does not count.
fn add_size(path: &Path, sum: &mut (u64, u64)) -> Result<(), Failure> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if !found.is_dir() {
        (sum.0, sum.1) = (sum.0 + 1, sum.1 + found.len());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        add_size(&entry?.path(), sum)?;
    }
    Ok(())
}

fn number(number: u64) -> String {
    grouped(number as f64)
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Shows a time in milliseconds since 1970.
fn moment(millis: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    // The text of a later year is refused.
    let time = time.filter(|_| millis < 253_402_300_800_000).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Returns how long ago a time is, by the clock of this machine.
fn ago(millis: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let passed = now.saturating_sub(Duration::from_millis(millis));
    format!("{:.1} s", passed.as_secs_f64())
}
