//! Values outside of records: a word of a row names a value of any type, or a block of bytes
//! ([`long`]).
//!
//! The layout of a table says which words of its units do so ([`Named`](super::Named)). The
//! words of an absent row mean nothing. The address of a value of any type is a multiple of 8, by
//! which it differs from the words of bytes. Who owns a value, and when it ends, does not depend on
//! its kind; but the end of a block is only that its slab gets it back.
//!
//! # Invariants
//! * **BV1** A value has one owner at a time: a [`Value`], or, from the install of its word on, the
//!   unit whose versions name it. [`Value::claim`] takes a value from its unit, once.
//! * **BV2** A word is followed only by a session that has read it, in the running attempt, from a
//!   present row of a table whose values are of that type, or that has staged it there. A claimed
//!   value is kept until no such attempt runs any more. (For blocks, BL2.)
//! * **BV3** The value is written before its word is stored (E3), and not changed while a unit
//!   names it.
//! * **BV4** The timestamp of a value is written by the commit that installs the value, before its
//!   word is stored, and read by that attempt and by the owner that has claimed the value.

use super::long::{self, NOT_INSTALLED};
use crate::memory::{Cache, LongMemory};
use crate::sync::prefetch;
use std::cell::UnsafeCell;
use std::fmt;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// What the engine knows of a value: how to drop it, and when it was installed.
struct Header {
    /// Drops the value, and frees its memory.
    drop: unsafe fn(NonNull<Header>),
    /// The timestamp of the commit that installed the value; [`NOT_INSTALLED`] before. Only that
    /// commit writes it, before it stores the value's word (BV4).
    born: UnsafeCell<u64>,
}

#[repr(C)]
struct Kept<T> {
    header: Header,
    value: T,
}

/// A value that belongs to the holder, by the word that names it. Dropping it drops a value of any
/// type; a panic of the value's destructor ends here, so that other values are dropped all the
/// same. A block is given back by [`Value::free_block`], or else with its slab. `Value::new` takes
/// values that are `Send` and `Sync`, as blocks are.
pub struct Value(NonZeroU64);

/// Returns whether a word that may name a value names one.
#[inline]
pub(crate) fn names_value(word: u64) -> bool {
    word != 0 && !long::is_short(word)
}

impl Value {
    /// Moves a value to memory of its own.
    pub(crate) fn new<T: Send + Sync + 'static>(value: T) -> Value {
        let header = Header { drop: drop_kept::<T>, born: UnsafeCell::new(NOT_INSTALLED) };
        let kept = Box::into_raw(Box::new(Kept { header, value }));
        Value::claim(kept.expose_provenance() as u64)
    }

    /// Returns the word that names the value. It is never zero.
    pub(crate) fn word(&self) -> u64 {
        self.0.get()
    }

    /// Returns whether the value is a block of bytes.
    #[inline]
    pub(crate) fn is_block(&self) -> bool {
        long::names_block(self.word())
    }

    /// Gives a block back to its slab. Returns a value of any type, which is to be dropped.
    #[inline]
    pub(crate) fn free_block(
        self,
        memory: Option<&LongMemory>,
        caches: &mut Vec<Option<Cache>>,
    ) -> Result<(), Value> {
        if !self.is_block() {
            return Err(self);
        }
        long::free(self.into_word(), memory.expect("a database with blocks has slabs"), caches);
        Ok(())
    }

    /// Returns the word, which owns the value from now on (BV1).
    pub(crate) fn into_word(self) -> u64 {
        let word = self.word();
        std::mem::forget(self);
        word
    }

    /// Takes the value that a unit has named by `word` (BV1): the caller has replaced or deleted
    /// the last version that names it, and no other caller claims it. Or takes the value back that
    /// has become `word` by [`Value::into_word`], or the block that the caller has allocated.
    pub(crate) fn claim(word: u64) -> Value {
        debug_assert!(names_value(word));
        Value(NonZeroU64::new(word).expect("the word names a value"))
    }

    /// Loads the value into the caches, before it is dropped, and the words before it, which the
    /// allocator may use.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let value = header_at(self.word()).as_ptr().cast_const().cast();
        prefetch(value);
        prefetch(value.wrapping_sub(1));
    }

    /// Returns whether a commit has installed the value, which then belongs to its unit.
    pub(crate) fn is_installed(&self) -> bool {
        self.born() != NOT_INSTALLED
    }

    /// Returns the timestamp of the commit that installed the value.
    pub(crate) fn born(&self) -> u64 {
        if self.is_block() {
            return long::born(self.word());
        }
        // SAFETY: the value is allocated (BV1), and nothing writes the timestamp now (BV4).
        unsafe { *header_at(self.word()).as_ref().born.get() }
    }
}

/// Notes that a commit installs the value named by `word`, which its attempt has staged, at
/// `timestamp`. Nothing that can fail follows in that commit.
pub(crate) fn note_installed(word: u64, timestamp: u64) {
    debug_assert!(timestamp != NOT_INSTALLED);
    if long::names_block(word) {
        return long::note_installed(word, timestamp);
    }
    // SAFETY: the attempt owns what it has staged (BV1), and is alone in using it (BV4).
    unsafe { *header_at(word).as_ref().born.get() = timestamp };
}

/// Returns the value named by `word`, for as long as the attempt of `_tx` runs. BV2 holds: `T` is
/// the type of the values of the table from which the attempt has read the word.
pub(crate) fn follow<T, A: ?Sized>(word: u64, _tx: &A) -> &T {
    let kept: NonNull<Kept<T>> = header_at(word).cast();
    // SAFETY: BV2 says that the value is allocated and of this type until the attempt ends. BV3 has
    // no one change it meanwhile.
    unsafe { &(*kept.as_ptr()).value }
}

fn header_at(word: u64) -> NonNull<Header> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(word as usize))
        .expect("the word of a present row names a value")
}

/// Drops a value of type `T`, and frees its memory.
///
/// # Safety
/// The header belongs to a `Kept<T>` made by [`Value::new`], which nothing uses any more.
unsafe fn drop_kept<T>(header: NonNull<Header>) {
    // SAFETY: by the contract, the box is whole and the caller's.
    drop(unsafe { Box::from_raw(header.cast::<Kept<T>>().as_ptr()) });
}

impl Drop for Value {
    fn drop(&mut self) {
        if self.is_block() {
            return;
        }
        let header = header_at(self.word());
        // SAFETY: the value belongs to `self` (BV1), and is not used any more (BV2).
        let free = || unsafe { (header.as_ref().drop)(header) };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
            // What the panic has thrown has a destructor, too.
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            dropped.unwrap_or_else(std::mem::forget);
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({:#x})", self.word())
    }
}
