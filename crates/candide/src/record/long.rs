//! Bytes of any length outside of records: a word of a row has them, or names the block that does.
//!
//! ```text
//! nothing        0
//! up to 7 bytes  | bytes: 56 | length: 4 | 1: 4 |
//! a block        | the block's address, a multiple of 16 | 2: 4 |
//!
//! the block      | kind: 32 | length: 32 |   | born: 64 |   the bytes, and zeros in the last word
//! ```
//!
//! Zero is the empty value of a column, or none of an option; an option that has an empty value has
//! the word of no bytes. Bytes that have room in the word are always there.
//!
//! # Invariants
//! * **BL1** A block has one owner at a time: the attempt that has staged it; from the install of
//!   its word on, the unit whose versions name it; then the list of what was replaced. The words of
//!   an absent row name nothing.
//! * **BL2** A word is followed only within the pin in which it was read from a present row, with
//!   the other words of its unit, or by the attempt that has staged it. A block is kept until no
//!   such pin lasts.
//! * **BL3** The bytes are written before the word is stored (E3), and not changed until the block
//!   is freed.
//! * **BL4** The timestamp of a block is written by the commit that installs it, before its word is
//!   stored, and read by that attempt and by the owner that has replaced it.

use crate::memory::{Block, Cache, LongKind, LongMemory, OutOfMemory, WORD_BYTES};
use crate::sync::{MODELLED, Ordering};

pub(crate) use crate::schema::LONG_BYTES_MAX;
use crate::schema::{LongWord, Pinned};

/// The largest length of a value that has room in the word.
const SHORT_BYTES_MAX: usize = 7;

/// The word of nothing.
pub(crate) const NOTHING: u64 = 0;

/// The tags, in the lowest bits of a word.
const TAG: u64 = 0xf;
const SHORT: u64 = 1;
const NAMED: u64 = 2;

/// The words of a block before its bytes.
const HEADER_WORDS: usize = 2;
/// The places of the kind and the length in a block, and of its timestamp.
const KIND_AND_LENGTH: usize = 0;
const BORN: usize = 1;

/// The timestamp of a value that no commit has installed.
pub(super) const NOT_INSTALLED: u64 = u64::MAX;

/// Whether a block loses its bytes when it is freed, so that tests notice a word that is followed
/// too late.
const TAKES_BYTES: bool = cfg!(test);

/// Returns the word that has these bytes; `None` if it has no room for them.
#[inline]
pub(crate) fn short_word(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > SHORT_BYTES_MAX {
        return None;
    }
    let mut word = [0; WORD_BYTES];
    word[1..=bytes.len()].copy_from_slice(bytes);
    Some(u64::from_le_bytes(word) | (bytes.len() as u64) << 4 | SHORT)
}

