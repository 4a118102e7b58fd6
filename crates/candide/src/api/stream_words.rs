//! The words of exports, and their checksums.

#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

/// Returns a checksum of words: FNV-1a over words, with a rotation after each. Without the rotation
/// the upper bits of a word would not reach the lower bits of the sum, and two errors could cancel
/// each other.
pub(super) fn checksum(words: &[u64]) -> u64 {
    checksum_from(0xcbf2_9ce4_8422_2325, words)
}

/// Returns the checksum of words that come behind those with the checksum `sum`.
pub(super) fn checksum_from(sum: u64, words: &[u64]) -> u64 {
    let add =
        |sum: u64, &word: &u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    words.iter().fold(sum, add)
}

pub(super) fn write_words(to: &mut dyn Write, words: &[u64]) -> io::Result<()> {
    words.iter().try_for_each(|word| to.write_all(&word.to_le_bytes()))
}

/// Sets the first word of `line` to `count`, and writes the words of `line` and their checksum.
pub(super) fn write_line(to: &mut dyn Write, count: usize, line: &mut [u64]) -> io::Result<()> {
    line[0] = count as u64;
    write_words(to, line)?;
    write_words(to, &[checksum(line)])
}

/// Writes a piece of rows with columns of any length.
pub(super) fn write_piece(to: &mut dyn Write, count: usize, rows: &[u64]) -> io::Result<()> {
    let head = [count as u64, rows.len() as u64];
    let sum = checksum(&head);
    write_words(to, &head)?;
    write_words(to, &[sum])?;
    write_words(to, rows)?;
    write_words(to, &[checksum_from(checksum_from(sum, &[sum]), rows)])
}

/// Reads `count` words, and appends them to `words`. If the stream is shorter, no memory is taken
/// for the missing words.
pub(super) fn read_words(
    from: &mut dyn Read,
    count: usize,
    words: &mut Vec<u64>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let length = count * size_of::<u64>();
    if from.take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (chunks, _) = bytes.as_chunks();
    words.extend(chunks.iter().map(|&word| u64::from_le_bytes(word)));
    Ok(())
}

pub(super) fn read_word(from: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
