//! A place that is full, read-only, slow or away, as long as the parent says so.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use candide_reach::{Created, Directory, Place, PlaceError};

/// The time that a call of a slow place takes.
const SLOW: Duration = Duration::from_millis(50);

/// A fault of the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing is created.
    Full,
    /// Nothing is created or deleted.
    ReadOnly,
    /// Each call takes its time.
    Slow,
    /// No call is answered. Some take effect.
    Away,
}

/// All faults.
pub(super) const FAULTS: [Fault; 4] = [Fault::Full, Fault::ReadOnly, Fault::Slow, Fault::Away];

impl Fault {
    /// Returns the word for a fault, or for none.
    pub(super) fn word(fault: Option<Fault>) -> &'static str {
        match fault {
            None => "well",
            Some(Fault::Full) => "full",
            Some(Fault::ReadOnly) => "read-only",
            Some(Fault::Slow) => "slow",
            Some(Fault::Away) => "away",
        }
    }
}

/// The present fault of the place, as a process sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Present(Arc<AtomicU8>);

impl Present {
    pub(super) fn set(&self, fault: Option<Fault>) {
        self.0.store(fault.map_or(0, |fault| fault as u8 + 1), Ordering::Relaxed);
    }

    fn get(&self) -> Option<Fault> {
        FAULTS.into_iter().find(|fault| *fault as u8 + 1 == self.0.load(Ordering::Relaxed))
    }
}

/// A folder with the present fault.
#[derive(Debug)]
pub(super) struct Faulty {
    folder: Arc<dyn Place>,
    present: Present,
    creations: AtomicU64,
}

impl Faulty {
    pub(super) fn new(folder: Directory, present: Present) -> Faulty {
        Faulty { folder: Arc::new(folder), present, creations: AtomicU64::new(0) }
    }

    /// Returns the error of a call that only reads.
    fn reach(&self) -> Result<(), PlaceError> {
        match self.present.get() {
            Some(Fault::Slow) => thread::sleep(SLOW),
            Some(Fault::Away) => return Err(PlaceError::Unknown("it is away".to_string())),
            _ => {}
        }
        Ok(())
    }
}

impl Place for Faulty {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        let refuse = |what: &str| Err(PlaceError::Refused(what.to_string()));
        match self.present.get() {
            Some(Fault::Full) => return refuse("it is full"),
            Some(Fault::ReadOnly) => return refuse("it is read-only"),
            Some(Fault::Away)
                if self.creations.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) =>
            {
                // The answer is lost.
                let _ = self.folder.create(name, bytes);
            }
            _ => {}
        }
        self.reach()?;
        self.folder.create(name, bytes)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.reach()?;
        self.folder.read(name)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        self.reach()?;
        self.folder.list(prefix, after)
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.reach()?;
        match self.present.get() {
            Some(Fault::ReadOnly) => Err(PlaceError::Refused("it is read-only".to_string())),
            _ => self.folder.delete(name),
        }
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        let folder = self.folder.another()?;
        let present = self.present.clone();
        Ok(Arc::new(Faulty { folder, present, creations: AtomicU64::new(0) }))
    }

    fn path(&self) -> Option<&Path> {
        self.folder.path()
    }
}
