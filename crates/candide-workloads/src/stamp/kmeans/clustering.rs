//! What the program computes without transactions: the nearest centre, and new centres.

use super::points::{ONE, Points};
use super::tables::Centre;

/// The number that stands for no cluster.
pub(super) const NO_CLUSTER: u32 = u32::MAX;

/// The largest number of iterations of a clustering.
pub(super) const ITERATIONS_MAX: usize = 500;

/// The seed by which a clustering chooses its first centres, as in STAMP.
const SEED: u64 = 7;

/// A candidate is nearer than the best centre so far if the ratio of their squared distances is
/// below this, as in STAMP.
const NEARER: f32 = 0.99999;

/// Returns the first centres: the coordinates of random points, among which may be repetitions.
pub(super) fn first_centres(points: &Points, clusters: u32) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(SEED);
    let random = (0..clusters).map(|_| points.point(rng.usize(..points.len())));
    random.flatten().copied().collect()
}

/// Returns the number of the centre that is nearest to `point`. `centres` has the coordinates of
/// all centres, one centre after the other.
pub(super) fn nearest(point: &[f32], centres: &[f32]) -> u32 {
    let (mut nearest, mut least) = (0, f32::MAX);
    for (number, centre) in (0..).zip(centres.chunks_exact(point.len())) {
        let distance: f32 = point.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
        if distance / least < NEARER {
            (nearest, least) = (number, distance);
            if least == 0.0 {
                break;
            }
        }
    }
    nearest
}

/// Moves a centre to the mean of its points. A centre without points stays where it is.
pub(super) fn recentre(centre: &mut [f32], count: u64, sums: &[i64]) {
    if count > 0 {
        for (at, &sum) in centre.iter_mut().zip(sums) {
            *at = (sum as f64 / count as f64 / f64::from(ONE)) as f32;
        }
    }
}

/// Returns whether another iteration follows one in which `changed` of `points` points have changed
/// their clusters, and which is number `iteration`, from 0.
pub(super) fn goes_on(changed: u64, points: usize, threshold: f64, iteration: usize) -> bool {
    changed as f64 / points as f64 > threshold && iteration + 1 < ITERATIONS_MAX
}

/// Returns the new centres that follow from the points which the rows of `found` have added up.
pub(super) fn new_centres(old: &[f32], dimensions: usize, found: &[Centre]) -> Vec<f32> {
    let mut centres = old.to_vec();
    for (centre, row) in centres.chunks_exact_mut(dimensions).zip(found) {
        recentre(centre, row.count, &row.sums);
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_must_be_nearer_by_more_than_rounding() {
        let centres = [3.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.999_999];
        assert_eq!(nearest(&[0.0, 0.0], &centres), 1);
        assert_eq!(nearest(&[3.0, 0.0], &centres), 0);
        assert_eq!(nearest(&[0.9, 0.1], &centres), 2);
    }

    #[test]
    fn centres_without_points_stay() {
        let mut centre = [1.0, 2.0];
        recentre(&mut centre, 0, &[7, 7]);
        assert_eq!(centre, [1.0, 2.0]);
        recentre(&mut centre, 2, &[65_536, -131_072]);
        assert_eq!(centre, [0.5, -1.0]);
    }

    #[test]
    fn clusterings_end_at_the_threshold_or_after_500_iterations() {
        assert!(goes_on(6, 100, 0.05, 0) && !goes_on(5, 101, 0.05, 0));
        assert!(goes_on(100, 100, 0.05, 498) && !goes_on(100, 100, 0.05, 499));
    }
}
