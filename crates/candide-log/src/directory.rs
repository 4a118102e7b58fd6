//! The directory of a database that is open.

use crate::disk::Disk;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// A disk that makes no more names durable once this has failed, since it is not known which names
/// the failure has lost.
#[derive(Debug)]
pub(crate) struct Directory {
    disk: Arc<dyn Disk>,
    /// The first failure. The lock is held while names are made durable: if two syncs ran at once,
    /// one could fail and lose names of the other, which succeeds.
    failure: Mutex<Option<Arc<io::Error>>>,
}

impl Directory {
    /// Returns the directory of a whole disk.
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Directory {
        Directory { disk, failure: Mutex::new(None) }
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// After the first failure, every call fails.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &*failure {
            return Err(again(failure));
        }
        self.disk.sync_directory().map_err(|error| again(failure.insert(Arc::new(error))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{DiskFile, LockError};
    use std::fmt::Debug;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// A disk whose first sync fails, after a second one has begun if that is possible. Other syncs
    /// succeed.
    #[derive(Debug, Default)]
    struct FailsFirst {
        asked: AtomicUsize,
        begun: AtomicUsize,
    }

    impl Disk for FailsFirst {
        fn list(&self) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn create(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn open(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn open_to_read(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn rename(&self, _: &str, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn remove(&self, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn sync_directory(&self) -> io::Result<()> {
            if self.begun.fetch_add(1, Ordering::SeqCst) > 0 {
                return Ok(());
            }
            while self.asked.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            for _ in 0..1000 {
                if self.begun.load(Ordering::SeqCst) > 1 {
                    break;
                }
                thread::yield_now();
            }
            Err(io::Error::other("names are lost"))
        }

        fn lock(&self) -> Result<Box<dyn Send + Sync + Debug>, LockError> {
            Ok(Box::new(()))
        }
    }

    #[test]
    fn a_directory_sync_beside_a_failing_one_fails_too() {
        let disk = Arc::new(FailsFirst::default());
        let directory = Directory::new(disk.clone());
        let sync = || {
            disk.asked.fetch_add(1, Ordering::SeqCst);
            directory.sync_names().is_err()
        };
        thread::scope(|scope| {
            let syncs = [scope.spawn(sync), scope.spawn(sync)];
            assert_eq!(syncs.map(|sync| sync.join().unwrap()), [true, true]);
        });
        assert!(directory.sync_names().is_err());
    }
}
