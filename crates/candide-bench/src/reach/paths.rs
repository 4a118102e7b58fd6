//! The directories that the arguments name: places, and those of databases.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use candide_harness::Failure;
use candide_reach::{Directory, PlaceError, ReachError, StandbyError};

/// The folder of a place that has its claims.
const CLAIMS: &str = "claim";
/// The file by which a database is told.
const MANIFEST: &str = "MANIFEST";

/// Opens the place of a log. A directory that is none stays as it is.
pub(super) fn place(path: &Path) -> Result<Directory, Failure> {
    let shown = path.display();
    let wrong = |what: &str| {
        let right = "name a directory with the log of a database";
        Err(Failure::Usage(format!("{shown}: {what}; {right}")))
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return wrong("there is no such directory");
        }
        Err(error) => return wrong(&error.to_string()),
        Ok(found) if !found.is_dir() => return wrong("this is not a directory"),
        Ok(_) => {}
    }
    match fs::read_dir(path.join(CLAIMS)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return match path.join(MANIFEST).exists() {
                true => wrong("this is the directory of a database, and no place"),
                false => wrong("no database has its log there"),
            };
        }
        Err(error) => return wrong(&error.to_string()),
        Ok(_) => {}
    }
    Directory::new(path).map_err(|error| failed(path, &error.into()))
}

/// Returns an error unless a place and the directory of a database are apart: neither is the other
/// one, or in it.
pub(super) fn check_apart(place: &Path, dir: &Path) -> Result<(), Failure> {
    let (one, other) = (absolute(place)?, absolute(dir)?);
    if one.starts_with(&other) || other.starts_with(&one) {
        return Err(Failure::Usage(format!(
            "{} and {} are in one another; a place that is to outlive the machine of the database \
             is elsewhere",
            place.display(),
            dir.display()
        )));
    }
    Ok(())
}

/// Returns the absolute path of a directory that may not exist, without links.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut known = path.as_path();
    loop {
        match (fs::canonicalize(known), known.parent(), known.file_name()) {
            (Ok(found), _, _) => {
                return Ok(missing.iter().rev().fold(found, |at, name| at.join(name)));
            }
            (Err(_), Some(above), Some(name)) => {
                missing.push(name.to_os_string());
                known = above;
            }
            (Err(error), _, _) => return Err(error.into()),
        }
    }
}

/// Returns an error unless a directory is empty or does not exist.
pub(super) fn check_new(path: &Path) -> Result<(), Failure> {
    let refuse = |what: String| {
        let right = "name an empty directory, or one that does not exist";
        Err(Failure::Usage(format!("{} {what}; {right}", path.display())))
    };
    match fs::read_dir(path).map(|mut entries| entries.next().transpose()) {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(entry))) => {
            refuse(format!("is not empty: it contains {}", entry.file_name().to_string_lossy()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(Err(error)) | Err(error) => refuse(format!("cannot be used: {error}")),
    }
}

/// Returns an error unless a directory has a database.
pub(super) fn check_database(path: &Path) -> Result<(), Failure> {
    if path.join(MANIFEST).exists() {
        return Ok(());
    }
    let what = match path.join(CLAIMS).exists() {
        true => "is a place, and has no database",
        false => "has no database",
    };
    Err(Failure::Usage(format!("{} {what}; name the directory of a database", path.display())))
}

/// Returns the failure of a tool at a place that has no claim.
pub(super) fn empty(path: &Path) -> Failure {
    Failure::Usage(format!(
        "{} is empty; open the database whose log it is to have with this place",
        path.display()
    ))
}

/// Returns the failure of a tool at a place.
pub(super) fn failed(place: &Path, error: &ReachError) -> Failure {
    let what = format!("{}: {error}", place.display());
    match error {
        ReachError::Place(PlaceError::Refused(_)) => Failure::Usage(what),
        _ => Failure::Run(what.into()),
    }
}

/// Returns the failure of a standby in a directory.
pub(super) fn failed_standby(place: &Path, dir: &Path, error: &StandbyError) -> Failure {
    match error {
        StandbyError::Reach(error) => failed(place, error),
        StandbyError::Nothing => Failure::Usage(format!("{}: {error}", place.display())),
        error => Failure::Run(format!("{}: {error}", dir.display()).into()),
    }
}
