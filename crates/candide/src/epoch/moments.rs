//! The times, in milliseconds, at which past epochs ended.
//!
//! The number of an epoch gives the epoch's age only if every epoch lasts for a millisecond. Epochs
//! are longer on a busy machine, and shorter if commits use up the epochs' numbers. So each pass of
//! the advancer stores a mark: an epoch, and a moment at which that epoch had begun. Marks are kept
//! in levels, and older marks are sparser: each level keeps every second mark of the level before.
//! So the number of marks grows with the logarithm of the number of passes.

#![forbid(unsafe_code)]

use super::number::Epoch;
use crate::sync::{Instant, Mutex, lock};
use std::collections::VecDeque;

/// A number of milliseconds since the epochs of a process began. If explicit calls move the epochs,
/// a moment is the number of an epoch.
pub(crate) type Moment = u64;

/// The largest number of marks of a level. The error of an age is at most the age divided by this
/// number, plus one pass: ages are never too long.
const MARKS_MAX: usize = 64;

/// The record of the moments at which epochs began.
#[derive(Debug)]
pub(super) struct Moments {
    begun: Instant,
    marks: Mutex<Marks>,
}

impl Moments {
    pub(super) fn new() -> Moments {
        Moments { begun: Instant::now(), marks: Mutex::default() }
    }

    /// Returns the present moment.
    pub(super) fn now(&self) -> Moment {
        self.begun.elapsed().as_millis().try_into().unwrap_or(Moment::MAX)
    }

    /// Notes that `epoch` has just begun.
    pub(super) fn mark(&self, epoch: Epoch) {
        let now = self.now();
        lock(&self.marks).push(epoch, now);
    }

    /// Returns the moment at which `epoch` ended, or a somewhat later moment. Returns the present
    /// moment if no pass has seen the end of `epoch`.
    pub(super) fn end_of(&self, epoch: Epoch) -> Moment {
        let end = lock(&self.marks).end_of(epoch);
        end.unwrap_or_else(|| self.now())
    }
}

/// Marks: epochs with moments at which they had begun, level by level. A full level drops one of
/// its two oldest marks, and moves the other to the next level.
#[derive(Debug, Default)]
struct Marks(Vec<VecDeque<(Epoch, Moment)>>);

impl Marks {
    fn push(&mut self, epoch: Epoch, moment: Moment) {
        let mut mark = Some((epoch, moment));
        for level in 0.. {
            let Some(newest) = mark.take() else { return };
            if level == self.0.len() {
                self.0.push(VecDeque::new());
            }
            let marks = &mut self.0[level];
            marks.push_back(newest);
            if marks.len() > MARKS_MAX {
                // The later of the two oldest marks is kept: an epoch between the two has ended by
                // the later moment.
                marks.pop_front();
                mark = marks.pop_front();
            }
        }
    }

    fn end_of(&self, epoch: Epoch) -> Option<Moment> {
        let later = self.0.iter().flatten().filter(|&&(began, _)| began > epoch);
        later.map(|&(_, moment)| moment).min()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn marks_give_the_end_of_each_epoch_and_are_bounded() {
        let mut marks = Marks::default();
        let (passes, slow) = (100_000, 7);
        for epoch in 1..=passes {
            marks.push(epoch, epoch * slow);
        }
        for epoch in 1..passes {
            let (end, told) =
                ((epoch + 1) * slow, marks.end_of(epoch).expect("later epochs have begun"));
            let age_max = passes * slow - end;
            assert!(told - end <= age_max / (MARKS_MAX as u64 - 1), "{epoch}: {told}, {end}");
        }
        assert_eq!(marks.end_of(passes), None);
        assert!(marks.0.iter().map(VecDeque::len).sum::<usize>() < 12 * MARKS_MAX);
    }

    #[test]
    fn the_end_of_an_epoch_is_not_before_the_arrival_of_its_session() {
        let mut marks = Marks::default();
        (1..=10).for_each(|epoch| marks.push(epoch, epoch));
        // The advancer sleeps for an hour.
        (11..=200_000).for_each(|epoch| marks.push(epoch, 3_600_000 + epoch));
        assert!(marks.end_of(10).is_some_and(|end| end > 3_600_000));
        assert!(marks.end_of(9).is_some_and(|end| end >= 10));
    }
}
