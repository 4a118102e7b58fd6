//! A disk in memory that knows which states a crash could leave, and that fails on request.
//!
//! A running program sees all of its changes at once. Only what was synced is durable. The disk
//! notes each operation that changes something or syncs, so it can go through the states that a
//! crash after any number of operations could leave: see [`CrashOptions`].
//!
//! * A sync of a file makes its data and its size durable. Until then each sector of 512 bytes of
//!   each write may survive or not, and so may the size, whatever becomes of the data: a file may
//!   be larger and contain zeros, or be as small as before.
//! * A sync of the directory makes entries durable. Until then each creation, rename and removal
//!   may survive or not, whatever becomes of the files' data.
//!
//! What survives is applied in the order in which it was done.

mod contents;
mod crash;
mod fault;
mod file;
mod moment;
mod operation;
mod pieces;
mod state_id;
mod unsynced;

pub use crash::{CrashOptions, CrashState, CrashStates};
pub use fault::Fault;
pub use state_id::{Grain, Kept, StateId, StateIdError};

use super::{Disk, DiskFile, LockError, check_name};
use contents::Contents;
use fault::{Faults, Kind};
use file::SimFile;
use moment::Moment;
use operation::{FileChange, FileId, NameChange, Names, Operation};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unsynced::State as _;

/// A disk in memory. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    inner: Arc<Mutex<Inner>>,
}

/// The state of a disk.
#[derive(Debug, Default)]
struct Inner {
    /// What the disk contained at first, all of it durable.
    origin: Image,
    /// What a running program sees.
    visible: Image,
    operations: Vec<Operation>,
    files_made: FileId,
    faults: Faults,
    /// The most bytes that all files together can have.
    quota: Option<u64>,
    is_locked: bool,
}

/// The entries of a directory, and the files.
#[derive(Clone, Debug, Default)]
struct Image {
    names: Names,
    files: BTreeMap<FileId, Contents>,
}

impl SimDisk {
    /// Returns an empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a disk with these files, all durable.
    fn with(names: Names, files: BTreeMap<FileId, Contents>) -> Self {
        let files_made = files.keys().next_back().map_or(0, |last| last + 1);
        let origin = Image { names, files };
        let inner = Inner { visible: origin.clone(), origin, files_made, ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Returns the number of operations so far that changed something or synced. Reads do not
    /// count, nor does an operation that failed without an effect.
    pub fn position(&self) -> usize {
        self.inner().operations.len()
    }

    /// Returns a line for each operation that [`Self::position`] counts.
    pub fn operations(&self) -> Vec<String> {
        self.inner().operations.iter().map(ToString::to_string).collect()
    }

    /// Returns the disk as it is after the first `position` operations, for a process that is
    /// started after another one was killed: it sees all changes, and those that had not been
    /// synced are still not durable. Faults and quotas are not copied.
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
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Returns the states that a crash could leave, with everything up to now, in order of
    /// positions.
    ///
    /// # Panics
    ///
    /// Panics if the options ask for all subsets of more than 20 pieces.
    pub fn crash_states(&self, options: &CrashOptions) -> CrashStates {
        let inner = self.inner();
        CrashStates::new(inner.origin.moment(), inner.operations.clone(), options.clone())
    }

    /// Returns the state with this identity, or `None` if there were fewer operations up to now.
    pub fn state(&self, id: StateId) -> Option<CrashState> {
        let inner = self.inner();
        let mut moment = inner.origin.moment();
        inner.operations.get(..id.position)?.iter().for_each(|operation| moment.apply(operation));
        Some(CrashState::new(id, Arc::new(moment)))
    }

    /// Asks for a fault at the `n`-th operation from now that the fault applies to. Reads,
    /// [`Disk::list`], [`Disk::open`], [`Disk::open_to_read`], [`Disk::lock`] and [`DiskFile::len`] are operations, too.
    ///
    /// # Panics
    ///
    /// Panics if `n` is 0.
    pub fn fail(&self, n: u64, fault: Fault) {
        self.inner().faults.add(n, fault);
    }

    /// Returns the number of faults that were asked for and have not occurred.
    pub fn pending_faults(&self) -> usize {
        self.inner().faults.pending()
    }

    /// Forgets the faults that have not occurred.
    pub fn clear_faults(&self) {
        self.inner().faults.clear();
    }

    /// Limits the sizes of all files together to `bytes`, or lifts the limit. A write beyond it
    /// writes as many bytes as there is room for, and returns an error of kind
    /// [`ErrorKind::StorageFull`].
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

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: FileId) -> Box<dyn DiskFile> {
        Box::new(SimFile::new(self.clone(), id, false))
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
        Ok(Box::new(SimFile::new(self.clone(), inner.find(name)?, true)))
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
        Ok(Box::new(SimLock { disk: self.clone() }))
    }
}

/// Exclusive use of a disk, until the value is dropped.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.inner().is_locked = false;
    }
}

impl Inner {
    fn find(&self, name: &str) -> io::Result<FileId> {
        self.visible.names.get(name).copied().ok_or_else(|| {
            io::Error::new(ErrorKind::NotFound, format!("there is no file {name} on the disk"))
        })
    }

    fn contents(&self, file: FileId) -> &Contents {
        &self.visible.files[&file]
    }

    /// Does an operation and notes it.
    fn apply(&mut self, operation: Operation) {
        self.visible.apply(&operation);
        self.operations.push(operation);
    }

    /// Notes a sync, or one that fails.
    fn sync(&mut self, done: Operation, failed: Operation) -> io::Result<()> {
        match self.faults.step(Kind::Sync)? {
            None => {
                self.operations.push(done);
                Ok(())
            }
            Some(_) => {
                self.operations.push(failed);
                Err(fault::error())
            }
        }
    }

    fn used(&self) -> u64 {
        self.visible.names.values().map(|file| self.contents(*file).size()).sum()
    }

    /// Returns how many bytes a file can have, as far as there is room.
    fn size_max(&self, file: FileId) -> u64 {
        match self.quota {
            Some(quota) => self.contents(file).size() + quota.saturating_sub(self.used()),
            None => u64::MAX,
        }
    }
}

impl Image {
    fn moment(&self) -> Moment {
        Moment::new(self.names.clone(), self.files.clone())
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Name(change) => {
                if let NameChange::Create { file, .. } = change {
                    self.files.insert(*file, Contents::default());
                }
                self.names.apply(change);
            }
            Operation::File(file, change) => {
                self.files.entry(*file).or_default().apply(change);
            }
            _ => {}
        }
    }
}
