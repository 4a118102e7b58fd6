//! Arithmetic on numbers of two words.

#![forbid(unsafe_code)]

use super::operation::{Code, Op};
use crate::error::Abort;

/// A number: the multiple of 2^128 in it, and the rest. So the sum and the difference of any two
/// numbers of a column are exact, and pairs compare as the numbers do.
type Exact = (i8, u128);

/// Returns the two words as one number.
fn joined(words: [u64; 2]) -> u128 {
    u128::from(words[0]) | u128::from(words[1]) << 64
}

impl Op {
    /// Returns whether the operation computes a number of two words.
    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.words == 2 && !self.is_plain()
    }

    /// Returns the result of this operation on a number of two words, the low one first. The
    /// operands are the words of the number, of the lower bound and of the upper bound.
    #[cold]
    pub(crate) fn compute_wide(
        &self,
        operands: &[u64],
        current: [u64; 2],
    ) -> Result<[u64; 2], Abort> {
        let operand_at = |place: usize| self.exact([operands[2 * place], operands[2 * place + 1]]);
        let (old, operand) = (self.exact(current), operand_at(0));
        let new = match self.code {
            Code::Set => operand,
            Code::Add => add(old, operand),
            Code::Sub => sub(old, operand),
            Code::WrappingAdd => self.of_low(old.1.wrapping_add(operand.1)),
            Code::WrappingSub => self.of_low(old.1.wrapping_sub(operand.1)),
            Code::Max => old.max(operand),
            Code::Min => old.min(operand),
            Code::User | Code::Delete | Code::Equals => {
                unreachable!("neither operation computes a number")
            }
        };
        // Guards are checked first, as those of smaller numbers.
        if self.at_least && new < operand_at(1) || self.at_most && new > operand_at(2) {
            return Err(Abort::Guard);
        }
        if self.of_low(new.1) != new {
            return Err(Abort::Overflow);
        }
        Ok([new.1 as u64, (new.1 >> 64) as u64])
    }

    /// Returns the number in two words.
    fn exact(&self, words: [u64; 2]) -> Exact {
        self.of_low(joined(words))
    }

    /// Returns the number of the column's type that has these bits.
    fn of_low(&self, low: u128) -> Exact {
        (if self.signed && (low as i128) < 0 { -1 } else { 0 }, low)
    }
}

fn add(one: Exact, other: Exact) -> Exact {
    let (low, carries) = one.1.overflowing_add(other.1);
    (one.0 + other.0 + i8::from(carries), low)
}

fn sub(one: Exact, other: Exact) -> Exact {
    let (low, borrows) = one.1.overflowing_sub(other.1);
    (one.0 - other.0 - i8::from(borrows), low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [Code; 7] = [
        Code::Set,
        Code::Add,
        Code::Sub,
        Code::WrappingAdd,
        Code::WrappingSub,
        Code::Max,
        Code::Min,
    ];

    fn words(number: u128) -> [u64; 2] {
        [number as u64, (number >> 64) as u64]
    }

    fn computed(op: &Op, old: u128, operand: u128, bounds: [u128; 2]) -> Result<u128, Abort> {
        let operands = [operand, bounds[0], bounds[1]].map(words).concat();
        op.compute_wide(&operands, words(old)).map(joined)
    }

    #[test]
    fn wide_arithmetic_agrees_with_that_of_the_language() {
        let ends = [0, 1, 2, u128::from(u64::MAX), 1 << 64, i128::MAX as u128, 1 << 127, u128::MAX];
        for (code, old, operand) in CODES
            .into_iter()
            .flat_map(|code| ends.map(|old| ends.map(|operand| (code, old, operand))))
            .flatten()
        {
            let op = Op { code, ..Op::set_words(0, 2) };
            let unsigned = match code {
                Code::Set => Some(operand),
                Code::Add => old.checked_add(operand),
                Code::Sub => old.checked_sub(operand),
                Code::WrappingAdd => Some(old.wrapping_add(operand)),
                Code::WrappingSub => Some(old.wrapping_sub(operand)),
                Code::Max => Some(old.max(operand)),
                _ => Some(old.min(operand)),
            };
            let result = computed(&op, old, operand, [0; 2]);
            assert_eq!(result, unsigned.ok_or(Abort::Overflow), "{code:?} {old} {operand}");
            let (one, other) = (old as i128, operand as i128);
            let signed = match code {
                Code::Set => Some(other),
                Code::Add => one.checked_add(other),
                Code::Sub => one.checked_sub(other),
                Code::WrappingAdd => Some(one.wrapping_add(other)),
                Code::WrappingSub => Some(one.wrapping_sub(other)),
                Code::Max => Some(one.max(other)),
                _ => Some(one.min(other)),
            };
            let result = computed(&Op { signed: true, ..op }, old, operand, [0; 2]);
            let signed = signed.map(|number| number as u128).ok_or(Abort::Overflow);
            assert_eq!(result, signed, "{code:?} {one} {other}");
        }
    }

    #[test]
    fn guards_of_wide_numbers_come_before_overflow() {
        let sub = Op { code: Code::Sub, at_least: true, ..Op::set_words(0, 2) };
        assert_eq!(computed(&sub, 1 << 64, 1, [1 << 63, 0]), Ok(u128::from(u64::MAX)));
        assert_eq!(computed(&sub, 1 << 64, 1, [1 << 64, 0]), Err(Abort::Guard));
        assert_eq!(computed(&sub, 1, 2, [0; 2]), Err(Abort::Guard));
        let signed = Op { signed: true, at_most: true, at_least: false, ..sub };
        let least = i128::MIN as u128;
        assert_eq!(computed(&signed, 0, 1, [0, -1i128 as u128]), Ok(u128::MAX));
        assert_eq!(computed(&signed, 0, 1, [0, -2i128 as u128]), Err(Abort::Guard));
        assert_eq!(computed(&signed, least, 1, [0; 2]), Err(Abort::Overflow));
        assert_eq!(computed(&signed, 5, least, [0, i128::MAX as u128]), Err(Abort::Guard));
    }
}
