//! Operations: updates and assignments as data.

#![forbid(unsafe_code)]

use super::long::LongSink;
use super::place::Place;
use crate::error::Abort;

/// The effect of an operation on its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Replaces the words.
    Set,
    /// Adds, refusing to overflow.
    Add,
    /// Subtracts, refusing to overflow.
    Sub,
    /// Adds, wrapping around at the ends of the range.
    WrappingAdd,
    /// Subtracts, wrapping around at the ends of the range.
    WrappingSub,
    /// Raises to at least the operand.
    Max,
    /// Lowers to at most the operand.
    Min,
    /// Runs a user's updater, or a step, over the whole unit.
    User,
    /// Changes no word: the row ceases to exist.
    Delete,
    /// Keeps the word of a value of any length, if the value equals that of the operand.
    Equals,
}

/// One operation on a unit.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub(crate) code: Code,
    /// Whether the numbers are signed.
    pub(crate) signed: bool,
    /// The first bit of a column of less than a word.
    pub(crate) shift: u8,
    /// Whether the operands have a lower bound; and, in `at_most`, whether they have an upper
    /// bound.
    pub(crate) at_least: bool,
    pub(crate) at_most: bool,
    /// The bits of the column, unshifted.
    pub(crate) mask: u64,
    /// The first word within the unit; and, in `words`, the number of words. For a user's updater,
    /// a range with all words that it may change.
    pub(crate) word: u16,
    pub(crate) words: u16,
    /// The position of the operands in the arena: of the words to set, of the number and its two
    /// bounds, or of a word and the value that it is to have. For a user's updater or a step, the
    /// number of its code.
    pub(crate) operand: u32,
}

/// The operand words of an arithmetic operation: the number, the lower bound, the upper bound.
pub(crate) const NUMBER_OPERANDS: usize = 3;
/// Those of a number of two words.
pub(crate) const WIDE_OPERANDS: usize = 2 * NUMBER_OPERANDS;

impl Op {
    /// The operation that ends a row's existence.
    pub(crate) const DELETE: Op = Op {
        code: Code::Delete,
        signed: false,
        shift: 0,
        at_least: false,
        at_most: false,
        mask: u64::MAX,
        word: 0,
        words: 0,
        operand: 0,
    };

    /// Returns the operation that sets words, without its operands.
    #[inline]
    pub(crate) fn set_words(word: u16, words: u16) -> Op {
        Op { code: Code::Set, word, words, ..Op::DELETE }
    }

