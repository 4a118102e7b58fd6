//! Which database's log a directory has.

#![forbid(unsafe_code)]

use super::error::StandbyError;
use super::note::Noted;
use candide::replica::ChangedElsewhere;
use candide::{Database, LogOptions, Mvcc, OpenError};
use candide_log::disk::{Disk, RealDisk};
use candide_log::format::Uuid;
use candide_log::tools::{Item, inspect};
use std::ops::ControlFlow;
use std::path::Path;

/// Returns whether the database in the directory `dir`, which is not in use, is the one with this
/// identity, or a standby of it.
///
/// # Errors
/// [`StandbyError::Open`]: the directory is in use, has no database, or cannot be read.
pub fn belongs_to(dir: impl AsRef<Path>, database: Uuid) -> Result<bool, StandbyError> {
    let dir = dir.as_ref();
    let disk = RealDisk::open(dir)
        .map_err(|source| OpenError::Io { file: dir.display().to_string(), source })?;
    let mut own = None;
    inspect(&disk as &dyn Disk, &mut |item| {
        if let Item::Manifest(manifest) = item {
            own = Some(manifest.uuid);
        }
        ControlFlow::Break(())
    })?;
    if own == Some(database) {
        return Ok(true);
    }
    let note = match Database::<Mvcc>::builder().follow(dir, LogOptions::new()) {
        Ok(replica) => replica.last_note(),
        // Another error says that it is no standby.
        Err(OpenError::Target(error)) => {
            error.downcast_ref().and_then(|error: &ChangedElsewhere| error.note)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(note.is_some_and(|note| Noted::of(&note).database == database))
}
