//! The files of databases that are measured with a log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use candide::{Level, LogOptions};

use crate::failure::Failure;

/// The place of the files of all databases that a command measures, and the level for which their
/// transactions wait.
#[derive(Debug)]
pub struct Files {
    place: PathBuf,
    /// Whether the place did not exist before.
    is_new: bool,
    level: Level,
    keeps: bool,
    databases: AtomicU32,
}

impl Files {
    /// Prepares the directory `place`, which must be empty or not exist. Each database will have a
    /// separate directory below it, which is removed with the database unless `keeps` is set. While
    /// they are measured, transactions wait for `level`.
    ///
    /// # Errors
    /// [`Failure::Usage`]: the place is in use for something else, or cannot be written.
    pub fn prepare(place: &Path, level: Level, keeps: bool) -> Result<Files, Failure> {
        let shown = place.display();
        let what_is_right = "name an empty directory, or one that does not exist: each measured \
                             database gets a directory of its own in it";
        let refuse = |what: String| Err(Failure::Usage(format!("{shown} {what}; {what_is_right}")));
        let entries = match fs::read_dir(place) {
            Ok(entries) => Some(entries.filter_map(Result::ok).map(|entry| entry.file_name())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return refuse(format!("cannot be used: {error}")),
        };
        let is_new = entries.is_none();
        let mut names: Vec<_> = entries.into_iter().flatten().collect();
        names.sort_unstable();
        if names.iter().any(|name| name == "MANIFEST") {
            return refuse("is a database".to_string());
        }
        if let Some(name) = names.first() {
            let name = name.to_string_lossy();
            return refuse(format!("is not empty: it contains {name}"));
        }
        let probe = place.join("probe");
        let tried = fs::create_dir_all(&probe).and_then(|()| fs::remove_dir(&probe));
        if let Err(error) = tried {
            return refuse(format!("cannot be written: {error}"));
        }
        Ok(Files { place: place.to_path_buf(), is_new, level, keeps, databases: AtomicU32::new(0) })
    }

    /// Returns the level for which transactions wait while they are measured.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the directory for the next database, which runs `workload` under `protocol`.
    pub(crate) fn next(&self, workload: &str, protocol: &str) -> Directory {
        let number = self.databases.fetch_add(1, Ordering::Relaxed) + 1;
        let plain = |name: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric();
            name.replace(|letter| !is_plain(letter), "-")
        };
        let name = format!("{number:03}-{}-{}", plain(workload), plain(protocol));
        Directory { path: self.place.join(name), level: self.level, is_kept: self.keeps }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.is_new && !self.keeps {
            // The directory stays if something else is in it by now.
            let _ = fs::remove_dir(&self.place);
        }
    }
}

/// The directory of one database. When this value is dropped, after the database, the directory is
/// removed unless it is to be kept.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    level: Level,
    is_kept: bool,
}

/// The number of times that the removal of a directory is tried. The logger of a database may end a
/// moment after the database.
const REMOVALS_MAX: u32 = 100;

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the level for which transactions wait while they are measured.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the options with which the database is opened: rows are loaded without waiting.
    pub(crate) fn options(&self) -> LogOptions {
        LogOptions::new().acknowledge(Level::Memory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

/// Returns the name of a level, as `--ack` takes it.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Memory => "memory",
        Level::Written => "written",
        Level::Durable => "durable",
        Level::Replicated => "replicated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_directories_are_removed_unless_they_are_kept() {
        let place = std::env::temp_dir().join(format!("candide-files-{}", std::process::id()));
        let prepare = |keeps| Files::prepare(&place, Level::Memory, keeps).unwrap();
        let fill = |directory: &Directory| {
            fs::create_dir(directory.path()).unwrap();
            fs::write(directory.path().join("MANIFEST"), "").unwrap();
        };
        let files = prepare(false);
        let directory = files.next("ycsb-a", "mixed:a=swiss");
        assert_eq!(directory.path(), place.join("001-ycsb-a-mixed-a-swiss"));
        fill(&directory);
        drop(directory);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        drop(files);
        assert!(!place.exists(), "it was not there before");
        let files = prepare(true);
        fill(&files.next("ycsb-a", "occ"));
        drop(files);
        let refused = |place: &Path, words: &str| {
            let failure = Files::prepare(place, Level::Memory, false).unwrap_err();
            assert_eq!(failure.exit_status(), 2);
            assert!(failure.to_string().contains(words), "{failure}");
            assert!(failure.to_string().contains("name an empty directory"), "{failure}");
        };
        refused(&place, "is not empty: it contains 001-ycsb-a-occ");
        refused(&place.join("001-ycsb-a-occ"), "is a database");
        refused(&place.join("001-ycsb-a-occ/MANIFEST"), "cannot be used: ");
        fs::remove_dir_all(&place).unwrap();
    }
}
