//! A folder of a file system as a place: another disk, or one that other machines see, too.
//!
//! An object is a file whose path is its name. It is written below `.tmp` and synced; then `link`
//! gives it its name, which fails if the name is taken, and its folder is synced. So a file that
//! has a name has all its bytes, whatever crashes when.
//!
//! A name may be there before it is durable: the process that has made the link may have died
//! before the sync. So the folder is synced, and each folder above it is once, before "exists" is
//! answered and before the bytes of a read are returned.

#![forbid(unsafe_code)]

mod files;
mod syncs;
#[cfg(test)]
mod tests;

use crate::name::check_name;
use crate::place::{Created, LIST_MAX, Place, PlaceError};
use crate::random;
use files::{Files, RealFiles};
use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use syncs::Syncs;

/// The folder of files that have no name yet. No name of an object begins with a dot.
const TEMPORARY: &str = ".tmp";

/// The age at which a file without a name is removed. A process that is still writing it then gets
/// an error and writes it again.
const TEMPORARY_AGE: Duration = Duration::from_secs(3600);

/// A folder of a file system.
///
/// The folder may be on another disk, or on a file system that several machines have mounted. Its
/// `link` must fail if the name is taken, whichever machine has taken it, and its syncs must make
/// files and names durable; local file systems and NFS do that. Caches of NFS may show a new
/// object late, which a [`Place`] may do. On Windows names become durable when the system writes
/// them, so a power failure may lose what was acknowledged.
///
/// ```
/// use candide_reach::{Created, Directory, Place};
///
/// # let path = std::env::temp_dir().join(format!("candide-reach-doc-{}", std::process::id()));
/// let place = Directory::new(&path)?;
/// assert_eq!(place.create("notes/first", b"one")?, Created::New);
/// assert_eq!(place.create("notes/first", b"two")?, Created::Exists);
/// assert_eq!(place.read("notes/first")?, Some(b"one".to_vec()));
/// # std::fs::remove_dir_all(path).unwrap();
/// # Ok::<(), candide_reach::PlaceError>(())
/// ```
#[derive(Debug)]
pub struct Directory {
    files: Arc<dyn Files>,
    /// The folders that are known to be durable in those above them.
    durable: Mutex<HashSet<String>>,
    /// The syncs of the folders of new names.
    syncs: Mutex<HashMap<String, Arc<Syncs>>>,
}

impl Directory {
    /// Opens the folder at `path`, which is made if the one above it exists. Removes temporary
    /// files that are older than an hour.
    ///
    /// # Errors
    /// [`PlaceError::Refused`]: there is no folder above `path`, such as that of a disk that is not
    /// mounted; `path` is something else than a folder; the folder cannot be made or read.
    pub fn new(path: impl AsRef<Path>) -> Result<Directory, PlaceError> {
        let path = path.as_ref();
        let refuse = |what: &str| PlaceError::Refused(format!("{}: {what}", path.display()));
        let path = std::path::absolute(path).map_err(|error| refuse(&error.to_string()))?;
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(refuse("there is no folder in which it could be made"));
            }
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(refuse(&error.to_string()));
            }
            _ => {}
        }
        if !path.is_dir() {
            return Err(refuse("this is not a folder"));
        }
        if let Some(above) = path.parent().filter(|_| cfg!(not(windows))) {
            match std::fs::File::open(above).and_then(|above| above.sync_all()) {
                // A process that may not read the folder above has not made this one.
                Err(error) if error.kind() != ErrorKind::PermissionDenied => {
                    return Err(refuse(&error.to_string()));
                }
                _ => {}
            }
        }
        Directory::of(Arc::new(RealFiles { root: path }))
    }

    fn with(files: Arc<dyn Files>) -> Directory {
        let (durable, syncs) = Default::default();
        Directory { files, durable, syncs }
    }

    fn of(files: Arc<dyn Files>) -> Result<Directory, PlaceError> {
        let directory = Directory::with(files);
        directory.make_durable(TEMPORARY)?;
        directory.remove_old(TEMPORARY_AGE)?;
        Ok(directory)
    }

    /// Removes files without a name that have at least this age.
    fn remove_old(&self, age: Duration) -> Result<(), PlaceError> {
        for entry in self.files.entries(TEMPORARY).map_err(refused(TEMPORARY))? {
            let path = format!("{TEMPORARY}/{}", entry.name);
            // Another process may remove it meanwhile, or give it a name.
            if self.files.age(&path).is_ok_and(|found| found >= age) {
                let _ = self.files.remove(&path);
            }
        }
        Ok(())
    }

    /// Makes a folder, and those above it, unless they exist, and makes their names durable.
    fn make_durable(&self, folder: &str) -> Result<(), PlaceError> {
        for folder in folders_of(folder) {
            if self.known().contains(folder) {
                continue;
            }
            match self.files.make_folder(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(refused(folder)(error));
                }
                _ => {}
            }
            self.files.sync_folder(above(folder)).map_err(refused(folder))?;
            self.known().insert(folder.to_string());
        }
        Ok(())
    }

    /// Makes the name of an object that was found durable.
    fn believe(&self, name: &str) -> io::Result<()> {
        let folder = above(name);
        self.files.sync_folder(folder)?;
        for folder in folders_of(folder) {
            if !self.known().contains(folder) {
                self.files.sync_folder(above(folder))?;
                self.known().insert(folder.to_string());
            }
        }
        Ok(())
    }

    /// Makes the names in a folder durable. Several calls may share the sync.
    fn sync(&self, folder: &str) -> io::Result<()> {
        let syncs = {
            let mut all = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(folder.to_string()).or_default())
        };
        syncs.share(|| self.files.sync_folder(folder))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers that a name is taken, once that is durable.
    fn exists(&self, name: &str) -> Result<Created, PlaceError> {
        self.believe(name).map_err(unknown(name))?;
        Ok(Created::Exists)
    }

    /// Writes a file without a name, and syncs it.
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.files.make_file(path)?;
        file.write(bytes)?;
        file.sync()
    }

    fn link(&self, temporary: &str, name: &str) -> Result<Created, PlaceError> {
        match self.files.link(temporary, name) {
            Ok(()) => {
                self.sync(above(name)).map_err(unknown(name))?;
                Ok(Created::New)
            }
            Err(error) => match error.kind() {
                ErrorKind::AlreadyExists => self.exists(name),
                ErrorKind::PermissionDenied
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::StorageFull
                | ErrorKind::QuotaExceeded
                | ErrorKind::Unsupported
                | ErrorKind::CrossesDevices => Err(refused(name)(error)),
                // A request over a network may have taken effect.
                _ => Err(unknown(name)(error)),
            },
        }
    }

    /// Adds names below a folder in ascending order, until there are enough.
    fn collect(
        &self,
        folder: &str,
        range: &Range<'_>,
        names: &mut Vec<String>,
    ) -> Result<(), PlaceError> {
        let mut entries = match self.files.entries(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(refused(folder)(error)),
        };
        entries.retain(|entry| !entry.name.starts_with('.'));
        // Names of objects are compared with the `/` behind a folder.
        let key = |entry: &files::Entry| format!("{}{}", entry.name, slash(entry.is_folder));
        entries.sort_by_cached_key(key);
        for entry in entries {
            let gap = slash(!folder.is_empty());
            let path = format!("{folder}{gap}{}", entry.name);
            if names.len() == LIST_MAX {
                break;
            }
            if entry.is_folder && range.may_meet(&format!("{path}/")) {
                self.collect(&path, range, names)?;
            } else if !entry.is_folder && range.contains(&path) {
                names.push(path);
            }
        }
        Ok(())
    }
}

