//! Sums over rows, by which two copies of a database are compared.
//!
//! The sum of a table is that of the [hashes of its rows](row_hash), modulo 2^64. So it can be kept
//! while rows change, in any order. The sum of a database is that of the [sums of its
//! tables](table_sum), each with the table's name. A table without rows adds nothing.

#![forbid(unsafe_code)]

use crate::format::long_row::LongRow;

/// The first hash of a row and of a name, from the fractional parts of square roots.
const BEGIN: [u64; 2] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b];

/// Mixes a number into a hash, as SplitMix64 does ("Fast splittable pseudorandom number
/// generators", OOPSLA 2014). Numbers that differ make different hashes of one hash, and hashes
/// that differ stay different with one number.
fn mix(hash: u64, number: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Returns the hash of a row: the words of its key and of its columns.
pub fn row_hash(key: &[u64], words: &[u64]) -> u64 {
    let hash = mix(BEGIN[0], key.len() as u64);
    key.iter().chain(words).fold(hash, |hash, word| mix(hash, *word))
}

/// Returns the hash of a row that may have values of any length: that of its key and its columns,
/// and behind them of the words of its values. Columns that are empty or none have no values.
pub fn long_row_hash(row: LongRow<'_>) -> u64 {
    row.value_words().iter().fold(row_hash(row.key, row.words), |hash, word| mix(hash, *word))
}

/// Returns what a table with this name adds to the sum of its database. `rows` is the sum of the
/// hashes of its rows.
pub fn table_sum(name: &str, rows: u64) -> u64 {
    if rows == 0 {
        return 0;
    }
    let mut hash = mix(BEGIN[1], name.len() as u64);
    for bytes in name.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    mix(hash, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::long_row::append_value;
    use std::collections::HashSet;

    #[test]
    fn rows_that_differ_in_one_bit_have_other_hashes() {
        let mut hashes = HashSet::new();
        for word in 0..3 {
            for bit in 0..64 {
                let mut row = [0; 3];
                row[word] = 1 << bit;
                hashes.insert(row_hash(&row[..1], &row[1..]));
                hashes.insert(row_hash(&row[..2], &row[2..]));
            }
        }
        hashes.insert(row_hash(&[0], &[0, 0]));
        hashes.insert(row_hash(&[0, 0], &[0]));
        assert_eq!(hashes.len(), 2 * 3 * 64 + 2);
    }

    #[test]
    fn rows_with_other_values_have_other_hashes() {
        let hash_of = |values: &[(u16, &[u8])]| {
            let (mut words, mut last) = (Vec::new(), None);
            for (place, bytes) in values {
                append_value(&mut words, &mut last, *place, bytes);
            }
            long_row_hash(LongRow::of(&[1], &[0, 0], &words).unwrap())
        };
        let rows: [&[(u16, &[u8])]; 9] = [
            &[],
            &[(0, b"")],
            &[(1, b"")],
            &[(0, b"a")],
            &[(0, b"a\0")],
            &[(1, b"a")],
            &[(0, b"a"), (1, b"")],
            &[(0, b"a"), (1, b"a")],
            &[(0, b"a longer one")],
        ];
        assert_eq!(hash_of(rows[0]), row_hash(&[1], &[0, 0]));
        assert_eq!(rows.into_iter().map(hash_of).collect::<HashSet<_>>().len(), rows.len());
    }

    #[test]
    fn the_sum_has_the_name_of_the_table_and_not_the_order_of_its_rows() {
        let rows = [(1, 10), (2, 20), (3, 10)];
        let sum = |rows: &mut dyn Iterator<Item = &(u64, u64)>| {
            rows.fold(0u64, |sum, (key, word)| sum.wrapping_add(row_hash(&[*key], &[*word])))
        };
        let rows_sum = sum(&mut rows.iter());
        assert_eq!(rows_sum, sum(&mut rows.iter().rev()));
        assert_ne!(rows_sum, sum(&mut [(1, 20), (2, 10), (3, 10)].iter()));
        assert_ne!(table_sum("a", rows_sum), table_sum("b", rows_sum));
        assert_eq!(table_sum("a", 0), 0);
    }
}
