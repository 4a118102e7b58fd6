//! The second word of a cell that is a link of chains.
//!
//! ```text
//! | W: 1 | WANT: 1 | state: 2 | item: 12 | owner: 16 | attempt: 32 |
//! ```
//!
//! State and owner lie in one word, so that a lock cannot be released after a successor has taken
//! it (PL1 of `pipeline`). Under other policies the state is zero while W is set.

#![forbid(unsafe_code)]

use super::word::{Lock, LockWord, READERS, W, WANT};
use crate::engine::Common;
use crate::record::CellAt;
use crate::sync::Ordering;
use std::cell::Cell;

const STATES: u64 = 3 << 60;
const LOCKED: u64 = 1 << 60;
const RELAXED: u64 = 2 << 60;
const CLOSING: u64 = 3 << 60;
const ITEM: u64 = 48;
const ITEM_MASK: u64 = 0xfff;

/// An item of an attempt, as a member of the chain of its cell: desk and attempt, and the number of
/// the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) desk: u16,
    /// The lower half of the attempt's number.
    pub(super) attempt: u32,
    pub(super) item: u16,
}

impl Member {
    fn word(self, state: u64) -> u64 {
        let item = (u64::from(self.item) & ITEM_MASK) << ITEM;
        W | state | item | u64::from(self.desk) << 32 | u64::from(self.attempt)
    }

    fn of(word: LockWord) -> Member {
        let item = (word.0 >> ITEM & ITEM_MASK) as u16;
        Member { desk: word.owner(), attempt: word.0 as u32, item }
    }
}

impl LockWord {
    /// Returns whether a chain goes through the cell.
    pub(super) fn is_chained(self) -> bool {
        self.is_written() && self.0 & STATES != 0
    }

    /// Returns whether no session holds the lock.
    pub(super) fn is_free(self) -> bool {
        self.0 & (W | READERS) == 0
    }
}

impl Lock<'_> {
    /// Locks the cell for `me`: begins a chain, or takes the lock over from the last member, which
    /// is returned then. Leaves a free lock to the sessions that wait for the end of a chain,
    /// unless `ignores_want`.
    ///
    /// # Errors
    /// The word, if that is not possible now.
    pub(super) fn join(self, me: Member, ignores_want: bool) -> Result<Option<Member>, LockWord> {
        loop {
            let word = self.word();
            let is_free = word.is_free() && (ignores_want || !word.is_wanted());
            let is_relaxed = word.is_written() && word.0 & (STATES | WANT) == RELAXED;
            if !is_free && !is_relaxed {
                return Err(word);
            }
            if self.exchange(word.0, me.word(LOCKED)).is_ok() {
                return Ok(is_relaxed.then(|| Member::of(word)));
            }
        }
    }

    /// Lets a successor take the lock over.
    pub(super) fn relax(self, me: Member) {
        let is_relaxed = self.change(me, &[LOCKED], RELAXED);
        debug_assert!(is_relaxed, "PL1: no session takes over a lock that is not relaxed");
    }

    /// Begins to end the chain, unless a successor has taken the lock over. Returns whether the
    /// chain ends.
    pub(super) fn begin_to_close(self, me: Member) -> bool {
        self.change(me, &[LOCKED, RELAXED], CLOSING)
    }

    /// Frees a lock of which `me` is the last member. WANT stays as it is.
    pub(super) fn end_chain(self) {
        // Release: the next holder sees what the chain has left (E21).
        self.0.fetch_and(WANT, Ordering::Release);
    }

    /// Changes the state of the lock of `me` from one of `from`, and leaves WANT as it is. Returns
    /// false if the lock is another member's.
    fn change(self, me: Member, from: &[u64], to: u64) -> bool {
        loop {
            let word = self.word();
            if !from.iter().any(|&state| word.0 & !WANT == me.word(state)) {
                return false;
            }
            if self.exchange(word.0, me.word(to) | word.0 & WANT).is_ok() {
                return true;
            }
        }
    }
}

/// Returns whether a chain goes through a cell of a table under `Occ`.
pub(crate) fn is_in_chain(at: CellAt) -> bool {
    at.cell_words() == 2 && Lock::of(&at).word().is_chained()
}

/// Ends a wish that [`want_end`] may have expressed. The WANT of a writer that waits for readers
/// stays.
pub(crate) fn end_want(engine: &Common, at: CellAt) {
    if at.cell_words() == 2 {
        let word = Lock::of(&at).word();
        if word.is_wanted() && (word.is_chained() || word.is_free()) {
            unwant_end(engine, at);
        }
    }
}

