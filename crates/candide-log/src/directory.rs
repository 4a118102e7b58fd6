//! The directory of a database that is open.

use crate::disk::Disk;
use crate::mutants::{Mutant, mutant};
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A disk, of which names are not made durable any more once that has failed: it would not be known
/// which of the names before the failure are lost.
#[derive(Debug)]
pub(crate) struct Directory {
    disk: Arc<dyn Disk>,
    failure: OnceLock<Arc<io::Error>>,
}

impl Directory {
    /// Returns the directory that is the whole of a disk.
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Directory {
        Directory { disk, failure: OnceLock::new() }
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// After the first failure, every call fails.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(again(failure));
        }
        if mutant(Mutant::NoDirSync) {
            return Ok(());
        }
        self.disk.sync_directory().map_err(|error| again(self.failure.get_or_init(|| error.into())))
    }
}

fn again(failure: &Arc<io::Error>) -> io::Error {
    io::Error::new(failure.kind(), Arc::clone(failure))
}

impl Deref for Directory {
    type Target = dyn Disk;

    fn deref(&self) -> &(dyn Disk + 'static) {
        &*self.disk
    }
}
