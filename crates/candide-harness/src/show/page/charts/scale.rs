//! Scales from zero to a round number: the position at which a number is drawn, and the ticks.

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
    fn a_scale_of_zeros_alone_is_valid() {
        assert_eq!(Scale::new(0.0, 0.0, 100.0, 4).place(0.0), 0.0);
    }
}