/// Ends a wish that [`want_end`] has expressed. Other sessions that have the same wish are woken,
/// and express it again.
fn unwant_end(engine: &Common, at: CellAt) {
    Lock::of(&at).unwant();
    if engine.parking.has_sleepers() {
        engine.parking.wake(at.address());
        engine.parking.wake(at.address() + 8);
    }
}

/// Sets WANT in a cell through which a chain goes. Returns whether one does.
pub(crate) fn want_end(at: CellAt) -> bool {
    if at.cell_words() != 2 {
        return false;
    }
    let lock = Lock::of(&at);
    loop {
        let word = lock.word();
        if !word.is_chained() {
            return false;
        }
        if word.is_wanted() || lock.exchange(word.0, word.0 | WANT).is_ok() {
            return true;
        }
    }
}

/// The wish of a session that the chain of a cell ends, so that it can read or lock the cell. A
/// chain with such a wish takes no further member, and the free cell is left to the session for a
/// short time.
#[derive(Debug)]
pub(crate) struct EndWish {
    at: CellAt,
    is_expressed: Cell<bool>,
}

impl EndWish {
    /// Makes a wish that is not expressed. The cell belongs to a table under `Occ`.
    pub(crate) fn of(at: CellAt) -> EndWish {
        EndWish { at, is_expressed: Cell::new(false) }
    }

    /// Expresses the wish, if a chain goes through the cell.
    pub(crate) fn express(&self) {
        if want_end(self.at) {
            self.is_expressed.set(true);
        }
    }

    /// Expresses the wish, if it is about `at` and a chain goes through the cell.
    pub(crate) fn express_about(&self, at: CellAt) {
        if self.at.address() == at.address() {
            self.express();
        }
    }

    /// Ends the wish.
    pub(crate) fn end(self, engine: &Common) {
        if self.is_expressed.get() {
            unwant_end(engine, self.at);
        }
    }
}

/// A wish of one call, which ends with the call, whether it returns or panics.
#[derive(Debug)]
pub(crate) struct CallWish<'e> {
    wish: Option<EndWish>,
    engine: &'e Common,
}

impl<'e> CallWish<'e> {
    /// Makes a wish that is not expressed. The cell belongs to a table under `Occ`.
    pub(crate) fn of(engine: &'e Common, at: CellAt) -> CallWish<'e> {
        CallWish { wish: Some(EndWish::of(at)), engine }
    }

    /// Expresses the wish, if a chain goes through the cell.
    pub(crate) fn express(&self) {
        if let Some(wish) = &self.wish {
            wish.express();
        }
    }
}

impl Drop for CallWish<'_> {
    fn drop(&mut self) {
        if let Some(wish) = self.wish.take() {
            wish.end(self.engine);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    const FIRST: Member = Member { desk: 3, attempt: u32::MAX, item: 127 };
    const SECOND: Member = Member { desk: u16::MAX, attempt: 1, item: 0 };

    #[test]
    fn a_lock_is_taken_over_once_it_is_relaxed_and_then_closed_by_its_last_owner() {
        let word = AtomicU64::new(0);
        let lock = Lock(&word);
        assert_eq!(lock.join(FIRST, false), Ok(None));
        assert!(lock.join(SECOND, false).is_err(), "it is not relaxed");
        lock.relax(FIRST);
        assert!(lock.word().is_chained() && lock.word().is_written_by(3));
        assert!(!lock.upgrade(3) && lock.word().readers() == 0, "no bit is a reader's");
        assert_eq!(lock.join(SECOND, false), Ok(Some(FIRST)));
        assert!(!lock.begin_to_close(FIRST), "the successor has the lock");
        assert!(lock.begin_to_close(SECOND));
        assert!(lock.join(FIRST, false).is_err(), "the chain ends");
        lock.end_chain();
        assert_eq!(word.into_inner(), 0);
    }

    #[test]
    fn a_chain_takes_no_member_once_its_end_is_wanted() {
        let word = AtomicU64::new(0);
        let lock = Lock(&word);
        assert_eq!(lock.join(FIRST, false), Ok(None));
        word.fetch_or(WANT, Ordering::Relaxed);
        lock.relax(FIRST);
        assert!(lock.join(SECOND, true).is_err(), "the chain has to end");
        assert!(lock.begin_to_close(FIRST));
        lock.end_chain();
        assert_eq!(word.load(Ordering::Relaxed), WANT, "the free lock is left to the wish");
        assert!(lock.join(SECOND, false).is_err());
        assert_eq!(lock.join(SECOND, true), Ok(None));
        assert!(!lock.word().is_wanted());
    }
}
