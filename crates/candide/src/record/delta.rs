//! Deltas, or deferred updates. A delta holds the operations of a transaction on one unit. The
//! operations are written into the words of a version, and are applied when the version is read.
//!
//! Only an operation that succeeds on every row can be deferred. A user's updater can be deferred
//! only if the updater is declared total. A delta is a sequence of operations. Each operation is a
//! head, followed by its operands. A zero follows the last operation if the delta has more words:
//!
//! ```text
//! | words: 16 | word: 16 | bits: 8 | shift: 8 | signed: 8 | code: 8 |   | operand |   ...
//! | function: 48 | what the function has to know: 8 | USER: 8 |          | word of the value |   ...
//! ```
//!
//! When an updater that is declared total fails nevertheless, its transaction has already
//! committed. The updater then has no effect on the row. The thread that applies the delta (to read
//! the row or to collect garbage) continues after the failure. If the updater panicked, the panic
//! hook has reported the panic.

use super::CellAt;
use super::user_update::UserUpdate;
use crate::schema::{Code, Op};
use crate::sync::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The code in the head of a user's updater.
const USER: u8 = Code::TOTAL.len() as u8;

impl Code {
    /// The codes of operations that can be deferred. A head holds a code's position in this list.
    const TOTAL: [Code; 5] =
        [Code::Set, Code::Max, Code::Min, Code::WrappingAdd, Code::WrappingSub];
}

impl Op {
    /// Returns the number of words that the operation takes in a delta. Returns `None` if the
    /// operation may fail on some row, computes a number of two words, or is a user's updater (see
    /// [`UserUpdate::words_put_off`] for those).
    pub(crate) fn words_put_off(&self) -> Option<usize> {
        let is_total = Code::TOTAL.contains(&self.code) && !self.at_least && !self.at_most;
        (is_total && !self.is_wide()).then(|| 1 + self.operands())
    }

    /// Returns the number of operands that the operation has in a delta. The operation must be
    /// deferrable.
    pub(crate) fn operands(&self) -> usize {
        if self.is_plain() { usize::from(self.words) } else { 1 }
    }

    fn head(&self) -> u64 {
        let code =
            Code::TOTAL.iter().position(|&code| code == self.code).expect("it is total") as u64;
        let bits = u64::from(self.mask.count_ones());
        let place = u64::from(self.words) << 48 | u64::from(self.word) << 32;
        place | bits << 24 | u64::from(self.shift) << 16 | u64::from(self.signed) << 8 | code
    }

    fn of_head(head: u64) -> Op {
        let byte = |shift: u32| (head >> shift) as u8;
        Op {
            code: Code::TOTAL[usize::from(byte(0))],
            signed: byte(8) != 0,
            shift: byte(16),
            mask: u64::MAX >> (64 - byte(24)),
            ..Op::set_words((head >> 32) as u16, (head >> 48) as u16)
        }
    }
}

/// A deferred operation.
pub(crate) enum PutOff<'a> {
    /// A built-in operation, with its operands.
    BuiltIn(Op, &'a [u64]),
    User(&'a UserUpdate),
}

/// Words for a delta. No other thread reads or writes them.
pub(crate) struct DeltaSpace<'a>(&'a [AtomicU64]);

impl<'a> DeltaSpace<'a> {
    /// # Safety
    /// The caller owns `words`, in the sense of [`write_as_is`](crate::sync::write_as_is), until
    /// the returned space has been dropped.
    pub(super) unsafe fn new(words: &'a [AtomicU64]) -> DeltaSpace<'a> {
        DeltaSpace(words)
    }

    /// Writes `ops` into the space. The space has at least as many words as the sum of the
    /// operations' `words_put_off`.
    pub(crate) fn fill<'b>(self, ops: impl Iterator<Item = PutOff<'b>>) {
        let mut left = self.0;
        for op in ops {
            let taken = match op {
                PutOff::BuiltIn(op, operands) => {
                    left[0].store(op.head(), Ordering::Relaxed);
                    let words = &left[1..][..operands.len()];
                    words
                        .iter()
                        .zip(operands)
                        .for_each(|(word, &operand)| word.store(operand, Ordering::Relaxed));
                    1 + operands.len()
                }
                // SAFETY: the words are ours (`new`).
                PutOff::User(update) => unsafe { update.write(USER, left) },
            };
            left = &left[taken..];
        }
        clear(left);
    }
}

