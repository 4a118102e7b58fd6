//! Values that the commits of a session have replaced, on their way to the session's garbage.
//!
//! A session may replace a value in each transaction. It leaves the value here by two stores, while
//! its garbage would cost a lock, and a fence for the stamp. The holder of the garbage's lock takes
//! all that is left, and stamps it at once: a stamp that is read later than need be is right (EP2).
//! So the garbage of a session is what its lock guards and what is left here.

#![forbid(unsafe_code)]

use crate::record::value::Value;
use crate::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The number of values that have room. The tests have little room, so that they use it up.
const ROOM: u64 = if cfg!(test) { 4 } else { 256 };

/// A queue of values, in which a word of a value owns it (BV1). The session puts; the holder of the
/// lock of the session's garbage takes.
#[derive(Debug, Default)]
pub(crate) struct LeftValues {
    /// The words of the values, by their number modulo [`ROOM`]. Made by the first value.
    words: OnceLock<Box<[AtomicU64]>>,
    /// The number of values that have been put. Only the session writes it.
    put: AtomicU64,
    /// The number of values that have been taken.
    taken: AtomicU64,
}

impl LeftValues {
    /// Leaves a value that no reader that begins now can reach. Called by the session only. Returns
    /// the value if there is no room.
    #[inline]
    pub(crate) fn put(&self, value: Value) -> Result<(), Value> {
        let put = self.put.load(Ordering::Relaxed);
        // Acquire pairs with `take`, which has loaded the word before (E32).
        if put - self.taken.load(Ordering::Acquire) == ROOM {
            return Err(value);
        }
        let words = self.words.get_or_init(|| (0..ROOM).map(|_| AtomicU64::new(0)).collect());
        words[(put % ROOM) as usize].store(value.into_word(), Ordering::Relaxed);
        self.put.store(put + 1, Ordering::Release); // E32
        Ok(())
    }

    /// Returns whether no values are left here.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.put.load(Ordering::Relaxed) == self.taken.load(Ordering::Relaxed)
    }

    /// Moves all values to `into`. The caller holds the lock of the session's garbage.
    pub(crate) fn take(&self, into: &mut impl Extend<Value>) {
        // The memory is there before the first value.
        let Some(words) = self.words.get() else { return };
        let taken = self.taken.load(Ordering::Relaxed);
        let put = self.put.load(Ordering::Acquire); // E32
        let word = |number| words[(number % ROOM) as usize].load(Ordering::Relaxed);
        into.extend((taken..put).map(|number| Value::claim(word(number))));
        self.taken.store(put, Ordering::Release); // E32
    }
}

impl Drop for LeftValues {
    fn drop(&mut self) {
        self.take(&mut Vec::new());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn values_are_taken_once_in_their_order() {
        let (left, shared) = (LeftValues::default(), Arc::new(()));
        let mut taken = Vec::new();
        for round in 1..=3 {
            assert!(left.is_empty());
            let words: Vec<u64> = (0..ROOM)
                .map(|_| {
                    let value = Value::new(shared.clone());
                    let word = value.word();
                    left.put(value).expect("there is room");
                    word
                })
                .collect();
            drop(left.put(Value::new(shared.clone())).expect_err("there is no room"));
            assert_eq!(Arc::strong_count(&shared) as u64, 1 + round * ROOM);
            left.take(&mut taken);
            let last = &taken[taken.len() - ROOM as usize..];
            assert_eq!(last.iter().map(Value::word).collect::<Vec<_>>(), words);
        }
        drop(taken);
        left.put(Value::new(shared.clone())).expect("there is room");
        drop(left);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
