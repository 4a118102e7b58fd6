//! Bytes from the fuzzer as choices, and as files.

/// Takes choices from the fuzzer's bytes; zeros when there are no more.
#[derive(Debug)]
pub struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    /// Choices from these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices(bytes.iter())
    }

    /// Returns whether there are no more bytes.
    pub fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// A number of eight bytes.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// Returns bytes with the magic number, the version and the checksum of a file of a database.
pub(crate) fn sealed(mut bytes: Vec<u8>, magic: &[u8; 8], version: u32) -> Vec<u8> {
    bytes[..8].copy_from_slice(magic);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let end = bytes.len() - 4;
    let (contents, crc) = bytes.split_at_mut(end);
    crc.copy_from_slice(&crc32c::crc32c(contents).to_le_bytes());
    bytes
}
