//! Databases in files that are not in use: looking at them, checking, copying and repairing them,
//! and measuring how fast they are recovered.

// Layers, lowest first: inspect, contents, load, recovery.
mod contents;
mod inspect;
mod load;
mod recovery;

pub use candide_log::text::TextFormat;
pub use contents::{dump, get, tables};
pub use inspect::{From, Inspection, inspect};
pub use load::{Loading, load};
pub use recovery::{RecoveryOrder, measure_recovery};

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candide::OpenError;
use candide_log::StoreError;
use candide_log::disk::{Disk, RealDisk};
use candide_log::tools::{self, Repaired, Until, Verified};
use comfy_table::Table;

use crate::failure::Failure;
use crate::output;
use crate::progress::{self, Agenda};
use crate::results::{Finding, grouped};
use crate::show::table;

/// Opens the directory of a database.
fn directory(place: &Path) -> Result<RealDisk, Failure> {
    let shown = place.display();
    let disk = RealDisk::open(place).map_err(|error| {
        let what = if error.kind() == ErrorKind::NotFound {
            "there is no such directory".to_string()
        } else {
            error.to_string()
        };
        Failure::Usage(format!("{shown}: {what}; name the directory of a database"))
    })?;
    if let Ok(0) = disk.list().map(|files| files.iter().filter(|name| *name != "LOCK").count()) {
        return Err(Failure::Usage(format!("{shown} is empty; name the directory of a database")));
    }
    Ok(disk)
}

/// Prepares the directory of a copy, which must be empty or not exist.
fn new_directory(place: &Path) -> Result<Arc<dyn Disk>, Failure> {
    let refuse = |what: String| {
        let shown = place.display();
        let right = "name an empty directory, or one that does not exist";
        Err(Failure::Usage(format!("{shown} {what}; {right}")))
    };
    match fs::read_dir(place).map(|mut entries| entries.next().transpose()) {
        Ok(Ok(Some(entry))) => {
            let name = entry.file_name();
            return refuse(format!("is not empty: it contains {}", name.to_string_lossy()));
        }
        Ok(Err(error)) => return refuse(format!("cannot be used: {error}")),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return refuse(format!("cannot be used: {error}"));
        }
        _ => {}
    }
    match RealDisk::create(place) {
        Ok(disk) => Ok(Arc::new(disk)),
        Err(error) => refuse(format!("cannot be made: {error}")),
    }
}

/// Returns the failure of a tool. If there is no database, the arguments are at fault.
fn failed(place: &Path, error: OpenError) -> Failure {
    match error {
        OpenError::NotADatabase { .. } => Failure::Usage(format!("{}: {error}", place.display())),
        error => Failure::Run(format!("{}: {error}", place.display()).into()),
    }
}

fn failed_copy(place: &Path, error: StoreError) -> Failure {
    match error {
        StoreError::Damaged(error) => failed(place, error),
        error => Failure::Run(format!("{}: {error}", place.display()).into()),
    }
}

/// Does `work`, and draws the elapsed time meanwhile.
fn with_line<T: Send>(title: &str, place: &Path, work: impl FnOnce() -> T + Send) -> T {
    let title = format!("{title} {},", place.display());
    progress::with_line(&Agenda::new(1, Duration::ZERO), &title, None, work)
}

/// The reassurance that is printed with the damage of MANIFEST or of its copy.
const STANDS_IN: &str =
    "the other of MANIFEST and MANIFEST.copy is whole, and the next opening writes both anew";

/// Checks every checksum of a database, and that its log can be replayed. Prints the contents, or
/// the damage.
///
/// # Errors
/// The directory contains no database, the database is in use, or a file cannot be read.
pub fn verify(place: &Path) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let verified = match with_line("verifying", place, || tools::verify(&disk)) {
        Ok(verified) => verified,
        Err(error @ (OpenError::Corrupt { .. } | OpenError::Format { .. })) => {
            Verified { damage: vec![error], ..Verified::default() }
        }
        Err(error) => return Err(failed(place, error)),
    };
    if !verified.damage.is_empty() {
        for damage in &verified.damage {
            output::say(&format!("FAILED: {}: {damage}", place.display()));
        }
        return Ok(Finding::Bad);
    }
    let number = |number: u64| grouped(number as f64);
    output::print(|out| {
        writeln!(
            out,
            "{} is sound: {} tables with {} rows, up to cut {} of generation {}\n\
             checkpoint: {} bytes\nlog: {} bytes in {} blocks, {} commit records, {} of them dropped",
            place.display(),
            number(verified.tables),
            number(verified.rows),
            verified.cut,
            verified.generation,
            number(verified.checkpoint_bytes),
            number(verified.log_bytes),
            number(verified.blocks),
            number(verified.records + verified.dropped),
            number(verified.dropped),
        )?;
        match &verified.manifest_damage {
            Some(OpenError::Corrupt { file, offset, what }) => {
                writeln!(out, "{file} is damaged at byte {offset}: {what}; {STANDS_IN}")
            }
            Some(damage) => writeln!(out, "{damage}; {STANDS_IN}"),
            None => Ok(()),
        }
    })?;
    Ok(Finding::Good)
}

