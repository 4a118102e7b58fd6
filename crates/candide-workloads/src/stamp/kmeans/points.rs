//! The points: their generation, and their coordinates as whole numbers.

use fastrand::Rng;

use super::knobs::Kmeans;
use super::tables::DIMENSIONS_MAX;
use crate::rng;

/// The whole number that stands for the coordinate 1. Coordinates are multiples of its inverse, so
/// that their sums are exact in any order.
pub(super) const ONE: f32 = 65_536.0;

/// The random stream from which points are drawn.
const STREAM: u64 = 1 << 32;

/// All points.
#[derive(Debug)]
pub(super) struct Points {
    dimensions: usize,
    coordinates: Vec<f32>,
}

impl Points {
    /// Draws the points around as many random centres as there are sources, and scales them so that
    /// in each dimension the mean is 0 and the standard deviation is 1.
    pub(super) fn generate(knobs: &Kmeans, seed: u64) -> Points {
        let &Kmeans { points, dimensions, sources, .. } = knobs;
        let mut rng = rng::stream(seed, STREAM);
        let centres: Vec<f64> = (0..sources as usize * dimensions).map(|_| rng.f64()).collect();
        let deviation = (1.0 / f64::from(sources)).powi(3);
        let mut drawn = Vec::with_capacity(points * dimensions);
        for _ in 0..points {
            let source = rng.usize(..sources as usize);
            let centre = &centres[source * dimensions..][..dimensions];
            drawn.extend(centre.iter().map(|at| at + deviation * gaussian(&mut rng)));
        }
        for dimension in 0..dimensions {
            normalise(&mut drawn, dimension, dimensions);
        }
        let coordinates = drawn.iter().map(|&at| (at as f32 * ONE).round() / ONE).collect();
        Points { dimensions, coordinates }
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> usize {
        self.coordinates.len() / self.dimensions
    }

    /// Returns the number of coordinates of each point.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the coordinates of a point.
    pub(super) fn point(&self, index: usize) -> &[f32] {
        &self.coordinates[index * self.dimensions..][..self.dimensions]
    }

    /// Returns the coordinates of a point as whole numbers, followed by zeros.
    pub(super) fn whole(&self, index: usize) -> [i32; DIMENSIONS_MAX] {
        let mut whole = [0; DIMENSIONS_MAX];
        for (whole, at) in whole.iter_mut().zip(self.point(index)) {
            *whole = (at * ONE) as i32;
        }
        whole
    }
}

/// Draws from the normal distribution with mean 0 and deviation 1 (Box and Muller's method).
fn gaussian(rng: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Moves and scales the coordinates of one of the `dimensions` to mean 0 and deviation 1. If all
/// are equal, they become 0.
fn normalise(coordinates: &mut [f64], dimension: usize, dimensions: usize) {
    let all = || coordinates.iter().skip(dimension).step_by(dimensions);
    let count = (coordinates.len() / dimensions) as f64;
    let mean = all().sum::<f64>() / count;
    let deviation = (all().map(|at| (at - mean).powi(2)).sum::<f64>() / count).sqrt();
    let factor = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
    for at in coordinates.iter_mut().skip(dimension).step_by(dimensions) {
        *at = (*at - mean) * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::{Form, Mode};

    #[test]
    fn points_follow_from_the_seed_and_are_normalised() {
        let knobs =
            Kmeans { points: 1_000, dimensions: 3, ..Kmeans::published(Mode::LowSim, Form::Eager) };
        let [points, same, other] = [5, 5, 6].map(|seed| Points::generate(&knobs, seed));
        assert_eq!((points.len(), points.dimensions()), (1_000, 3));
        assert!(points.coordinates == same.coordinates && points.coordinates != other.coordinates);
        for dimension in 0..3 {
            let all = || (0..1_000).map(|index| f64::from(points.point(index)[dimension]));
            let (mean, squares) = (all().sum::<f64>() / 1e3, all().map(|at| at * at).sum::<f64>());
            assert!(mean.abs() < 1e-3, "{mean}");
            assert!((squares / 1e3 - 1.0).abs() < 1e-3, "{squares}");
        }
        let whole = points.whole(7);
        let exact = whole.iter().map(|&whole| whole as f32 / ONE).take(3).collect::<Vec<_>>();
        assert_eq!(exact, points.point(7));
        assert_eq!(whole[3..], [0; DIMENSIONS_MAX - 3]);
    }

    #[test]
    fn equal_points_are_all_at_the_origin() {
        let knobs = Kmeans { points: 1, ..Kmeans::published(Mode::LowSim, Form::Eager) };
        assert_eq!(Points::generate(&knobs, 5).whole(0), [0; DIMENSIONS_MAX]);
    }
}