/// Writes the zero that ends a delta. `words` are the words behind the operations. Writes nothing
/// if `words` is empty.
pub(super) fn clear(words: &[AtomicU64]) {
    if let Some(end) = words.first() {
        end.store(0, Ordering::Relaxed);
    }
}

/// Applies the operations of a delta to `image`, which holds the words of the unit at `at`.
///
/// # Safety
/// Only [`DeltaSpace::fill`] and [`clear`] have written `words`, with operations for this unit, and
/// these writes happened before this call. The words are not written during the call.
pub(super) unsafe fn apply(mut words: &[AtomicU64], at: &CellAt, image: &mut Vec<u64>) {
    // SAFETY: by this function's contract.
    while let Some((found, behind)) = unsafe { first_of(words, at) } {
        match found {
            Found::User(update) => apply_user(&update, at, image),
            Found::BuiltIn(op, operands) => {
                let mut operands = operands.iter().map(|word| word.load(Ordering::Relaxed));
                let mut operand = || operands.next().expect("operands follow their head");
                let first = usize::from(op.word);
                if op.is_plain() {
                    image[first..][..usize::from(op.words)].fill_with(operand);
                } else {
                    image[first] = op.compute(&[operand()], image[first]).expect("it is total");
                }
            }
        }
        words = behind;
    }
}

/// Applies the operations of a delta to `row`, the stored words of the unit at `at`. Writes only
/// words that the operations change. `image` is a buffer for users' updaters.
///
/// # Safety
/// The same as for [`apply`]. No other thread reads or writes `row` during the call.
pub(super) unsafe fn apply_in_place(
    mut words: &[AtomicU64],
    at: &CellAt,
    row: &[AtomicU64],
    image: &mut Vec<u64>,
) {
    // SAFETY: by this function's contract.
    while let Some((found, behind)) = unsafe { first_of(words, at) } {
        match found {
            Found::User(update) => {
                image.clear();
                image.extend(row.iter().map(|word| word.load(Ordering::Relaxed)));
                apply_user(&update, at, image);
                let changed =
                    |(word, value): &(&AtomicU64, &u64)| word.load(Ordering::Relaxed) != **value;
                row.iter()
                    .zip(image.iter())
                    .filter(changed)
                    .for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
            }
            Found::BuiltIn(op, operands) => {
                let mut operands = operands.iter().map(|word| word.load(Ordering::Relaxed));
                let to = &row[usize::from(op.word)..][..usize::from(op.words)];
                if op.is_plain() {
                    to.iter()
                        .zip(operands)
                        .for_each(|(to, value)| to.store(value, Ordering::Relaxed));
                } else {
                    let operand = operands.next().expect("operands follow their head");
                    let value = op.compute(&[operand], to[0].load(Ordering::Relaxed));
                    to[0].store(value.expect("it is total"), Ordering::Relaxed);
                }
            }
        }
        words = behind;
    }
}

/// An operation that is read from a delta.
enum Found<'a> {
    /// A built-in operation, with its operands.
    BuiltIn(Op, &'a [AtomicU64]),
    User(UserUpdate),
}

/// Returns the first operation of a delta, and the words behind that operation; `None` if no
/// operation is left.
///
/// # Safety
/// The same as for [`apply`].
unsafe fn first_of<'a>(
    words: &'a [AtomicU64],
    at: &CellAt,
) -> Option<(Found<'a>, &'a [AtomicU64])> {
    let (head, behind) = words.split_first()?;
    let head = head.load(Ordering::Relaxed);
    if head == 0 {
        return None;
    }
    if head as u8 == USER {
        // SAFETY: by this function's contract, an updater for this unit was written here, and no
        // thread writes the words during the call.
        let (update, behind) = unsafe { UserUpdate::read(head, behind, at) };
        return Some((Found::User(update), behind));
    }
    let op = Op::of_head(head);
    let (operands, behind) = behind.split_at(op.operands());
    Some((Found::BuiltIn(op, operands), behind))
}

