//! The simulated disk, as a program sees it.

use super::contents::Contents;
use super::fault::{Fault, Kind};
use super::file::SimFile;
use super::inner::{Image, Inner, Shared};
use super::operation::{FileChange, FileId, NameChange, Names, Operation};
use candide_log::disk::{Disk, DiskFile, LockError, check_name};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::MutexGuard;

/// A disk in memory. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    shared: Shared,
}

impl SimDisk {
    /// Returns an empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a disk with these files, all durable.
    pub(super) fn with(names: Names, files: BTreeMap<FileId, Contents>) -> Self {
        let files_made = files.keys().next_back().map_or(0, |last| last + 1);
        let origin = Image { names, files };
        let inner = Inner { visible: origin.clone(), origin, files_made, ..Inner::default() };
        Self { shared: Shared::new(inner) }
    }

    /// Returns the number of operations so far that changed something or synced. Reads and
    /// operations that failed without an effect do not count.
    pub fn position(&self) -> usize {
        self.inner().operations.len()
    }

    /// Returns a line for each operation that [`Self::position`] counts.
    pub fn operations(&self) -> Vec<String> {
        self.inner().operations.iter().map(ToString::to_string).collect()
    }

    /// Returns the disk as it is after the first `position` operations, for a process that is
    /// started after another one was killed. The new process sees all changes; changes that had not
    /// been synced are still not durable. Faults and quotas are not copied.
    ///
    /// # Panics
    ///
    /// Panics if `position` is larger than [`Self::position`].
    pub fn at(&self, position: usize) -> Self {
        let inner = self.inner();
        let operations = inner.operations[..position].to_vec();
        let mut visible = inner.origin.clone();
        operations.iter().for_each(|operation| visible.apply(operation));
        let (origin, files_made) = (inner.origin.clone(), inner.files_made);
        let inner = Inner { origin, visible, operations, files_made, ..Inner::default() };
        Self { shared: Shared::new(inner) }
    }

    /// Asks for a fault at the `n`-th operation from now that the fault applies to. Reads,
    /// [`Disk::list`], [`Disk::open`], [`Disk::open_to_read`], [`Disk::lock`] and [`DiskFile::len`]
    /// are operations, too.
    ///
    /// # Panics
    ///
    /// Panics if `n` is 0.
    pub fn fail(&self, n: u64, fault: Fault) {
        self.inner().faults.add(n, fault);
    }

    /// Returns the number of faults that were requested and have not occurred.
    pub fn pending_faults(&self) -> usize {
        self.inner().faults.pending()
    }

    /// Forgets the faults that have not occurred.
    pub fn clear_faults(&self) {
        self.inner().faults.clear();
    }

    /// Limits the sizes of all files together to `bytes`, or lifts the limit. A write beyond it
    /// writes as many bytes as there is room for, and returns an error of kind
    /// [`io::ErrorKind::StorageFull`].
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.inner().quota = bytes;
    }

    /// Returns the sizes of all files together, in bytes.
    pub fn used(&self) -> u64 {
        self.inner().used()
    }

    /// Returns the number of bytes of all writes so far, to whatever place.
    pub fn written(&self) -> u64 {
        let length = |operation: &Operation| match operation {
            Operation::File(_, FileChange::Write { data, .. }) => data.len(),
            _ => 0,
        };
        self.inner().operations.iter().map(length).sum()
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }

    fn file(&self, id: FileId) -> Box<dyn DiskFile> {
        Box::new(SimFile::new(self.shared.clone(), id, false))
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        Ok(inner.visible.names.keys().map(ToString::to_string).collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        check_name(name)?;
        let mut inner = self.inner();
        inner.faults.step(Kind::Create)?;
        if let Some(&file) = inner.visible.names.get(name) {
            inner.apply(Operation::File(file, FileChange::Empty));
            return Ok(self.file(file));
        }
        let file = inner.files_made;
        inner.files_made += 1;
        inner.apply(Operation::Name(NameChange::Create { name: name.into(), file }));
        Ok(self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        check_name(name)?;
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        Ok(self.file(inner.find(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        check_name(name)?;
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        Ok(Box::new(SimFile::new(self.shared.clone(), inner.find(name)?, true)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        inner.find(from)?;
        inner.apply(Operation::Name(NameChange::Rename { from: from.into(), to: to.into() }));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        inner.find(name)?;
        inner.apply(Operation::Name(NameChange::Remove { name: name.into() }));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner().sync(Operation::SyncDirectory, Operation::FailedSyncDirectory)
    }

    /// Locks the disk. The file `LOCK` is not simulated, and [`Disk::list`] does not name it.
    fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
        let mut inner = self.inner();
        inner.faults.step(Kind::Other)?;
        if inner.is_locked {
            return Err(LockError::InUse { pid: Some(std::process::id()) });
        }
        inner.is_locked = true;
        Ok(Box::new(SimLock { shared: self.shared.clone() }))
    }
}

/// Exclusive use of a disk, until the value is dropped.
#[derive(Debug)]
struct SimLock {
    shared: Shared,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.shared.lock().is_locked = false;
    }
}