/// Prints what takes how much room in a database, by table and column group.
///
/// # Errors
/// The directory contains no database, the database is in use, or a file cannot be read or is
/// damaged.
pub fn stats(place: &Path) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let stats = with_line("reading", place, || tools::stats(&disk))
        .map_err(|error| failed(place, error))?;
    let number = |number: u64| grouped(number as f64);
    let header = [
        "table",
        "rows in checkpoint",
        "bytes in checkpoint",
        "changes in log",
        "bytes of keys in log",
        "bytes of words in log",
    ];
    let mut tables: Table = table(&header, 1..6);
    for table in &stats.tables {
        tables.add_row([
            table.name.clone(),
            number(table.rows),
            number(table.row_bytes),
            number(table.changes),
            number(table.key_bytes),
            number(table.groups.iter().map(|group| group.change_bytes).sum()),
        ]);
        for group in table.groups.iter().filter(|_| table.groups.len() > 1) {
            tables.add_row([
                format!("  {}", group.name),
                String::new(),
                number(table.rows * group.bytes_per_row),
                String::new(),
                String::new(),
                number(group.change_bytes),
            ]);
        }
    }
    output::print(|out| {
        writeln!(out, "{tables}\n")?;
        writeln!(out, "checkpoint: {} bytes", number(stats.checkpoint_bytes))?;
        writeln!(
            out,
            "log: {} segments of {} bytes; in them {} blocks of {} bytes, {} of them padding",
            number(stats.segments),
            number(stats.segment_bytes),
            number(stats.blocks),
            number(stats.block_bytes),
            number(stats.padding_bytes),
        )?;
        writeln!(
            out,
            "{} commit records, {} bytes of their heads",
            number(stats.records),
            number(stats.head_bytes)
        )
    })?;
    Ok(Finding::Good)
}

/// Makes a copy of a database that ends before the first damage, or at a cut. Prints the contents
/// of the copy, and the commits that the copy lacks.
///
/// # Errors
/// The directory contains no database, the database is in use, the other directory is not empty, a
/// file cannot be read or written, or the damaged place cannot be left out.
pub fn repair(place: &Path, to: &Path, until: Option<(u64, u64)>) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let copy = new_directory(to)?;
    let until = until.map(|(generation, cut)| Until { generation, cut });
    let repaired = with_line("repairing", place, || tools::repair(&disk, copy, until))
        .map_err(|error| failed_copy(place, error))?;
    let Repaired { rows, generation, cut, damage, lost } = repaired;
    let number = |number: u64| grouped(number as f64);
    output::print(|out| {
        writeln!(
            out,
            "{} has {} rows, up to cut {cut} of generation {generation}",
            to.display(),
            number(rows)
        )?;
        match &damage {
            Some(OpenError::Corrupt { file, offset, what }) => {
                writeln!(out, "it ends before the damage of {file} at byte {offset}: {what}")?;
            }
            Some(damage) => writeln!(out, "it ends before the damage: {damage}")?,
            None if until.is_some() => writeln!(out, "nothing before that cut is damaged")?,
            None => writeln!(out, "nothing is damaged")?,
        }
        let records: u64 = lost.iter().map(|block| block.records).sum();
        writeln!(
            out,
            "{} readable commit records, in {} blocks, are not in the copy",
            number(records),
            number(lost.len() as u64)
        )?;
        for block in &lost {
            writeln!(
                out,
                "  {} at byte {}: {} records, up to cut {} of generation {}",
                block.file,
                block.offset,
                number(block.records),
                block.cut,
                block.generation
            )?;
        }
        Ok(())
    })?;
    Ok(Finding::Good)
}

/// Copies a database that is not in use. The copy is read back and checked.
///
/// # Errors
/// The directory contains no database, the database is in use or damaged, the other directory is
/// not empty, or a file cannot be read or written.
pub fn backup(place: &Path, to: &Path) -> Result<Finding, Failure> {
    let disk = directory(place)?;
    let copy = new_directory(to)?;
    let made = with_line("copying", place, || tools::backup(&disk, copy))
        .map_err(|error| failed_copy(place, error))?;
    output::print(|out| {
        writeln!(
            out,
            "{} is a copy of {}, up to cut {} of generation {}: {} bytes",
            to.display(),
            place.display(),
            made.cut,
            made.generation,
            grouped(made.bytes as f64)
        )
    })?;
    Ok(Finding::Good)
}
