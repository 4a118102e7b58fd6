//! Numbers and words as little-endian bytes, and checksums.

#![forbid(unsafe_code)]

use super::{Fault, Malformed};
use std::borrow::Cow;

/// The number of bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// A field of a header whose fields have fixed places. Tests compare these places with
/// `docs/file-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name that the document uses.
    pub name: &'static str,
    /// The place, in bytes from the beginning of the header.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

impl Field {
    /// Returns the field `name` of `size` bytes at `offset`.
    pub(crate) const fn new(name: &'static str, offset: usize, size: usize) -> Field {
        Field { name, offset, size }
    }

    /// Returns the bytes of the field. The header is as long as all its fields.
    pub(crate) fn of(self, header: &[u8]) -> &[u8] {
        &header[self.offset..self.offset + self.size]
    }

    /// Returns the number in a field of at most 8 bytes.
    pub(crate) fn get(self, header: &[u8]) -> u64 {
        let mut bytes = [0; WORD];
        bytes[..self.size].copy_from_slice(self.of(header));
        u64::from_le_bytes(bytes)
    }

    /// Returns the number in a field of at most 4 bytes.
    pub(crate) fn get_u32(self, header: &[u8]) -> u32 {
        debug_assert!(self.size <= 4);
        self.get(header) as u32
    }

    /// Writes bytes, as many as the field has.
    pub(crate) fn put_bytes(self, header: &mut [u8], bytes: &[u8]) {
        header[self.offset..self.offset + self.size].copy_from_slice(bytes);
    }

    /// Writes a number that the field has room for.
    pub(crate) fn put(self, header: &mut [u8], value: u64) {
        debug_assert!(self.size == WORD || value >> (8 * self.size) == 0, "{}", self.name);
        self.put_bytes(header, &value.to_le_bytes()[..self.size]);
    }

    /// Returns an error about this field, with the text `what`.
    pub(crate) fn wrong(self, what: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed::new(self.offset as u64, what)
    }

    /// Checks that the bytes of the field are zeros.
    pub(crate) fn is_zero(self, header: &[u8]) -> Result<(), Malformed> {
        match self.of(header).iter().position(|byte| *byte != 0) {
            Some(at) => {
                Err(Malformed::new((self.offset + at) as u64, "a reserved byte is not zero"))
            }
            None => Ok(()),
        }
    }
}

/// The magic number with which every file begins, and the version that follows, in all versions of
/// the format.
pub(crate) const MAGIC: Field = Field::new("magic", 0, 8);
/// The version of the format.
pub(crate) const FORMAT: Field = Field::new("format version", 8, 4);

/// Writes the magic number and the version, and the checksum of a file or header in its last 4
/// bytes.
pub(crate) fn seal(bytes: &mut [u8], magic: &[u8; 8], version: u32) {
    MAGIC.put_bytes(bytes, magic);
    FORMAT.put(bytes, version.into());
    let (contents, crc) = bytes.split_at_mut(bytes.len() - 4);
    crc.copy_from_slice(&crc32c::crc32c(contents).to_le_bytes());
}

/// Checks a header that [`seal`] has written, in a version up to `known`. The checksum is checked
/// before the version, so a damaged version is reported as damage.
pub(crate) fn unseal(
    bytes: &[u8],
    magic: &[u8; 8],
    known: u32,
    what: &str,
) -> Result<(), Malformed> {
    let found = begins(bytes, magic, what)?;
    check_crc(bytes, what)?;
    if (1..=known).contains(&found) { Ok(()) } else { Err(unknown(what, found, known)) }
}

/// Checks the magic number, and returns the version that the bytes name.
pub(crate) fn begins(bytes: &[u8], magic: &[u8; 8], what: &str) -> Result<u32, Malformed> {
    if bytes.len() < FORMAT.offset + FORMAT.size + 4 {
        let error = format!("{what} ends after {} bytes", bytes.len());
        return Err(Malformed::new(bytes.len() as u64, error).with(Fault::Short));
    }
    if MAGIC.of(bytes) != magic {
        return Err(MAGIC.wrong(format!("this is not {what}")).with(Fault::Magic));
    }
    Ok(FORMAT.get_u32(bytes))
}

/// Checks that the last 4 bytes are the checksum of those before.
pub(crate) fn check_crc(bytes: &[u8], what: &str) -> Result<(), Malformed> {
    let (contents, crc) = bytes.split_at(bytes.len() - 4);
    let (found, is) = (u32_of(crc), crc32c::crc32c(contents));
    if found == is {
        return Ok(());
    }
    let error = format!("the checksum of {what} is {is:#010x}, and it states {found:#010x}");
    Err(Malformed::new(contents.len() as u64, error))
}

/// Returns the error of a version that is later than `known`.
pub(crate) fn unknown(what: &str, found: u32, known: u32) -> Malformed {
    let error = format!("{what} has version {found} of the format; {known} is known");
    FORMAT.wrong(error).with(Fault::Version { found, known })
}

/// Returns the number in 4 bytes.
fn u32_of(bytes: &[u8]) -> u32 {
    Field::new("", 0, 4).get_u32(bytes)
}

/// Returns words as the bytes that a file contains.
pub fn word_bytes(words: &[u64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(words))
    } else {
        Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }
}

/// Returns the bytes of a file as words, without a copy where the bytes are aligned.
///
/// # Errors
/// The number of bytes is not a multiple of 8.
pub fn byte_words(bytes: &[u8]) -> Result<Cow<'_, [u64]>, Malformed> {
    let (words, rest) = bytes.as_chunks::<WORD>();
    if !rest.is_empty() {
        let whole = (bytes.len() - rest.len()) as u64;
        return Err(Malformed::new(whole, "the last word is cut off").with(Fault::Short));
    }
    match bytemuck::try_cast_slice(bytes) {
        Ok(words) if cfg!(target_endian = "little") => Ok(Cow::Borrowed(words)),
        _ => Ok(Cow::Owned(words.iter().map(|word| u64::from_le_bytes(*word)).collect())),
    }
}

/// Returns the checksum of the bytes that follow those whose checksum is `crc`.
pub(crate) fn crc_of_words(crc: u32, words: &[u64]) -> u32 {
    crc32c::crc32c_append(crc, &word_bytes(words))
}

/// A place in bytes that are read from the front.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader that begins at `at`, which lies in the bytes.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    /// Returns the place of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Returns the number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the next `count` bytes, which are a part of `what`.
    pub(crate) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], Malformed> {
        let bytes = self.bytes[self.at..].get(..count).ok_or_else(|| {
            let left = self.left();
            let error = format!("{what} needs {count} bytes, and {left} are left");
            Malformed::new(self.offset(), error).with(Fault::Short)
        })?;
        self.at += count;
        Ok(bytes)
    }

    /// Returns the next number of `size` bytes, at most 8.
    pub(crate) fn number(&mut self, size: usize, what: &str) -> Result<u64, Malformed> {
        Ok(Field::new("", 0, size).get(self.take(size, what)?))
    }
}
