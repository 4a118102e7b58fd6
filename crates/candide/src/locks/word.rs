//! The second word of a cell, which names the holders of the row's lock.
//!
//! ```text
//! | W: 1 | WANT: 1 | readers: 14 | owner: 16 | classes: 32 |
//! ```
//!
//! W is set while one session holds the lock for writing; the session's desk is `owner`. Otherwise
//! `readers` sessions hold it for reading, and `classes` has the classes of their desks, one bit
//! each. A bit stays set until the last reader leaves. WANT is set while a writer waits for readers
//! to leave.
//!
//! Under the policy `pipelined`, the bits of `readers` and of `classes` have another meaning while
//! W is set, and so has WANT (`chain.rs`).
//!
//! All policies read and write this one format. So a table's policy can change while locks are
//! held, and locks of different policies can meet in one transaction.

#![forbid(unsafe_code)]

use super::desks::class_of;
use super::shared::LockBase;
use crate::record::CellAt;
use crate::sync::{AtomicU64, Ordering};

pub(super) const W: u64 = 1 << 63;
pub(super) const WANT: u64 = 1 << 62;
const READER: u64 = 1 << 48;
pub(super) const READERS: u64 = 0x3fff << 48;
const CLASSES: u64 = u32::MAX as u64;

/// The second word of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockWord(pub(super) u64);

impl LockWord {
    /// Returns whether a session holds the lock for writing.
    pub(crate) fn is_written(self) -> bool {
        self.0 & W != 0
    }

    /// Returns the desk of the writer; meaningless if there is none.
    pub(crate) fn owner(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Returns whether desk `me` holds the lock for writing.
    pub(crate) fn is_written_by(self, me: u16) -> bool {
        self.is_written() && self.owner() == me
    }

    /// Returns the number of sessions that hold the lock for reading.
    pub(crate) fn readers(self) -> u64 {
        if self.is_written() { 0 } else { (self.0 & READERS) / READER }
    }

    /// Returns the classes of the desks that hold the lock.
    pub(crate) fn classes(self) -> u64 {
        if self.is_written() { class_of(self.owner()) } else { self.0 & CLASSES }
    }

    /// Returns whether a writer waits.
    pub(crate) fn is_wanted(self) -> bool {
        self.0 & WANT != 0
    }
}

/// The lock of a cell that has two words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lock<'a>(pub(super) &'a AtomicU64);

impl<'a> Lock<'a> {
    pub(crate) fn of(at: &'a CellAt) -> Lock<'a> {
        Lock(at.cell_word(1))
    }

    pub(crate) fn word(self) -> LockWord {
        LockWord(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn exchange(self, from: u64, to: u64) -> Result<(), LockWord> {
        // Acquire and Release: a holder sees the writes of the holder before it (E21).
        let exchanged = self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        exchanged.map(drop).map_err(LockWord)
    }

    /// Takes the lock in this mode.
    ///
    /// # Errors
    /// The word, if that is not possible now.
    pub(crate) fn take(self, me: u16, mode: Mode) -> Result<(), LockWord> {
        match mode {
            Mode::Read => self.take_to_read(me),
            Mode::Write => self.take_to_write(me),
        }
    }

    /// Takes the lock for reading.
    ///
    /// # Errors
    /// The word, if a session holds the lock for writing, if a writer waits, or if there are too
    /// many readers.
    pub(crate) fn take_to_read(self, me: u16) -> Result<(), LockWord> {
        loop {
            let word = self.word();
            if word.0 & (W | WANT) != 0 || word.0 & READERS == READERS {
                return Err(word);
            }
            if self
                .exchange(word.0, ((word.0 & (READERS | CLASSES)) + READER) | class_of(me))
                .is_ok()
            {
                return Ok(());
            }
        }
    }

    /// Takes the lock for writing.
    ///
    /// # Errors
    /// The word, if another session holds the lock.
    pub(crate) fn take_to_write(self, me: u16) -> Result<(), LockWord> {
        loop {
            let word = self.word();
            if word.0 & (W | READERS) != 0 {
                return Err(word);
            }
            if self.exchange(word.0, written_by(me)).is_ok() {
                return Ok(());
            }
        }
    }

    /// Turns a lock for reading into one for writing, if there is no other reader. Returns whether
    /// that was done.
    pub(crate) fn upgrade(self, me: u16) -> bool {
        loop {
            let word = self.word();
            if word.readers() != 1 {
                return false;
            }
            if self.exchange(word.0, written_by(me)).is_ok() {
                return true;
            }
        }
    }

    /// Releases a lock for reading. Returns whether a writer may now take the lock and waits.
    pub(crate) fn release_reader(self) -> bool {
        loop {
            let word = self.word();
            debug_assert!(word.readers() > 0 && !word.is_written(), "LK2: it is a reader's");
            let left = word.0 - READER;
            let to = if left & READERS == 0 { left & WANT } else { left };
            if self.exchange(word.0, to).is_ok() {
                return to & READERS == 0 && to & WANT != 0;
            }
        }
    }

    /// Stores a lock for writing that is released (`None`), or handed to the session with this
    /// desk.
    pub(crate) fn pass_on(self, to: Option<u64>) {
        debug_assert!(self.word().is_written(), "LK2: it is the writer's");
        let word = to.map_or(0, |to| written_by(to as u16));
        self.0.store(word, Ordering::Release); // E21
    }

    /// Sets WANT, if a session holds the lock for reading. Returns whether WANT was set by this
    /// call.
    pub(crate) fn want(self) -> bool {
        let word = self.word();
        let waits_for_readers = !word.is_written() && word.readers() > 0 && !word.is_wanted();
        waits_for_readers && self.exchange(word.0, word.0 | WANT).is_ok()
    }

    /// Clears WANT. Other writers that wait set it again when they next look.
    pub(crate) fn unwant(self) {
        let mut word = self.word();
        while word.is_wanted() {
            match self.exchange(word.0, word.0 & !WANT) {
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }
}

/// Makes the lock of a new record's cell free, whatever its kind is.
pub(crate) fn init_lock(at: CellAt) {
    (1..at.cell_words()).for_each(|word| at.cell_word(word).store(0, Ordering::Relaxed));
}

/// The purpose of a lock on a second word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// Releases the lock in a cell's second word.
pub(super) fn release(base: LockBase<'_>, at: CellAt, mode: Mode) {
    let (lock, parking) = (Lock::of(&at), &base.engine.parking);
    let address = at.address() + 8;
    match mode {
        Mode::Read => {
            if lock.release_reader() {
                parking.wake(address);
            }
        }
        Mode::Write if parking.has_sleepers() => {
            parking.release(address, true, &mut |to| lock.pass_on(to));
        }
        Mode::Write => {
            lock.pass_on(None);
            if parking.has_sleepers() {
                parking.wake(address);
            }
        }
    }
}

fn written_by(desk: u16) -> u64 {
    W | u64::from(desk) << 32
}
