//! The order of the changes of a log by table and key.
//!
//! A stretch of the log has millions of changes, whose keys lie all over it. So the words of a key
//! are packed into one number, of as many bits as the keys of the table need at each place, and
//! numbers are compared. Only where 64 bits are not enough, keys with the same number are compared
//! themselves.

use crate::log::batches::Place;
use std::collections::BTreeMap;

/// The changes of one table.
#[derive(Debug, Default)]
struct OfTable {
    /// The bits that are set in any key, for each word; `None` if keys have different lengths, as
    /// no writer has them.
    bits: Option<Vec<u64>>,
    changes: Vec<Numbered>,
}

/// A change: the number of its key, and its place in a step of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered {
    number: u64,
    pub(crate) place: Place,
    pub(crate) step: u32,
}

/// Returns changes in the order of their tables and keys, and those of one row in their own order.
/// `changes` has the step of each, its table and its place, and `key` returns its key.
pub(crate) fn by_row<'a>(
    changes: impl Iterator<Item = (u32, u32, Place)>,
    key: impl Fn(u32, Place) -> &'a [u64],
) -> Vec<Numbered> {
    let mut tables: BTreeMap<u32, OfTable> = BTreeMap::new();
    for (step, table, place) in changes {
        let (table, key) = (tables.entry(table).or_default(), key(step, place));
        if table.changes.is_empty() {
            table.bits = Some(key.to_vec());
        }
        table.bits.take_if(|bits| bits.len() != key.len());
        if let Some(bits) = &mut table.bits {
            bits.iter_mut().zip(key).for_each(|(bits, word)| *bits |= word);
        }
        table.changes.push(Numbered { number: 0, place, step });
    }
    let mut order = Vec::with_capacity(tables.values().map(|table| table.changes.len()).sum());
    for OfTable { bits, mut changes } in tables.into_values() {
        let key = |change: &Numbered| key(change.step, change.place);
        let widths: Vec<u32> =
            bits.iter().flatten().map(|bits| u64::BITS - bits.leading_zeros()).collect();
        changes.iter_mut().for_each(|change| change.number = number_of(&widths, key(change)));
        if bits.is_some() && widths.iter().sum::<u32>() <= u64::BITS {
            changes.sort_by_key(|change| change.number);
        } else {
            changes.sort_by(|a, b| a.number.cmp(&b.number).then_with(|| key(a).cmp(key(b))));
        }
        order.append(&mut changes);
    }
    order
}

/// Returns the first 64 bits of the words of a key, which have these widths.
fn number_of(widths: &[u32], key: &[u64]) -> u64 {
    let (mut number, mut left) = (0u64, u64::BITS);
    for (width, word) in widths.iter().zip(key) {
        let taken = left.min(*width);
        let first = word.checked_shr(width - taken).unwrap_or(0);
        number = number.checked_shl(taken).unwrap_or(0) | first;
        left -= taken;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    /// Checks the order of rows with keys of up to `words` words below two to the power of `bits`,
    /// of which some are the same.
    fn check(words: usize, bits: u32, has_lengths: bool) {
        let word = || random::word() >> (u64::BITS - bits);
        let draw = |_| {
            let length = if has_lengths { random::word() as usize % (words + 1) } else { words };
            ((random::word() % 3) as u32, (0..length).map(|_| word()).collect::<Vec<u64>>())
        };
        let mut rows: Vec<(u32, Vec<u64>)> = (0..100).map(draw).collect();
        rows.extend_from_within(..50);
        let changes = (0..).zip(&rows).map(|(step, (table, _))| (step, *table, Place::default()));
        let order = by_row(changes, |step, _| &rows[step as usize].1);
        let order: Vec<u32> = order.into_iter().map(|change| change.step).collect();
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|place| &rows[*place as usize]);
        assert_eq!(order, expected, "{rows:?}");
    }

    #[test]
    fn changes_are_in_the_order_of_tables_and_keys_and_then_in_their_own() {
        for words in 0..5 {
            for bits in [1, 2, 7, 16, 21, 33, 63, 64] {
                check(words, bits, false);
                check(words, bits, true);
            }
        }
    }

    #[test]
    fn the_number_of_a_key_has_its_first_bits() {
        assert_eq!(number_of(&[], &[]), 0);
        assert_eq!(number_of(&[64, 64], &[3, 4]), 3);
        assert_eq!(number_of(&[0, 64], &[0, 5]), 5);
        assert_eq!(number_of(&[4, 8], &[2, 3]), 0x203);
        assert_eq!(number_of(&[32, 64], &[1, 0xff << 56]), 1 << 32 | 0xff << 24);
    }
}
