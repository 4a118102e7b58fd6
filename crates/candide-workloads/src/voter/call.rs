//! The calls: the caller's telephone number and the contestant.

use fastrand::Rng;

use super::area_codes::area_codes;
use super::{TELEPHONES, Voter};

/// The number of a contestant that does not exist.
const NO_CONTESTANT: u32 = 999;

/// One transaction's inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) telephone: u64,
    pub(super) contestant: u32,
}

/// The source of the calls of one thread, which are drawn during the measurement. Replayed calls
/// would soon all be refused, and drawing a call takes only a few nanoseconds.
pub(super) struct Calls {
    rng: Rng,
    areas: Vec<u16>,
    /// The contestant that each area favours.
    favourites: Vec<u32>,
    contestants: u32,
    telephones: u32,
    invalid_pct: u32,
}

impl Calls {
    pub(super) fn new(knobs: &Voter, rng: Rng) -> Self {
        let areas: Vec<u16> = area_codes().map(|(code, _)| code).collect();
        let &Voter { contestants, telephones, invalid_pct, .. } = knobs;
        let favourites = (0..areas.len()).map(|area| favourite(area, contestants)).collect();
        Calls { rng, areas, favourites, contestants, telephones, invalid_pct }
    }

    pub(super) fn draw(&mut self) -> Call {
        let rng = &mut self.rng;
        let area = rng.usize(..self.areas.len());
        let number = rng.u32(..self.telephones);
        let contestant = if rng.u32(..100) < self.invalid_pct {
            NO_CONTESTANT
        } else if rng.bool() {
            rng.u32(1..=self.contestants)
        } else {
            self.favourites[area]
        };
        Call {
            telephone: u64::from(self.areas[area]) * u64::from(TELEPHONES) + u64::from(number),
            contestant,
        }
    }
}

/// Returns the contestant that an area favours, by the area's index in the list. All threads get
/// the same contestant for an area. Three areas in ten favour the first contestant, and the others
/// a random one.
fn favourite(area: usize, contestants: u32) -> u32 {
    let mut rng = crate::stream(0, area as u64);
    if rng.u32(..100) < 30 { 1 } else { rng.u32(1..=contestants) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    #[test]
    fn calls_come_from_known_areas_and_one_in_a_hundred_is_for_no_contestant() {
        let mut calls = Calls::new(&Voter { telephones: 5, ..Voter::strict() }, stream(1, 0));
        let (mut unknown, mut first) = (0, 0);
        for _ in 0..100_000 {
            let call = calls.draw();
            let (area, telephone) = (call.telephone / 10_000_000, call.telephone % 10_000_000);
            assert!(telephone < 5 && area_codes().any(|(code, _)| u64::from(code) == area));
            assert!(call.contestant == NO_CONTESTANT || (1..=6).contains(&call.contestant));
            unknown += u32::from(call.contestant == NO_CONTESTANT);
            first += u32::from(call.contestant == 1);
        }
        assert!((900..1_100).contains(&unknown), "{unknown}");
        // Of the calls for any contestant, a sixth are for the first. Of the calls for the area's
        // favourite, three tenths are for the first contestant, and so are a sixth of the rest.
        assert!((24_000..34_000).contains(&first), "{first}");
    }
}