/// The names that begin with `prefix` and come after `after`.
struct Range<'a> {
    prefix: &'a str,
    after: &'a str,
}

impl Range<'_> {
    fn contains(&self, name: &str) -> bool {
        name.starts_with(self.prefix) && name > self.after
    }

    /// Returns whether a name that begins with this may be in the range.
    fn may_meet(&self, begin: &str) -> bool {
        let is_of_prefix = begin.starts_with(self.prefix) || self.prefix.starts_with(begin);
        is_of_prefix && (begin > self.after || self.after.starts_with(begin))
    }
}

impl Place for Directory {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        check_name(name).map_err(PlaceError::Refused)?;
        self.make_durable(above(name))?;
        if self.files.exists(name).map_err(refused(name))? {
            return self.exists(name);
        }
        let temporary = format!("{TEMPORARY}/{}-{:016x}", std::process::id(), random::number());
        let created = match self.write(&temporary, bytes) {
            Ok(()) => self.link(&temporary, name),
            Err(error) => Err(refused(name)(error)),
        };
        // What stays after an error is removed when it is old.
        let _ = self.files.remove(&temporary);
        created
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        check_name(name).map_err(PlaceError::Refused)?;
        match self.files.read(name) {
            Ok(bytes) => {
                self.believe(name).map_err(unknown(name))?;
                Ok(Some(bytes))
            }
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Ok(None),
                ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
                    Err(PlaceError::Broken(format!("{name}: {error}")))
                }
                ErrorKind::PermissionDenied => Err(refused(name)(error)),
                _ => Err(unknown(name)(error)),
            },
        }
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        if !prefix.is_empty() {
            check_name(prefix.strip_suffix('/').unwrap_or(prefix)).map_err(PlaceError::Refused)?;
        }
        let mut names = Vec::new();
        self.collect(above(prefix), &Range { prefix, after }, &mut names)?;
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        check_name(name).map_err(PlaceError::Refused)?;
        match self.files.remove(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(refused(name)(error)),
            removed => removed.map_err(unknown(name)),
        }
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        Ok(Arc::new(Directory::with(Arc::clone(&self.files))))
    }

    fn path(&self) -> Option<&Path> {
        self.files.root()
    }
}

/// Returns the folder of a path; `""` is the folder of all.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the folders of which a path consists, the highest first; none for `""`.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter(|end| *end > 0).map(|end| &path[..end])
}

fn slash(is_folder: bool) -> &'static str {
    if is_folder { "/" } else { "" }
}

fn refused(path: &str) -> impl FnOnce(io::Error) -> PlaceError + '_ {
    move |error| PlaceError::Refused(format!("{path}: {error}"))
}

fn unknown(path: &str) -> impl FnOnce(io::Error) -> PlaceError + '_ {
    move |error| PlaceError::Unknown(format!("{path}: {error}"))
}
