//! Keys that are known when their transaction commits.

#![forbid(unsafe_code)]

use super::handle::Later;
use crate::error::Abort;
use crate::record::CellAt;
use crate::schema::{Key, KeyWords};
use crate::txn::Entry;
use std::cell::{Cell, RefCell};

/// A key, of which a commit needs the words.
pub(in crate::api) struct LateKey<K> {
    /// `None` once it is released.
    key: RefCell<Option<Later<Option<K>>>>,
    /// The words of the key, as the key's type encodes them, once they are known.
    words: Cell<Option<Result<Option<KeyWords>, Abort>>>,
}

impl<K: Key> LateKey<K> {
    pub(in crate::api) fn new(key: Later<Option<K>>) -> LateKey<K> {
        LateKey { key: RefCell::new(Some(key)), words: Cell::new(None) }
    }
}

impl<K: Key> Entry for LateKey<K> {
    fn is_step(&self) -> bool {
        false
    }

    fn unit(&self) -> Option<CellAt> {
        None
    }

    fn is_ready(&self) -> bool {
        self.key.borrow().as_ref().is_some_and(|key| !key.is_pending())
    }

    fn is_evaluated(&self) -> bool {
        self.words.get().is_some()
    }

    fn evaluate(&self, _: &mut [u64]) -> Result<(), Abort> {
        // This stays if the code of the key's type panics.
        self.words.set(Some(Err(Abort::Panicked)));
        let key = self.key.borrow().as_ref().map_or(Err(Abort::LaterUndone), Later::value);
        let words = key.map(|key| key.map(|key| KeyWords::copied(key.words().as_ref())));
        self.words.set(Some(words));
        words.map(drop)
    }

    fn key(&self) -> Result<Option<KeyWords>, Abort> {
        self.words.get().unwrap_or(Err(Abort::NotYet))
    }

    fn undo(&self) {}

    fn release(&self) {
        drop(self.key.take());
    }
}
