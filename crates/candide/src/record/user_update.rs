//! Updaters that users define, with their types erased.

use super::layout::key_of;
use super::{CellAt, RecordAt};
use crate::error::Abort;
use crate::schema::{ImageSink, Refused, Updater};
use crate::schema::{Key, KeyPacking, Pinned, Projection, Record, Unit, Words, decoded};
use crate::sync::{AtomicU64, Ordering, read_as_is, write_as_is};
use std::mem::MaybeUninit;

/// The largest number of words that an updater's value may take.
const USER_WORDS: usize = 6;
const _: () = assert!(USER_WORDS <= 7, "there are three bits for the number");

/// The shifts of flags and numbers in the head of a deferred updater.
const SPLIT_SHIFT: u32 = 11;

const PACKED_SHIFT: u32 = 12;

const WORDS_SHIFT: u32 = 13;

pub(crate) const ADDRESS_SHIFT: u32 = 16;

type UserValue = [MaybeUninit<u64>; USER_WORDS];

pub(crate) type Run = unsafe fn(&UserUpdate, RecordAt, &mut [u64]) -> Result<(), Abort>;

/// An updater that a user has defined, with its type erased.
#[derive(Clone, Copy)]
pub(crate) struct UserUpdate {
    value: UserValue,
    /// The number of words that the value takes.
    value_words: u8,
    unit: Unit,
    /// Whether the keys of the records are packed.
    is_packed: bool,
    is_total: bool,
    run: Run,
}

// SAFETY: the value was a `U: Updater`, and updaters are `Send`.
unsafe impl Send for UserUpdate {}

impl UserUpdate {
    /// Erases the type of `updater`, which will be applied to `unit` of records. `is_packed` is
    /// whether the keys of these records are packed.
    pub(crate) fn new<R: Record, U: Updater<R>>(
        updater: U,
        unit: Unit,
        is_packed: bool,
    ) -> UserUpdate {
        const {
            assert!(size_of::<U>() <= size_of::<UserValue>(), "an updater has at most 48 bytes");
            assert!(
                align_of::<U>() <= align_of::<UserValue>(),
                "an updater is aligned to at most 8 bytes"
            );
            assert!(
                !U::Target::INDEXED,
                "an updater changes no indexed columns; they are changed by `modify` or `put`"
            );
        }
        let mut value: UserValue = [MaybeUninit::uninit(); USER_WORDS];
        // SAFETY: `value` is large enough and aligned (asserted above), and since `U` is `Copy`,
        // its value needs no drop.
        unsafe { value.as_mut_ptr().cast::<U>().write(updater) };
        let value_words = const { size_of::<U>().div_ceil(size_of::<u64>()) as u8 };
        UserUpdate { value, value_words, unit, is_packed, is_total: U::TOTAL, run: run::<R, U> }
    }

    /// Returns the number of words that the updater takes in a delta. Returns `None` if the updater
    /// is not declared total, or if its function's address is too large for a head.
    pub(crate) fn words_put_off(&self) -> Option<usize> {
        let fits = self.address() >> (u64::BITS - ADDRESS_SHIFT) == 0;
        (self.is_total && fits).then_some(1 + usize::from(self.value_words))
    }

    /// Writes the updater into a delta. Returns the number of words written, which is the number
    /// that [`UserUpdate::words_put_off`] returns.
    ///
    /// ```text
    /// | function: 48 | words: 3 | packed: 1 | split: 1 | 0: 3 | code: 8 |   | value |   ...
    /// ```
    ///
    /// # Safety
    /// The caller owns `words`, in the sense of [`write_as_is`].
    pub(crate) unsafe fn write(&self, code: u8, words: &[AtomicU64]) -> usize {
        let flags = u64::from(self.is_packed) << PACKED_SHIFT
            | u64::from(self.unit.is_split()) << SPLIT_SHIFT;
        let head =
            self.address() << ADDRESS_SHIFT | u64::from(self.value_words) << WORDS_SHIFT | flags;
        words[0].store(head | u64::from(code), Ordering::Relaxed);
        for (word, value) in words[1..][..usize::from(self.value_words)].iter().zip(self.value) {
            // SAFETY: the caller owns the words, by this function's contract. Under models, where
            // words hold only numbers, all updaters are from this crate's tests. All bits of these
            // updaters are initialized and belong to no pointer.
            unsafe { write_as_is(word, value) };
        }
        1 + usize::from(self.value_words)
    }

    /// Returns the updater whose head is `head` and whose value is at the start of `words`, for the
    /// unit at `at`. Also returns the words behind the value.
    ///
    /// # Safety
    /// [`UserUpdate::write`] has written `head` and the value behind it, for an updater of this
    /// unit. During the call, no thread writes the value's words, as [`read_as_is`] requires.
    pub(crate) unsafe fn read<'a>(
        head: u64,
        words: &'a [AtomicU64],
        at: &CellAt,
    ) -> (UserUpdate, &'a [AtomicU64]) {
        let has = |shift: u32| head >> shift & 1 != 0;
        let value_words = (head >> WORDS_SHIFT) as u8 & 7;
        let (own, behind) = words.split_at(usize::from(value_words));
        let mut value: UserValue = [MaybeUninit::uninit(); USER_WORDS];
        for (value, word) in value.iter_mut().zip(own) {
            // SAFETY: these words are not written now, by this function's contract.
            *value = unsafe { read_as_is(word) };
        }
        let run = std::ptr::with_exposed_provenance::<()>((head >> ADDRESS_SHIFT) as usize);
        // SAFETY: `write` took this address from a `Run`, and the address of a function does not
        // change.
        let run = unsafe { std::mem::transmute::<*const (), Run>(run) };
        let unit = at.unit_of(has(SPLIT_SHIFT));
        (
            UserUpdate {
                value,
                value_words,
                unit,
                is_packed: has(PACKED_SHIFT),
                is_total: true,
                run,
            },
            behind,
        )
    }

    fn address(&self) -> u64 {
        (self.run as *const ()).expose_provenance() as u64
    }

    /// Applies the updater to `image`, which holds the words of the updater's unit in `record`.
    pub(crate) fn apply(&self, record: RecordAt, image: &mut [u64]) -> Result<(), Abort> {
        // SAFETY: `new` has instantiated `run` for the type of the value in `value`. Both fields
        // are unchanged since `new`, or were written by `write` and read back by `read`.
        unsafe { (self.run)(self, record, image) }
    }
}

/// # Safety
/// The value of `update` is a `U`.
pub(crate) unsafe fn run<R: Record, U: Updater<R>>(
    update: &UserUpdate,
    record: RecordAt,
    image: &mut [u64],
) -> Result<(), Abort> {
    const { assert!(!U::Target::LONG, "no updater changes strings or bytes of any length") }
    // SAFETY: holds by this function's contract.
    let updater = unsafe { update.value.as_ptr().cast::<U>().read() };
    let unit = update.unit;
    let target = updater.target();
    let mut words = U::Target::EMPTY;
    target.copy(unit, Words::Own(image), &mut words);
    let packing = if update.is_packed { KeyPacking::new(R::Key::WIDTHS) } else { None };
    let key = key_of(record, packing);
    let mut columns = decoded::<R, U::Target>(&target, &key, &words, Pinned::by(image))?;
    if let Err(Refused) = updater.apply(&mut columns) {
        assert!(!U::TOTAL, "an updater that is declared total has refused");
        return Err(Abort::Guard);
    }
    target.assign(&key, &columns, &mut ImageSink::<R>::new(unit, image))
}
