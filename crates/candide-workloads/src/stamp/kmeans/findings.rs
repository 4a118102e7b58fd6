//! The check of each iteration when it ends.

use std::sync::{Arc, Mutex};

use super::points::Points;
use super::tables::{CHUNK, DIMENSIONS_MAX, Found};
use crate::Consistency;
use crate::workload::lock;

/// The number of failures that are described. Further ones are only counted.
const FAILURES_MAX: usize = 20;

/// What a thread has done in the current iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of chunks that it has claimed.
    pub(super) claims: u64,
    /// The number of points that have changed their clusters.
    pub(super) changed: u64,
}

/// The account of the current iteration.
#[derive(Debug, Clone)]
pub(super) struct Iteration {
    /// The iteration's number within its clustering, from 0.
    pub(super) number: usize,
    /// The coordinates of the centres, which do not change within the iteration.
    pub(super) centres: Arc<Vec<f32>>,
    /// The number of chunks that threads have without claiming them.
    pub(super) given: u64,
    /// What threads have done that are at its end or have left.
    pub(super) done: Part,
}

impl Iteration {
    /// Returns the account of the first iteration, in which no thread has points that it need not
    /// claim.
    pub(super) fn first(centres: Arc<Vec<f32>>) -> Iteration {
        Iteration { number: 0, centres, given: 0, done: Part::default() }
    }

    /// Enters what a thread has done.
    pub(super) fn enter(&mut self, part: Part) {
        self.done.claims += part.claims;
        self.done.changed += part.changed;
    }
}

/// The end of an iteration, as the sequential program has found it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    /// The number of points that have changed their clusters.
    pub(super) changed: u64,
    /// The coordinates of the new centres.
    pub(super) centres: Arc<Vec<f32>>,
}

/// The sums of coordinates, as whole numbers.
pub(super) type Sums = [i64; DIMENSIONS_MAX];

/// Returns the sums of the coordinates of all points.
pub(super) fn totals(points: &Points) -> Sums {
    let mut totals = [0; DIMENSIONS_MAX];
    (0..points.len()).for_each(|index| add(&mut totals, &points.whole(index).map(i64::from)));
    totals
}

/// Adds coordinates.
pub(super) fn add(sums: &mut Sums, summands: &Sums) {
    sums.iter_mut().zip(summands).for_each(|(sum, summand)| *sum = sum.wrapping_add(*summand));
}

/// What was found at the ends of iterations.
#[derive(Debug, Default)]
pub(super) struct Findings(Mutex<Consistency>);

impl Findings {
    /// Returns all findings so far.
    pub(super) fn all(&self) -> Consistency {
        lock(&self.0).clone()
    }

    /// Adds a failure.
    pub(super) fn fail(&self, failure: String) {
        lock(&self.0).expect(false, || failure);
    }

    /// Examines the tables at the end of `iteration`, in which each of `points` points should have
    /// been added to one centre: whether they agree with the `totals` of the points, with the
    /// account, and with the end of the same iteration of the sequential program. `centres` are the
    /// new centres that follow from the tables.
    pub(super) fn settle(
        &self,
        points: usize,
        totals: &Sums,
        sequential: Option<&Ended>,
        iteration: &Iteration,
        found: &Found,
        centres: &[f32],
    ) {
        let mut consistency = Consistency::default();
        let Iteration { number, given, done, .. } = iteration;
        let count: u64 = found.centres.iter().map(|row| row.count).sum();
        consistency.expect(count == points as u64, || {
            format!(
                "iteration {number} has added {count} points to centres where there are {points}"
            )
        });
        let mut sums = [0; DIMENSIONS_MAX];
        found.centres.iter().for_each(|row| add(&mut sums, &row.sums));
        consistency.expect(sums == *totals, || {
            format!("iteration {number} has added coordinates up to {sums:?} where those of all points are {totals:?}")
        });
        let claimed = (given + done.claims) * CHUNK as u64;
        consistency.expect(found.next == claimed && claimed >= points as u64, || {
            format!(
                "iteration {number} ended with point {} as the next where {claimed} of {points} were claimed",
                found.next
            )
        });
        consistency.expect(found.changed == done.changed, || {
            format!(
                "iteration {number} has counted {} changes of clusters where there were {}",
                found.changed, done.changed
            )
        });
        let expected = sequential.map(|ended| (ended.changed, &ended.centres[..]));
        consistency.expect(expected == Some((found.changed, centres)), || {
            format!("iteration {number} has other centres than the sequential program finds")
        });
        let mut all = lock(&self.0);
        if all.failed.len() >= FAILURES_MAX {
            consistency.failed.clear();
        }
        all.merge(consistency);
    }
}