/// Copies bytes, which have no room in a word, to a block that belongs to the caller, and returns
/// the word that names it. There are at most [`LONG_BYTES_MAX`] bytes.
pub(crate) fn allocate(
    bytes: &[u8],
    memory: &LongMemory,
    caches: &mut Vec<Option<Cache>>,
) -> Result<u64, OutOfMemory> {
    debug_assert!((SHORT_BYTES_MAX + 1..=LONG_BYTES_MAX).contains(&bytes.len()));
    let words = bytes.len().div_ceil(WORD_BYTES);
    let (block, kind) = memory.allocate(HEADER_WORDS + words, caches)?;
    debug_assert!(block.address() & TAG == 0);
    // SAFETY: the block has at least these words, and is the caller's (BL1).
    let [first, born, last] =
        [KIND_AND_LENGTH, BORN, HEADER_WORDS + words - 1].map(|index| unsafe { block.word(index) });
    // Relaxed: published with the word of the row (BL3).
    first.store(u64::from(kind.0) << 32 | bytes.len() as u64, Ordering::Relaxed);
    born.store(NOT_INSTALLED, Ordering::Relaxed);
    last.store(0, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { block.write_bytes(HEADER_WORDS, bytes) };
    Ok(block.address() | NAMED)
}

/// Returns whether a word names a block.
#[inline]
pub(super) fn names_block(word: u64) -> bool {
    word & TAG == NAMED
}

/// Returns whether a word has bytes in itself, of which there may be none.
#[inline]
pub(super) fn is_short(word: u64) -> bool {
    word & TAG == SHORT
}

fn block_of(word: u64) -> Block {
    debug_assert!(names_block(word));
    Block::at(word & !TAG).expect("the word names a block")
}

/// Returns the number of bytes that a word has in itself.
#[inline]
fn short_bytes(word: u64) -> usize {
    debug_assert!(word == NOTHING || is_short(word), "{word:#x} is not of a long value");
    (word >> 4 & 0xf) as usize
}

/// Appends the bytes of a value to `into`. BL2 holds as in [`with_bytes`].
#[cfg(test)]
pub(crate) fn append<A: ?Sized>(word: u64, pin: &A, into: &mut Vec<u8>) {
    with_bytes(word, pin, |bytes| into.extend_from_slice(bytes));
}

/// Calls `with` with the bytes of a value. BL2 holds: `_pin` is that in which the word was read, or
/// belongs to the attempt that has staged it.
pub(crate) fn with_bytes<A: ?Sized, T>(word: u64, _pin: &A, with: impl FnOnce(&[u8]) -> T) -> T {
    if !names_block(word) {
        return with(&word.to_le_bytes()[1..=short_bytes(word)]);
    }
    let block = block_of(word);
    let bytes = length(block);
    if MODELLED {
        let mut copy = Vec::new();
        for index in 0..bytes.div_ceil(WORD_BYTES) {
            // SAFETY: BL2 says that the block is allocated as long as the pin lasts. Relaxed: BL3.
            let word = unsafe { block.word(HEADER_WORDS + index) }.load(Ordering::Relaxed);
            let rest = (bytes - index * WORD_BYTES).min(WORD_BYTES);
            copy.extend_from_slice(&word.to_le_bytes()[..rest]);
        }
        return with(&copy);
    }
    // SAFETY: BL2 says that the block is allocated for as long as the pin lasts, and BL3 that
    // nothing writes its bytes meanwhile.
    with(unsafe { block.bytes(HEADER_WORDS, bytes) })
}

/// Returns the bytes of a value, for as long as `_pin` lasts. BL2 holds as in [`with_bytes`]. Not
/// for models, whose words have other bytes.
#[inline]
pub(crate) fn bytes<'v>(word: &'v LongWord, _pin: Pinned<'v>) -> &'v [u8] {
    let value = word.get();
    if !names_block(value) {
        return &word.bytes()[1..=short_bytes(value)];
    }
    let block = block_of(value);
    // SAFETY: BL2 says that the block is allocated for as long as the pin lasts, and BL3 that
    // nothing writes its bytes meanwhile.
    unsafe { block.bytes(HEADER_WORDS, length(block)) }
}

/// Returns whether two words have the same value: nothing, or the same bytes. BL2 holds for both as
/// in [`with_bytes`].
pub(crate) fn are_equal<A: ?Sized>(one: u64, other: u64, pin: &A) -> bool {
    one == other || names_block(one) && names_block(other) && has_bytes_of(one, other, pin)
}

/// Returns whether a word has or names these bytes. BL2 holds as in [`with_bytes`].
pub(crate) fn has<A: ?Sized>(word: u64, bytes: &[u8], pin: &A) -> bool {
    word != NOTHING && len(word, pin) == bytes.len() && with_bytes(word, pin, |own| own == bytes)
}

/// Returns whether two blocks have the same bytes.
fn has_bytes_of<A: ?Sized>(one: u64, other: u64, pin: &A) -> bool {
    len(one, pin) == len(other, pin)
        && with_bytes(one, pin, |one| with_bytes(other, pin, |other| one == other))
}

/// Returns the number of bytes of a value. BL2 holds as in [`with_bytes`].
#[inline]
pub(crate) fn len<A: ?Sized>(word: u64, _pin: &A) -> usize {
    if names_block(word) { length(block_of(word)) } else { short_bytes(word) }
}

/// Returns the number of bytes in a block that is allocated.
#[inline]
fn length(block: Block) -> usize {
    // SAFETY: the block is allocated, by the caller's argument. Relaxed: BL3.
    unsafe { block.word(KIND_AND_LENGTH) }.load(Ordering::Relaxed) as u32 as usize
}

/// Frees the block that `word` names, and that nothing can reach: the caller has owned it (BL1).
pub(super) fn free(word: u64, memory: &LongMemory, caches: &mut Vec<Option<Cache>>) {
    let block = block_of(word);
    // SAFETY: the block is allocated, and the caller's (BL1). Relaxed: BL3.
    let first = unsafe { block.word(KIND_AND_LENGTH) };
    let kind = first.load(Ordering::Relaxed) >> 32;
    if TAKES_BYTES {
        first.store(kind << 32, Ordering::Relaxed);
    }
    memory.free(block, LongKind(kind as u32), caches);
}

/// Notes that a commit installs the block named by `word`, which its attempt has staged, at
/// `timestamp`. Nothing that can fail follows in that commit.
pub(super) fn note_installed(word: u64, timestamp: u64) {
    debug_assert!(timestamp != NOT_INSTALLED);
    // SAFETY: the attempt owns what it has staged (BL1). Relaxed: BL4.
    unsafe { block_of(word).word(BORN) }.store(timestamp, Ordering::Relaxed);
}

/// Returns the timestamp of the commit that has installed the block named by `word`;
/// [`NOT_INSTALLED`] if none has. The caller owns the block.
pub(super) fn born(word: u64) -> u64 {
    // SAFETY: the block is the caller's (BL1). Relaxed: BL4.
    unsafe { block_of(word).word(BORN) }.load(Ordering::Relaxed)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::memory::{Memory, SlabId};
    use std::sync::Arc;

    fn read(word: u64) -> Vec<u8> {
        let (mut appended, pin) = (vec![9], ());
        append(word, &pin, &mut appended);
        assert_eq!(len(word, &pin), appended.len() - 1);
        appended.split_off(1)
    }

    #[test]
    fn short_bytes_are_in_the_word() {
        for bytes in [&b""[..], b"\0", b"a", b"\xff\xff\xff\xff\xff\xff\xff", b"seven b"] {
            let word = short_word(bytes).unwrap();
            assert!(word != NOTHING && !names_block(word));
            assert_eq!(read(word), bytes);
        }
        assert_eq!(read(NOTHING), b"");
        assert_ne!(short_word(b"a"), short_word(b"a\0"));
        assert_eq!(short_word(b"eight by"), None);
    }

    #[test]
    fn bytes_of_all_lengths_come_back_from_blocks() {
        let memory = LongMemory::new(SlabId(0), &Arc::new(Memory::new(usize::MAX)));
        let mut caches = Vec::new();
        let lengths = (8..100).chain([111, 112, 113, 4080, 65_520, 65_521, 70_000, LONG_BYTES_MAX]);
        let values = lengths.map(|length| {
            let bytes: Vec<u8> = (0..length).map(|index| (index * 31 + length) as u8).collect();
            (allocate(&bytes, &memory, &mut caches).unwrap(), bytes)
        });
        let values: Vec<_> = values.collect();
        for (word, bytes) in &values {
            assert!(read(*word) == *bytes, "{} bytes", bytes.len());
            assert_eq!(born(*word), NOT_INSTALLED);
            note_installed(*word, 7);
            assert_eq!(born(*word), 7);
        }
        assert_eq!(memory.in_use(), values.len() as u64);
        values.iter().for_each(|(word, _)| free(*word, &memory, &mut caches));
        assert_eq!(memory.in_use(), 0);
    }

    #[test]
    fn the_last_word_ends_in_zeros() {
        let memory = LongMemory::new(SlabId(0), &Arc::new(Memory::new(usize::MAX)));
        let mut caches = Vec::new();
        let word = allocate(&[0xff; 40], &memory, &mut caches).unwrap();
        free(word, &memory, &mut caches);
        let word = allocate(b"nine byte", &memory, &mut caches).unwrap();
        // SAFETY: the block belongs to this test.
        let last = unsafe { block_of(word).word(HEADER_WORDS + 1) }.load(Ordering::Relaxed);
        assert_eq!(last, u64::from(b'e'));
    }
}
