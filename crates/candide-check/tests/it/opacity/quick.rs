//! A hasher for states, whose many small parts the standard one takes long for.

use std::hash::{BuildHasherDefault, Hasher};

/// What a set of states is built with.
pub type Quick = BuildHasherDefault<QuickHasher>;

#[derive(Default)]
pub struct QuickHasher(u64);

impl QuickHasher {
    fn mix(&mut self, part: u64) {
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    fn write_u8(&mut self, part: u8) {
        self.mix(part.into());
    }

    fn write_isize(&mut self, part: isize) {
        self.mix(part as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
