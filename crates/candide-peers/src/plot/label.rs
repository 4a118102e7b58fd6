//! The placement of the labels of points: near their points, and without overlaps.

use super::svg::Point;

/// A label at a greater distance from its point needs a line to the point.
pub(super) const NEAR: f64 = 17.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn around((x, y): Point, width: f64, height: f64) -> Area {
        Area {
            left: x - width / 2.0,
            top: y - height / 2.0,
            right: x + width / 2.0,
            bottom: y + height / 2.0,
        }
    }

    fn shared(&self, other: &Area) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0.0) * height.max(0.0)
    }

    fn within(&self, other: &Area) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }

    fn contains(&self, (x, y): Point) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }
}

/// The areas that labels must avoid.
pub(super) struct Obstacles {
    pub(super) bounds: Area,
    pub(super) taken: Vec<Area>,
    pub(super) lines: Vec<(Point, Point)>,
}

impl Obstacles {
    /// Returns the centre of a label for the point `at`, and marks the label's area as taken.
    pub(super) fn place(&mut self, at: Point, width: f64, height: f64) -> Point {
        let spots = (0..6)
            .flat_map(|ring| (0..16).map(move |direction| (f64::from(ring), f64::from(direction))));
        let spots = spots.map(|(ring, direction)| {
            let (sin, cos) = (direction * std::f64::consts::TAU / 16.0).sin_cos();
            // The ring is wider than high, as labels are.
            let away = 11.0 + 9.0 * ring;
            let spot = (at.0 + cos * (away + width / 2.0 - 4.0), at.1 - sin * away);
            (self.cost(at, spot, width, height), spot)
        });
        let best =
            spots.min_by(|one, other| one.0.total_cmp(&other.0)).map_or(at, |(_, spot)| spot);
        self.taken.push(Area::around(best, width, height));
        best
    }

    fn cost(&self, at: Point, spot: Point, width: f64, height: f64) -> f64 {
        let area = Area::around(spot, width, height);
        if !area.within(&self.bounds) {
            return f64::INFINITY;
        }
        let shared: f64 = self.taken.iter().map(|taken| area.shared(taken)).sum();
        let crossed = self.lines.iter().filter(|&&(from, to)| crosses(&area, from, to)).count();
        40.0 * shared + 5.0 * crossed as f64 + (spot.0 - at.0).hypot(spot.1 - at.1)
    }
}

/// Returns whether a line touches an area. The line is sampled in steps that are small compared
/// with the size of a label.
fn crosses(area: &Area, from: Point, to: Point) -> bool {
    let steps = ((to.0 - from.0).hypot(to.1 - from.1) / 3.0).ceil().max(1.0);
    (0..=steps as u32).any(|step| {
        let part = f64::from(step) / steps;
        area.contains((from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1)))
    })
}

#[cfg(test)]
mod tests {
    use super::{Area, Obstacles};

    #[test]
    fn labels_of_one_point_do_not_cover_one_another() {
        let bounds = Area { left: 0.0, top: 0.0, right: 200.0, bottom: 200.0 };
        let mut obstacles =
            Obstacles { bounds, taken: Vec::new(), lines: vec![((0.0, 0.0), (200.0, 200.0))] };
        for _ in 0..8 {
            obstacles.place((10.0, 190.0), 24.0, 10.0);
        }
        for (index, one) in obstacles.taken.iter().enumerate() {
            assert!(one.within(&bounds));
            assert!(obstacles.taken[..index].iter().all(|other| one.shared(other) == 0.0));
        }
    }
}