/// Applies a user's updater to `image`. If the updater fails, `image` is left unchanged, even if
/// the updater had already changed some words.
fn apply_user(update: &UserUpdate, at: &CellAt, image: &mut Vec<u64>) {
    let count = image.len();
    image.extend_from_within(..);
    let (row, before) = image.split_at_mut(count);
    let applied = catch_unwind(AssertUnwindSafe(|| update.apply(at.record(), row)));
    if !matches!(applied, Ok(Ok(()))) {
        row.copy_from_slice(before);
    }
    image.truncate(count);
    if let Err(panic) = applied {
        // Dropping the panic's payload may panic again. The second panic's payload is forgotten.
        catch_unwind(AssertUnwindSafe(|| drop(panic))).unwrap_or_else(std::mem::forget);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, RecordAt};
    use super::*;
    use crate::memory::Block;
    use crate::schema::Group;

    #[test]
    fn a_deferred_update_has_the_same_result_later() {
        let number = |code, signed, bits: u32, shift, word| Op {
            code,
            signed,
            shift,
            mask: u64::MAX >> (64 - bits),
            ..Op::set_words(word, 1)
        };
        let ops = [
            (Op::set_words(1, 2), vec![7, 8]),
            (number(Code::WrappingAdd, false, 8, 16, 0), vec![0xff]),
            (number(Code::WrappingSub, true, 64, 0, 3), vec![1]),
            (number(Code::Max, true, 16, 0, 1), vec![0xffff]),
            (number(Code::Min, false, 32, 32, 2), vec![3]),
            (number(Code::Set, false, 8, 0, 0), vec![0x42]),
        ];
        let block =
            Block::at(ops[0].1.as_ptr().expose_provenance() as u64).expect("it has operands");
        // SAFETY: no word of the record is read.
        let record = unsafe { RecordAt::new(block) };
        let at =
            Layout::new(0, 1, None, &[Group::new("only", 4)], true, 0).unwrap().first_of(record);
        for spare in [0, 1, 5] {
            let room = ops.iter().map(|(op, _)| op.words_put_off().unwrap()).sum::<usize>() + spare;
            // The words are not zero at first, to show that their old contents do not matter.
            let words: Vec<AtomicU64> = (0..room).map(|_| AtomicU64::new(u64::MAX)).collect();
            let put_off = ops.iter().map(|(op, operands)| PutOff::BuiltIn(*op, operands));
            // SAFETY: the words are ours.
            unsafe { DeltaSpace::new(&words) }.fill(put_off);
            let (mut later, mut now) = (vec![0x55_0201; 4], vec![0x55_0201; 4]);
            // SAFETY: the words have just been written, and are still ours.
            unsafe { apply(&words, &at, &mut later) };
            let stored = [0x55_0201; 4].map(AtomicU64::new);
            // SAFETY: as above; and the stored words belong to this function.
            unsafe { apply_in_place(&words, &at, &stored, &mut Vec::new()) };
            assert_eq!(stored.map(|word| word.load(Ordering::Relaxed)), later[..]);
            for (op, operands) in &ops {
                assert_eq!(op.words_put_off(), Some(1 + operands.len()));
                let word = usize::from(op.word);
                match op.is_plain() {
                    true => now[word..][..operands.len()].copy_from_slice(operands),
                    false => now[word] = op.compute(operands, now[word]).unwrap(),
                }
            }
            assert_eq!(later, now);
            assert_eq!(later, [0x54_0242, 7, 0x3_0000_0008 & 0xffff_ffff, 0x55_0200]);
        }
    }

    #[test]
    fn an_update_that_may_fail_is_not_deferred() {
        let add = Op { code: Code::Add, ..Op::set_words(0, 1) };
        for op in [
            add,
            Op { code: Code::Max, at_most: true, ..add },
            Op::DELETE,
            Op { code: Code::User, ..add },
            Op { code: Code::WrappingAdd, ..Op::set_words(0, 2) },
        ] {
            assert_eq!(op.words_put_off(), None);
        }
    }
}
