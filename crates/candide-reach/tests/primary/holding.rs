//! A place that does not answer for some objects of the log, and counts what is under way.

use candide_reach::sim::SimPlace;
use candide_reach::{Created, Place, PlaceError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the handles share.
#[derive(Debug, Default)]
struct Held {
    /// How many of the next objects are held.
    next: usize,
    /// The objects for which there is no answer.
    names: BTreeSet<String>,
    /// All objects of the log that were asked for and not answered, and the most at a time.
    open: BTreeSet<String>,
    most: usize,
    /// Whether the next one panics.
    panics: bool,
}

/// A place that does not answer for the objects that it holds.
#[derive(Debug, Clone)]
pub struct Holding {
    place: SimPlace,
    held: Arc<Mutex<Held>>,
}

impl Holding {
    pub fn new(place: &SimPlace) -> Holding {
        Holding { place: place.handle(1), held: Arc::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// Holds the next objects of the log that are created.
    pub fn hold(&self, next: usize) {
        self.held().next = next;
    }

    /// Answers for all objects from now on.
    pub fn release(&self) {
        let mut held = self.held();
        held.next = 0;
        held.names.clear();
    }

    /// Panics at the next object of the log that is created.
    pub fn panic(&self) {
        self.held().panics = true;
    }

    /// Returns what answers for all objects when it is dropped, so that a close need not wait.
    pub fn until_dropped(&self) -> Release {
        Release(self.clone())
    }

    /// Returns the names of the objects that are held.
    pub fn names(&self) -> Vec<String> {
        self.held().names.iter().cloned().collect()
    }

    /// Returns how many objects of the log have been under way at a time.
    pub fn most(&self) -> usize {
        self.held().most
    }
}

/// What releases all objects when it is dropped.
pub struct Release(Holding);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Place for Holding {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        if !name.starts_with("log/") {
            return self.place.create(name, bytes);
        }
        {
            let mut held = self.held();
            if std::mem::take(&mut held.panics) {
                drop(held);
                panic!("a place panics");
            }
            held.open.insert(name.to_string());
            held.most = held.most.max(held.open.len());
            if held.next > 0 && held.names.insert(name.to_string()) {
                held.next -= 1;
            }
            if held.names.contains(name) {
                return Err(PlaceError::Unknown(format!("{name} is held")));
            }
        }
        let created = self.place.create(name, bytes);
        self.held().open.remove(name);
        created
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.place.read(name)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        self.place.list(prefix, after)
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.place.delete(name)
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        Ok(Arc::new(self.clone()))
    }
}
