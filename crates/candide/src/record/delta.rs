//! Updates that are put off: what a transaction does to one unit, as words of a version, to be applied when somebody reads it.
//!
//! Only what cannot fail can be put off, whatever the row will be by then. A delta is a row of operations, each with a head and its
//! operands, and a zero where there is room left:
//!
//! ```text
//! | words: 16 | word: 16 | bits: 8 | shift: 8 | signed: 8 | code: 8 |   | operand |   ...
//! ```

#![forbid(unsafe_code)]

use super::{Code, Op};
use crate::sync::{AtomicU64, Ordering};

impl Code {
    /// The codes of what can be put off; a head says which by its place here.
    const TOTAL: [Code; 5] = [Code::Set, Code::Max, Code::Min, Code::WrappingAdd, Code::WrappingSub];
}

impl Op {
    /// Whether it succeeds on every row, and what it does can be said in words.
    pub(crate) fn is_total(&self) -> bool {
        Code::TOTAL.contains(&self.code) && !self.at_least && !self.at_most
    }

    /// How many operands it takes, of those that can be put off.
    pub(crate) fn operands(&self) -> usize {
        if self.is_plain() { usize::from(self.words) } else { 1 }
    }

    fn head(&self) -> u64 {
        let code = Code::TOTAL.iter().position(|&code| code == self.code).expect("it is total") as u64;
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

/// Writes operations with their operands into words that nobody else reads yet, which are enough for them.
pub(crate) fn write<'a>(ops: impl Iterator<Item = (Op, &'a [u64])>, words: &[AtomicU64]) {
    let mut words = words.iter();
    let mut push = |value: u64| match words.next() {
        Some(word) => word.store(value, Ordering::Relaxed),
        None => unreachable!("the room was measured"),
    };
    for (op, operands) in ops {
        push(op.head());
        operands.iter().for_each(|&operand| push(operand));
    }
    if let Some(end) = words.next() {
        end.store(0, Ordering::Relaxed);
    }
}

/// Applies what has been written so to an image of the unit.
pub(crate) fn apply(words: &[AtomicU64], image: &mut [u64]) {
    let mut words = words.iter().map(|word| word.load(Ordering::Relaxed));
    while let Some(head) = words.next().filter(|&head| head != 0) {
        let op = Op::of_head(head);
        let first = usize::from(op.word);
        let mut operand = || words.next().expect("operands follow their head");
        if op.is_plain() {
            image[first..][..usize::from(op.words)].fill_with(operand);
        } else {
            image[first] = op.compute(&[operand()], image[first]).expect("it is total");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_off_does_the_same_later() {
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
        for spare in [0, 1, 5] {
            let room = ops.iter().map(|(op, _)| 1 + op.operands()).sum::<usize>() + spare;
            // Whatever was there before.
            let words: Vec<AtomicU64> = (0..room).map(|_| AtomicU64::new(u64::MAX)).collect();
            write(ops.iter().map(|(op, operands)| (*op, operands.as_slice())), &words);
            let (mut later, mut now) = (vec![0x55_0201; 4], vec![0x55_0201; 4]);
            apply(&words, &mut later);
            for (op, operands) in &ops {
                assert!(op.is_total());
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
    fn what_may_fail_is_not_put_off() {
        let add = Op { code: Code::Add, ..Op::set_words(0, 1) };
        assert!(!add.is_total());
        assert!(!Op { code: Code::Max, at_most: true, ..add }.is_total());
        assert!(!Op::DELETE.is_total() && !Op { code: Code::User, ..add }.is_total());
    }
}
