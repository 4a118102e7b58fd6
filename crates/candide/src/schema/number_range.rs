//! Ranges of numbers in the words of a unit.

#![forbid(unsafe_code)]

use super::summand::Number;
use super::words::Words;
use std::ops::{Bound, RangeBounds};

/// The place of a number within a unit, and a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    word: u16,
    shift: u8,
    mask: u64,
    signed: bool,
    /// The smallest number of the range; and, in `most`, the largest.
    least: i128,
    most: i128,
}

/// Numbers beyond those of every column.
const BELOW_ALL: i128 = i128::MIN / 4;
const ABOVE_ALL: i128 = i128::MAX / 4;

impl NumberRange {
    /// Returns `range` for the number of type `T` that begins at bit `shift` of word `word` of its
    /// unit, and whose bits, unshifted, are `mask`.
    pub(crate) fn new<T: Number>(
        (word, shift, mask): (u16, u8, u64),
        range: &impl RangeBounds<T>,
    ) -> NumberRange {
        let least = match range.start_bound() {
            Bound::Included(first) => first.widen(),
            Bound::Excluded(before) => before.widen() + 1,
            Bound::Unbounded => BELOW_ALL,
        };
        let most = match range.end_bound() {
            Bound::Included(last) => last.widen(),
            Bound::Excluded(end) => end.widen() - 1,
            Bound::Unbounded => ABOVE_ALL,
        };
        NumberRange { word, shift, mask, signed: T::SIGNED, least, most }
    }

    /// Returns whether a number is in the range.
    pub(crate) fn has(&self, number: i128) -> bool {
        (self.least..=self.most).contains(&number)
    }

    /// Returns the number in the words of a unit.
    pub(crate) fn number(&self, words: Words<'_>) -> i128 {
        let word = words.get(usize::from(self.word)) >> self.shift & self.mask;
        let sign = self.mask ^ self.mask >> 1;
        if self.signed && word & sign != 0 {
            i128::from((word | !self.mask) as i64)
        } else {
            i128::from(word)
        }
    }

    /// Returns whether the number's type has `number`.
    pub(crate) fn is_possible(&self, number: i128) -> bool {
        let (least, most) = self.of_type();
        (least..=most).contains(&number)
    }

    /// Returns the smallest and the largest number of the number's type.
    fn of_type(&self) -> (i128, i128) {
        let values = i128::from(self.mask) + 1;
        let least = if self.signed { -values / 2 } else { 0 };
        (least, least + values - 1)
    }

    /// Returns the largest range around `number` whose numbers are all in this range, or all not.
    pub(crate) fn around(self, number: i128) -> NumberRange {
        let (least, most) = match number {
            _ if self.has(number) => (self.least, self.most),
            _ if self.least > self.most => (BELOW_ALL, ABOVE_ALL),
            below if below < self.least => (BELOW_ALL, self.least - 1),
            _ => (self.most + 1, ABOVE_ALL),
        };
        NumberRange { least, most, ..self }
    }

    /// Returns the range of the numbers that are in this range after `summand` is added.
    pub(crate) fn before_adding(self, summand: i128) -> NumberRange {
        NumberRange { least: self.least - summand, most: self.most - summand, ..self }
    }

    /// Returns the range of those numbers of this range to which either summand can be added
    /// without an overflow.
    pub(crate) fn where_sums_are_possible(self, least: i128, most: i128) -> NumberRange {
        let of_type = self.of_type();
        let (first, last) = (of_type.0 - least, of_type.1 - most);
        NumberRange { least: self.least.max(first), most: self.most.min(last), ..self }
    }

    /// Returns the number's place: word, first bit, and bits.
    pub(crate) fn place(&self) -> (u16, u8, u64) {
        (self.word, self.shift, self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: (u16, u8, u64) = (0, 0, u64::MAX);

    #[test]
    fn a_number_in_a_part_of_a_word_has_its_sign() {
        let range = NumberRange::new::<i8>((1, 8, 0xff), &(-2..3));
        let number = |word| range.number(Words::Own(&[0, word]));
        assert_eq!([number(0xfe00), number(0x02ff), number(0x1_7f00)], [-2, 2, 127]);
        assert_eq!([-3, -2, 2, 3].map(|number| range.has(number)), [false, true, true, false]);
        assert_eq!(
            [-129, -128, 127, 128].map(|n| range.is_possible(n)),
            [false, true, true, false]
        );
        let range = NumberRange::new::<u64>(WORD, &(..));
        assert_eq!(range.number(Words::Own(&[u64::MAX])), i128::from(u64::MAX));
        assert_eq!([-1, 1 << 64].map(|number| range.is_possible(number)), [false; 2]);
        assert!(NumberRange::new::<i64>(WORD, &(..)).is_possible(i64::MIN.into()));
    }

    #[test]
    fn the_range_around_a_number_has_one_answer_and_shifts_with_additions() {
        let range = NumberRange::new::<i64>(WORD, &(10..=20));
        let around = |number| {
            let around = range.around(number);
            [9, 10, 20, 21].map(|number| around.has(number))
        };
        assert_eq!(around(15), [false, true, true, false]);
        assert_eq!(around(9), [true, false, false, false]);
        assert_eq!(around(21), [false, false, false, true]);
        let before = range.before_adding(4);
        assert_eq!([5, 6, 16, 17].map(|number| before.has(number)), [false, true, true, false]);
        let small = NumberRange::new::<u8>((0, 0, 0xff), &(10..));
        let possible = small.where_sums_are_possible(-20, 50);
        let has = |range: NumberRange| [19, 20, 205, 206].map(|number| range.has(number));
        assert_eq!(has(possible), [false, true, true, false]);
        assert_eq!(has(small), [true; 4]);
        let nothing = NumberRange::new::<i64>(WORD, &(5..5));
        assert!(nothing.around(7).has(i64::MIN.into()) && nothing.around(7).has(i64::MAX.into()));
    }
}
