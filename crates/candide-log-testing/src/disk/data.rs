//! The bytes of a write.

use std::ops::Range;
use std::sync::Arc;

/// The bytes of a write.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Zeros(u64),
    Bytes(Arc<[u8]>),
}

impl Data {
    /// Returns the bytes of all `parts`, one after the other.
    pub(super) fn new(parts: &[&[u8]]) -> Self {
        if parts.iter().all(|part| is_zero(part)) {
            return Self::Zeros(parts.iter().map(|part| part.len() as u64).sum());
        }
        Self::Bytes(parts.concat().into())
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Zeros(length) => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Returns the first `count` bytes, or all if there are fewer.
    pub(super) fn first(self, count: u64) -> Self {
        match self {
            Self::Zeros(length) => Self::Zeros(length.min(count)),
            Self::Bytes(bytes) if count < bytes.len() as u64 => {
                Self::Bytes(bytes[..count as usize].into())
            }
            whole => whole,
        }
    }

    /// Returns the bytes of `range`, counted from `start`; `None` stands for zeros.
    pub(super) fn bytes(&self, start: u64, range: Range<usize>) -> Option<&[u8]> {
        match self {
            Self::Zeros(_) => None,
            Self::Bytes(bytes) => Some(&bytes[start as usize..][range]),
        }
    }
}

/// Returns whether all bytes are zeros.
fn is_zero(bytes: &[u8]) -> bool {
    // Whole words are compared at once.
    bytes.chunks(1024).all(|chunk| chunk == &[0; 1024][..chunk.len()])
}
