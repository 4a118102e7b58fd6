//! A scale. A scale maps values to places along an axis, and has the values that label the axis.

use super::rows::short;

pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Creates a linear scale from zero to a round number that is not below `most`.
    pub(super) fn linear(most: f64) -> Scale {
        let most = if most > 0.0 { most } else { 1.0 };
        let rough = most / 5.0;
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = magnitude
            * [1.0, 2.0, 5.0, 10.0]
                .into_iter()
                .find(|step| step * magnitude >= rough)
                .unwrap_or(10.0);
        let steps = (most / step).ceil();
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let ticks = (0..=steps as u32).map(|index| f64::from(index) * step);
        Scale {
            low: 0.0,
            high: steps * step,
            logarithmic: false,
            ticks: ticks.map(|value| (value, format!("{value:.digits$}"))).collect(),
        }
    }

    /// Creates a logarithmic scale over `rows`, numbers of rows in ascending order, with some room
    /// on both sides.
    pub(super) fn logarithmic(rows: &[usize]) -> Scale {
        let (least, most) = (rows.first().copied().unwrap_or(1), rows.last().copied().unwrap_or(1));
        let room = if least == most { 0.5 } else { 0.05 * (most as f64 / least as f64).log10() };
        let of = |multiples: &[usize]| -> Vec<usize> {
            let powers = (0..usize::MAX.ilog10()).map(|power| 10usize.pow(power));
            let all = powers.flat_map(|power| {
                multiples.iter().map(move |multiple| multiple.saturating_mul(power))
            });
            all.filter(|value| (least..=most).contains(value)).collect()
        };
        let (powers, thirds) = (of(&[1]), of(&[1, 2, 5]));
        let ticks = if powers.len() > 1 {
            powers
        } else if thirds.len() > 1 {
            thirds
        } else {
            rows.to_vec()
        };
        Scale {
            low: (least as f64).log10() - room,
            high: (most as f64).log10() + room,
            logarithmic: true,
            ticks: ticks.into_iter().map(|rows| (rows as f64, short(rows))).collect(),
        }
    }

    /// Returns the place of a value: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.log10() } else { value };
        (value - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    fn written(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_linear_scale_begins_with_zero_and_ends_above_the_most() {
        assert_eq!(written(&Scale::linear(9.3)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(written(&Scale::linear(0.23)), ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25"]);
        assert_eq!(written(&Scale::linear(0.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Scale::linear(10.0).place(5.0), 0.5);
    }

    #[test]
    fn a_logarithmic_scale_has_ticks_however_short_it_is() {
        assert_eq!(
            written(&Scale::logarithmic(&[10_000, 100_000, 10_000_000])),
            ["10k", "100k", "1M", "10M"]
        );
        assert_eq!(written(&Scale::logarithmic(&[20_000, 70_000])), ["20k", "50k"]);
        assert_eq!(written(&Scale::logarithmic(&[1234])), ["1.23k"]);
        assert!((Scale::logarithmic(&[100, 10_000]).place(1000.0) - 0.5).abs() < 1e-9);
    }
}
