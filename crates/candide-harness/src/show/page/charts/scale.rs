//! Scales: the position at which a number is drawn, and the ticks. Most scales are linear, from
//! zero to a round number; those of latencies are logarithmic.

use super::super::markup::escape;
use super::super::number::short;

/// A linear scale from zero.
pub(crate) struct Scale {
    /// The position of zero.
    zero: f64,
    /// The position of `end`.
    far: f64,
    /// The round number at the end of the scale.
    end: f64,
    step: f64,
}

impl Scale {
    /// Creates a scale from the position `zero` to the position `far` that reaches at least `most`,
    /// with about `ticks` ticks beside zero.
    pub(crate) fn new(most: f64, zero: f64, far: f64, ticks: usize) -> Scale {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_step(most / ticks as f64);
        // If `step` divides `most` evenly, a rounding error must not add another step.
        let steps = (most / step - 1e-9).ceil().max(1.0);
        Scale { zero, far, end: steps * step, step }
    }

    /// Returns the position at which `value` is drawn.
    pub(crate) fn place(&self, value: f64) -> f64 {
        self.zero + value / self.end * (self.far - self.zero)
    }

    /// Returns the values of the ticks: zero, and every step up to the end.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        (0..=(self.end / self.step).round() as usize).map(|tick| tick as f64 * self.step).collect()
    }
}

/// Returns the smallest number that is 1, 2, 2.5 or 5 times a power of ten and not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|factor| factor * power >= least * (1.0 - 1e-9))
        .unwrap_or(10.0);
    factor * power
}

/// A logarithmic scale between two powers of ten.
pub(crate) struct LogScale {
    /// The positions of the two ends.
    near: f64,
    far: f64,
    /// The exponents of the two powers of ten.
    low: i32,
    high: i32,
}

/// The smallest exponent of a logarithmic scale. Smaller values are drawn at its beginning.
const EXPONENT_MIN: i32 = -3;

impl LogScale {
    /// Creates a scale from the position `near` to the position `far` that includes all `values`.
    pub(crate) fn new(values: impl Iterator<Item = f64>, near: f64, far: f64) -> LogScale {
        let exponents = values.filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) = exponents
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), next| {
                (next.min(low), next.max(high))
            });
        if low > high {
            return LogScale { near, far, low: 0, high: 1 };
        }
        // A rounding error must not add a decade.
        let low = ((low + 1e-9).floor() as i32).max(EXPONENT_MIN);
        let high = ((high - 1e-9).ceil() as i32).max(low + 1);
        LogScale { near, far, low, high }
    }

    /// Returns the position at which `value` is drawn.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let exponent = value.max(f64::MIN_POSITIVE).log10().max(low);
        self.near + (exponent - low) / (high - low) * (self.far - self.near)
    }

    /// Returns the values of the ticks: all powers of ten.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|exponent| 10_f64.powi(exponent))
    }
}

/// Returns a tick of a horizontal logarithmic axis, as [`plumb`] does for a linear one.
pub(crate) fn log_plumb(value: f64, x: f64, top: f64, bottom: f64) -> String {
    plumb(value, x, top, bottom, Some(&short(value))).replacen("<g ", "<g data-log=\"\" ", 1)
}

/// Returns a tick of the vertical axis, whose line is from `left` to `right`.
pub(crate) fn level(value: f64, y: f64, left: f64, right: f64, unit: &str) -> String {
    let class = if value == 0.0 { "tick zero" } else { "tick" };
    format!(
        "<g class=\"{class}\" data-axis=\"y\" data-value=\"{value}\">\
         <line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.2}\" y2=\"{y:.2}\"/>\
         <text x=\"{:.2}\" y=\"{:.2}\" text-anchor=\"end\">{}{}</text></g>\n",
        left - 6.0,
        y + 4.0,
        short(value),
        escape(unit),
    )
}

/// Returns a tick of the horizontal axis, whose line is from `top` to `bottom`. `label`, if given,
/// stands below the line.
pub(crate) fn plumb(value: f64, x: f64, top: f64, bottom: f64, label: Option<&str>) -> String {
    let class = if value == 0.0 { "tick zero" } else { "tick" };
    let text = label.map(|label| {
        format!(
            "<text x=\"{x:.2}\" y=\"{:.2}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            escape(label)
        )
    });
    format!(
        "<g class=\"{class}\" data-axis=\"x\" data-value=\"{value}\">\
         <line x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{top:.2}\" y2=\"{bottom:.2}\"/>{}</g>\n",
        text.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_begin_at_zero_and_end_at_a_round_number_that_is_enough() {
        for most in [1e-4, 0.03, 0.999, 1.0, 3.0, 5.0, 17.0, 100.0, 123_456.0, 311_000.0, 1e9] {
            for count in [3, 4, 5] {
                let scale = Scale::new(most, 10.0, 110.0, count);
                let ticks = scale.ticks();
                assert_eq!((ticks[0], scale.place(0.0)), (0.0, 10.0));
                let end = ticks[ticks.len() - 1];
                assert!(end >= most * (1.0 - 1e-9) && end <= most * 2.6, "{most} of {end}");
                assert!((2..=count + 1).contains(&ticks.len()), "{} ticks for {most}", ticks.len());
                assert!((scale.place(end) - 110.0).abs() < 1e-9);
                assert!((scale.place(end / 2.0) - 60.0).abs() < 1e-9, "linear");
            }
        }
        assert_eq!(Scale::new(311_000.0, 0.0, 1.0, 4).ticks(), [0.0, 1e5, 2e5, 3e5, 4e5]);
        assert_eq!(Scale::new(5.0, 0.0, 1.0, 5).ticks(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn logarithmic_scales_reach_from_one_power_of_ten_to_another() {
        let scale = |values: &[f64]| LogScale::new(values.iter().copied(), 10.0, 110.0);
        let ticks = |values: &[f64]| scale(values).ticks().collect::<Vec<_>>();
        assert_eq!(ticks(&[0.7, 31.0, 250.0]), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(ticks(&[1.0, 100.0]), [1.0, 10.0, 100.0]);
        assert_eq!(ticks(&[10.0]), [10.0, 100.0], "one value");
        assert_eq!(ticks(&[]), [1.0, 10.0], "none");
        let places = [1.0, 10.0, 100.0, 31.622_776].map(|value| scale(&[1.0, 100.0]).place(value));
        let expected = [10.0, 60.0, 110.0, 85.0];
        assert!(places.iter().zip(expected).all(|(place, at)| (place - at).abs() < 1e-4));
        assert_eq!(scale(&[1.0, 100.0]).place(0.0), 10.0, "zero is at the beginning");
        let tick = log_plumb(0.1, 10.0, 2.0, 50.0);
        assert!(tick.contains("data-log") && tick.contains(">0.1</text>"), "{tick}");
    }

    #[test]
    fn a_scale_of_zeros_alone_is_valid() {
        assert_eq!(Scale::new(0.0, 0.0, 100.0, 4).place(0.0), 0.0);
    }
}
