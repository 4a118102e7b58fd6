//! A place that refuses some creations and lists.

use candide_reach::sim::SimPlace;
use candide_reach::{Created, Place, PlaceError};
use std::sync::{Arc, Mutex};

/// What the names of refused creations begin with, and the error.
type Refused = Arc<Mutex<Option<(&'static str, PlaceError)>>>;

/// A place that refuses some creations, or all lists.
#[derive(Debug, Clone)]
pub struct Refusing {
    place: SimPlace,
    refused: Refused,
    refuses_lists: bool,
}

impl Refusing {
    pub fn new(place: &SimPlace) -> Refusing {
        Refusing { place: place.handle(1), refused: Refused::default(), refuses_lists: false }
    }

    /// Refuses lists.
    pub fn without_lists(self) -> Refusing {
        Refusing { refuses_lists: true, ..self }
    }

    /// Refuses creations of names that begin so, with this error; or none.
    pub fn refuse(&self, refused: Option<(&'static str, PlaceError)>) {
        *self.refused.lock().unwrap() = refused;
    }
}

impl Place for Refusing {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, PlaceError> {
        match &*self.refused.lock().unwrap() {
            Some((begin, error)) if name.starts_with(begin) => Err(error.clone()),
            _ => self.place.create(name, bytes),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PlaceError> {
        self.place.read(name)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<String>, PlaceError> {
        match self.refuses_lists {
            true => Err(PlaceError::Refused("no right to list".to_string())),
            false => self.place.list(prefix, after),
        }
    }

    fn delete(&self, name: &str) -> Result<(), PlaceError> {
        self.place.delete(name)
    }

    fn another(&self) -> Result<Arc<dyn Place>, PlaceError> {
        Ok(Arc::new(self.clone()))
    }
}
