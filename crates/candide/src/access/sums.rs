//! Sums of additions to a number.

#![forbid(unsafe_code)]

/// The place of a number in a unit: its word, its first bit, and its bits.
pub(super) type Place = (u16, u8, u64);

/// What operations add to a number: in all, and the smallest and the largest sum on the way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) all: i128,
    pub(crate) least: i128,
    pub(crate) most: i128,
}

impl Sums {
    pub(super) fn add(&mut self, summand: i128) {
        self.all += summand;
        (self.least, self.most) = (self.least.min(self.all), self.most.max(self.all));
    }
}
