//! What is known of the transactions of the leaders of generations.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// How many generations before that of the last object a standby notes.
pub(super) const EARLIER: usize = 3;

const IS_KNOWN: u64 = 1;
const HAS_ENDED: u64 = 2;
const HAS_STAMPS: u64 = 4;
const STAMPS_SHIFT: u32 = 3;

/// What is known of generations, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Generations(BTreeMap<u64, Generation>);

/// What is known of the transactions of a generation's leader.
#[derive(Debug, Clone, Copy, Default)]
struct Generation {
    /// The largest cut up to which they have been applied.
    cut: u64,
    /// Their stamp generation, as long as all objects have been applied from one of this generation
    /// on. The leader may have been ended before it had sent them all, and send the rest in a later
    /// generation.
    own: Option<u64>,
    /// Whether no further ones can come.
    has_ended: bool,
}

/// A generation as it is noted: what is known, and its cut.
pub(super) type Words = [u64; 2];

impl Generations {
    /// Returns what was noted of the generations before one, the nearest first.
    pub(super) fn of(generation: u64, earlier: &[Words; EARLIER]) -> Generations {
        let mut known = BTreeMap::new();
        for (number, [flags, cut]) in (1..generation).rev().zip(*earlier) {
            if flags & IS_KNOWN != 0 {
                let own = (flags & HAS_STAMPS != 0).then_some(flags >> STAMPS_SHIFT);
                known.insert(number, Generation { cut, own, has_ended: flags & HAS_ENDED != 0 });
            }
        }
        Generations(known)
    }

    /// Returns what is to be noted of the generations before one, and forgets all before.
    pub(super) fn earlier(&mut self, generation: u64) -> [Words; EARLIER] {
        self.0 = self.0.split_off(&generation.saturating_sub(EARLIER as u64));
        let mut earlier = [[0; 2]; EARLIER];
        for (number, words) in (1..generation).rev().zip(&mut earlier) {
            if let Some(Generation { cut, own, has_ended }) = self.0.get(&number) {
                let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
                let flags = flag(*has_ended, HAS_ENDED) | flag(own.is_some(), HAS_STAMPS);
                *words = [IS_KNOWN | flags | own.unwrap_or(0) << STAMPS_SHIFT, *cut];
            }
        }
        earlier
    }

    /// Notes that an object has been applied, as [`Reached::reach`](super::reached::Reached::reach)
    /// does.
    pub(super) fn reach(&mut self, generation: u64, own: u64, (stamps, cut): (u64, u64)) {
        self.0.entry(generation).or_default().own = Some(own);
        for of in self.0.values_mut().filter(|of| !of.has_ended) {
            match of.own {
                Some(own) if own == stamps => of.cut = of.cut.max(cut),
                Some(own) if own < stamps => of.has_ended = true,
                _ => {}
            }
        }
    }

    /// Notes that stamps begin anew: no transactions of earlier generations come any more.
    pub(super) fn end(&mut self) {
        self.0.values_mut().filter(|of| of.own.is_some()).for_each(|of| of.has_ended = true);
    }

    /// Notes that a snapshot has taken the place of objects: what they had is not known.
    pub(super) fn leap(&mut self) {
        self.0.values_mut().for_each(|of| of.own = None);
    }

    /// Returns whether a stamp of a generation has been reached; `None` if it may still come.
    pub(super) fn has(&self, generation: u64, stamp: u64) -> Option<bool> {
        match self.0.get(&generation) {
            Some(of) if of.cut >= stamp => Some(true),
            Some(of) if of.has_ended => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_back() {
        let mut known = Generations::default();
        known.reach(1, 1, (1, 10));
        known.reach(2, 2, (2, 20));
        known.leap();
        known.reach(4, 9, (9, 40));
        known.end();
        known.reach(6, 3, (3, 50));
        let earlier = known.earlier(6);
        let mut read = Generations::of(6, &earlier);
        for generation in 1..6 {
            for stamp in [1, 20, 40, 41] {
                let expected = if generation < 3 { None } else { known.has(generation, stamp) };
                assert_eq!(read.has(generation, stamp), expected, "{generation} {stamp}");
            }
        }
        assert_eq!((read.has(3, 1), read.has(5, 1)), (None, None));
        assert_eq!((read.has(4, 40), read.has(4, 41)), (Some(true), Some(false)));
        assert_eq!(read.earlier(6), earlier);
    }
}
