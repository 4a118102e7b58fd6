//! Files in memory that know every state which a loss of power can leave.

use super::super::files::{Entry, Files, NewFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The number of a file, which all its names share.
type Inode = usize;

/// What is at a path: a folder or a file.
type Node = Option<Inode>;

#[derive(Debug, Default)]
struct Disk {
    /// All that running processes see.
    names: BTreeMap<String, Node>,
    /// What a loss of power leaves for sure. A name counts only if those of its folders do.
    durable: BTreeMap<String, Node>,
    /// Names that were made or removed since their folder was synced.
    pending: BTreeSet<String>,
    files: Vec<Contents>,
    /// The calls that have changed something, and the call from which on all fail.
    calls: usize,
    ends_at: Option<usize>,
}

#[derive(Debug, Default, Clone)]
struct Contents {
    bytes: Vec<u8>,
    is_synced: bool,
}

/// Files in memory. A clone is the same files, for another process.
#[derive(Debug, Clone, Default)]
pub struct SimFiles {
    disk: Arc<Mutex<Disk>>,
}

impl SimFiles {
    /// Returns files of which all calls fail from this one on.
    pub fn ending_at(call: usize) -> SimFiles {
        let files = SimFiles::default();
        files.disk().ends_at = Some(call);
        files
    }

    /// Returns the same files for processes that go on.
    pub fn continued(&self) -> SimFiles {
        let disk = self.disk();
        let (names, durable, pending) =
            (disk.names.clone(), disk.durable.clone(), disk.pending.clone());
        let disk = Disk { names, durable, pending, files: disk.files.clone(), ..Disk::default() };
        SimFiles { disk: Arc::new(Mutex::new(disk)) }
    }

    /// Returns the number of calls so far that could change something.
    pub fn calls(&self) -> usize {
        self.disk().calls
    }

    /// Returns every state that a loss of power can leave now: each name whose folder was not
    /// synced may be as before or as it is; a file that was not synced may be empty.
    pub fn after_loss_of_power(&self) -> Vec<SimFiles> {
        let disk = self.disk();
        let pending: Vec<&String> = disk.pending.iter().collect();
        assert!(pending.len() < 12, "too many states");
        let state = |chosen: usize| {
            let mut names = disk.durable.clone();
            for (bit, path) in pending.iter().enumerate() {
                if chosen >> bit & 1 == 1 {
                    match disk.names.get(*path) {
                        Some(node) => drop(names.insert(path.to_string(), *node)),
                        None => drop(names.remove(*path)),
                    }
                }
            }
            let reached = names.clone();
            names.retain(|path, _| super::super::folders_of(path).all(|f| reached.contains_key(f)));
            let lost = |file: &Contents| match file.is_synced {
                true => file.clone(),
                false => Contents { bytes: Vec::new(), is_synced: true },
            };
            let files = disk.files.iter().map(lost).collect();
            let durable = names.clone();
            let disk = Disk { names, durable, files, ..Disk::default() };
            SimFiles { disk: Arc::new(Mutex::new(disk)) }
        };
        (0..1 << pending.len()).map(state).collect()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// Counts a call that can change something.
    fn call(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk();
        if disk.ends_at.is_some_and(|end| disk.calls >= end) {
            return Err(io::Error::other("the power is lost"));
        }
        disk.calls += 1;
        Ok(disk)
    }
}

impl Disk {
    fn add(&mut self, path: &str, node: Node) -> io::Result<()> {
        if self.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let above = super::super::above(path);
        if !above.is_empty() && self.names.get(above) != Some(&None) {
            return Err(ErrorKind::NotFound.into());
        }
        self.names.insert(path.to_string(), node);
        self.pending.insert(path.to_string());
        Ok(())
    }

    fn file(&self, path: &str) -> io::Result<Inode> {
        match self.names.get(path) {
            Some(Some(inode)) => Ok(*inode),
            Some(None) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

impl Files for SimFiles {
    fn root(&self) -> Option<&Path> {
        None
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        self.call()?.add(path, None)
    }

    fn make_file(&self, path: &str) -> io::Result<Box<dyn NewFile>> {
        let mut disk = self.call()?;
        let inode = disk.files.len();
        disk.add(path, Some(inode))?;
        disk.files.push(Contents::default());
        Ok(Box::new(SimFile { files: self.clone(), inode }))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.call()?;
        let inode = disk.file(from)?;
        disk.add(to, Some(inode))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut disk = self.call()?;
        disk.file(path)?;
        disk.names.remove(path);
        disk.pending.insert(path.to_string());
        Ok(())
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        let mut disk = self.call()?;
        let here: Vec<String> = disk.pending.iter().cloned().collect();
        for name in here.into_iter().filter(|name| super::super::above(name) == path) {
            match disk.names.get(&name).copied() {
                Some(node) => drop(disk.durable.insert(name.clone(), node)),
                None => drop(disk.durable.remove(&name)),
            }
            disk.pending.remove(&name);
        }
        Ok(())
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let disk = self.disk();
        Ok(disk.files[disk.file(path)?].bytes.clone())
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        Ok(self.disk().names.contains_key(path))
    }

    fn entries(&self, path: &str) -> io::Result<Vec<Entry>> {
        let disk = self.disk();
        let here = disk.names.iter().filter(|(name, _)| super::super::above(name) == path);
        let entry = |(name, node): (&String, &Node)| Entry {
            name: name.rsplit('/').next().unwrap().to_string(),
            is_folder: node.is_none(),
        };
        Ok(here.map(entry).collect())
    }

    fn age(&self, path: &str) -> io::Result<Duration> {
        // Names of temporary files that a test has made old begin so.
        let is_old = path.contains("/old");
        self.disk().file(path)?;
        Ok(if is_old { Duration::from_secs(7200) } else { Duration::ZERO })
    }
}

struct SimFile {
    files: SimFiles,
    inode: Inode,
}

impl NewFile for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.files.call()?;
        disk.files[self.inode].bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.files.call()?;
        disk.files[self.inode].is_synced = true;
        Ok(())
    }
}