    /// Returns whether the operation only replaces whole words (or none), without reading them, so
    /// that it cannot fail.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.code, Code::Set | Code::Delete)
            && self.mask == u64::MAX
            && !self.at_least
            && !self.at_most
    }

    #[inline]
    pub(crate) fn is_user(&self) -> bool {
        self.code == Code::User
    }

    #[inline]
    pub(crate) fn is_delete(&self) -> bool {
        self.code == Code::Delete
    }

    /// Returns the beginning and the end of a range of words that contains those that the operation
    /// changes.
    #[inline]
    pub(crate) fn changed(&self) -> (u16, u16) {
        (self.word, self.word + self.words)
    }

    /// Returns whether the operation shares words with `other`, an operation on the same unit.
    #[inline]
    pub(crate) fn overlaps(&self, other: &Op) -> bool {
        self.is_user()
            || self.word < other.word + other.words && other.word < self.word + self.words
    }

    /// Returns the result of this operation on the word `current`, which has a number. The
    /// operation is neither plain nor a user's, so it concerns one word.
    #[inline]
    pub(crate) fn compute(&self, operands: &[u64], current: u64) -> Result<u64, Abort> {
        self.evaluate(operands, current, |_, _| unreachable!("numbers have no guard of bytes"))
    }

    /// Returns the result of this operation as [`Op::compute`] does, also on a word of any length,
    /// whose values `are_equal` compares.
    #[inline]
    pub(crate) fn evaluate(
        &self,
        operands: &[u64],
        current: u64,
        are_equal: impl FnOnce(u64, u64) -> bool,
    ) -> Result<u64, Abort> {
        if self.code == Code::Set && !self.at_least && !self.at_most {
            return Ok(
                current & !(self.mask << self.shift) | (operands[0] & self.mask) << self.shift
            );
        }
        match self.compute_small(operands, current) {
            Some(word) => Ok(word),
            None if self.code == Code::Equals => match are_equal(operands[1], current) {
                true => Ok(current),
                false => Err(Abort::Guard),
            },
            None => self.compute_any(operands, current),
        }
    }

    /// Does the work of [`Op::compute`]; returns `None` if a number is none of `i64`, or the
    /// operation fails.
    #[inline]
    pub(super) fn compute_small(&self, operands: &[u64], current: u64) -> Option<u64> {
        let old = self.small(current >> self.shift)?;
        let operand = self.small(operands[0])?;
        let new = match self.code {
            Code::Set => operand,
            Code::Add => old.checked_add(operand)?,
            Code::Sub => old.checked_sub(operand)?,
            Code::WrappingAdd => self.small((current >> self.shift).wrapping_add(operands[0]))?,
            Code::WrappingSub => self.small((current >> self.shift).wrapping_sub(operands[0]))?,
            Code::Max => old.max(operand),
            Code::Min => old.min(operand),
            Code::User | Code::Delete | Code::Equals => return None,
        };
        if self.at_least && new < self.small(operands[1])?
            || self.at_most && new > self.small(operands[2])?
            || self.small(new as u64)? != new
        {
            return None;
        }
        Some(current & !(self.mask << self.shift) | (new as u64 & self.mask) << self.shift)
    }

    /// Does the work of [`Op::compute`] with numbers of any size.
    #[cold]
    #[inline(never)]
    pub(super) fn compute_any(&self, operands: &[u64], current: u64) -> Result<u64, Abort> {
        let old = self.widen(current >> self.shift);
        let operand = self.widen(operands[0]);
        let new = match self.code {
            Code::Set => operand,
            Code::Add => old + operand,
            Code::Sub => old - operand,
            Code::WrappingAdd => self.widen((current >> self.shift).wrapping_add(operands[0])),
            Code::WrappingSub => self.widen((current >> self.shift).wrapping_sub(operands[0])),
            Code::Max => old.max(operand),
            Code::Min => old.min(operand),
            Code::User | Code::Delete | Code::Equals => {
                unreachable!("the operation computes no number")
            }
        };
        // Guards are checked first: a bound of zero on an unsigned column also guards against
        // results below the column's range.
        if self.at_least && new < self.widen(operands[1])
            || self.at_most && new > self.widen(operands[2])
        {
            return Err(Abort::Guard);
        }
        if self.widen(new as u64) != new {
            return Err(Abort::Overflow);
        }
        Ok(current & !(self.mask << self.shift) | (new as u64 & self.mask) << self.shift)
    }

    /// Returns what the operation adds to the number at a place (word, first bit, and bits); `None`
    /// if it does not simply add. `operands` is the arena of operands.
    pub(crate) fn summand(&self, place: (u16, u8, u64), operands: &[u64]) -> Option<i128> {
        let is_guarded = self.at_least || self.at_most;
        if (self.word, self.shift, self.mask) != place || is_guarded || self.words != 1 {
            return None;
        }
        match self.code {
            Code::Add => Some(self.widen(operands[self.operand as usize])),
            Code::Sub => Some(-self.widen(operands[self.operand as usize])),
            _ => None,
        }
    }

    /// Returns the number in the low bits of `word`; `None` if it is none of `i64`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn small(&self, word: u64) -> Option<i64> {
        let word = word & self.mask;
        if self.signed {
            let unused = self.mask.leading_zeros();
            return Some((word << unused) as i64 >> unused);
        }
        i64::try_from(word).ok()
    }

    /// Returns the number in the low bits of `word`.
    fn widen(&self, word: u64) -> i128 {
        let word = word & self.mask;
        let sign = self.mask ^ self.mask >> 1;
        if self.signed && word & sign != 0 {
            i128::from((word | !self.mask) as i64)
        } else {
            i128::from(word)
        }
    }
}

/// A receiver of the operations of an update or an assignment. A transaction implements this trait.
pub trait Sink: LongSink {
    /// Sets the words at `place` to `word(0)`, `word(1)`, ….
    #[doc(hidden)]
    fn set(&mut self, place: Place, word: impl Fn(usize) -> u64) -> Result<(), Abort>;

    /// Ends the transaction in [`Abort::Guard`] unless the column of any length at `place` has the
    /// value of `word`.
    #[doc(hidden)]
    fn guard(&mut self, _place: Place, _word: u64) -> Result<(), Abort> {
        Ok(())
    }

    /// Computes the number at `place` anew.
    #[doc(hidden)]
    fn compute(&mut self, place: Place, signed: bool, arithmetic: Arithmetic) -> Result<(), Abort>;
}

/// A computation on one number. Numbers of one word have it in the first of two.
#[derive(Debug, Clone, Copy)]
pub struct Arithmetic {
    pub(crate) code: Code,
    pub(crate) operand: [u64; 2],
    pub(crate) at_least: Option<[u64; 2]>,
    pub(crate) at_most: Option<[u64; 2]>,
}
