//! Whether a ratio of two throughputs can be told from noise.

use serde::Serialize;

use super::number::{median, range};

/// A reason why a ratio of two throughputs says nothing. Such ratios are neither printed nor drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// A thread had less than 0.8 of a core.
    Cores,
    /// There was one run, whose spread is not known.
    OneRun,
    /// The runs differ more from each other than the two throughputs do.
    Spread,
}

/// The least share of a core with which a thread must have been measured. The share is that of the
/// time in which the thread could have run.
pub(crate) const CORE_SHARE_MIN: f64 = 0.8;

/// The sentence that explains when a ratio is in doubt.
pub(crate) const DOUBTS: &str = "No ratio is given where a thread had less than 0.8 of a core, where there was one run \
                                 only, or where the runs differ more from each other than the two throughputs do";

impl Doubt {
    /// Returns the reason in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Doubt::Cores => "a thread had less than 0.8 of a core",
            Doubt::OneRun => "one run only",
            Doubt::Spread => "within the spread of the runs",
        }
    }

    /// Returns the doubt about a measurement whose threads had at least the share `least` of a
    /// core, if that is known, in so many runs.
    pub fn of_runs(least: Option<f64>, runs: usize) -> Option<Doubt> {
        match (least, runs) {
            (Some(share), _) if share < CORE_SHARE_MIN => Some(Doubt::Cores),
            (_, 0 | 1) => Some(Doubt::OneRun),
            _ => None,
        }
    }

    /// Returns the doubt about the ratio of the medians of two lists of throughputs, which were not
    /// measured in turns.
    pub(crate) fn of_medians(one: &Sampled<'_>, other: &Sampled<'_>) -> Option<Doubt> {
        let least = least_share(one.core_share, other.core_share);
        Doubt::of_runs(least, one.runs.len().min(other.runs.len())).or_else(|| {
            let spread = |runs| {
                let (low, high) = range(runs);
                high - low
            };
            let apart = (median(one.runs) - median(other.runs)).abs();
            (apart < spread(one.runs).max(spread(other.runs))).then_some(Doubt::Spread)
        })
    }

    /// Returns the doubt about the median of `ratios`, each of which is within a round: whether the
    /// median is further from 1 than the ratios are from each other.
    pub fn of_ratios(ratios: &[f64], core_share: Option<f64>) -> Option<Doubt> {
        Doubt::of_runs(core_share, ratios.len()).or_else(|| {
            let (low, high) = range(ratios);
            let apart = median(ratios).ln().abs();
            (apart < (high / low).ln()).then_some(Doubt::Spread)
        })
    }
}

/// The throughputs of the runs of a setting, and the least share of a core that a thread had.
pub(crate) struct Sampled<'a> {
    pub(crate) runs: &'a [f64],
    pub(crate) core_share: Option<f64>,
}

/// Returns the smaller of two shares of a core. A share that is not known is not compared.
pub fn least_share(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(runs: &'a [f64], core_share: Option<f64>) -> Sampled<'a> {
        Sampled { runs, core_share }
    }

    #[test]
    fn medians_closer_than_the_spread_of_the_runs_are_in_doubt() {
        let base = of(&[100.0, 101.0, 103.0], Some(0.99));
        let doubt = |runs: &[f64]| Doubt::of_medians(&of(runs, Some(0.9)), &base);
        assert_eq!(doubt(&[105.0, 104.5, 105.5]), None, "4 apart, and 3 of spread");
        assert_eq!(doubt(&[102.0, 103.0, 104.0]), Some(Doubt::Spread), "2 apart");
        assert_eq!(doubt(&[80.0, 110.0, 140.0]), Some(Doubt::Spread), "the other one spreads");
        assert_eq!(doubt(&[500.0]), Some(Doubt::OneRun));
        assert_eq!(doubt(&[]), Some(Doubt::OneRun));
    }

    #[test]
    fn ratios_of_threads_without_a_core_are_in_doubt_however_large() {
        let (slow, fast) = ([1.0, 1.0], [73.62, 73.62]);
        let doubt = |share| Doubt::of_medians(&of(&fast, share), &of(&slow, Some(1.0)));
        assert_eq!(doubt(Some(0.79)), Some(Doubt::Cores));
        assert_eq!(doubt(Some(0.8)), None);
        assert_eq!(doubt(None), None, "the system does not report it");
        assert_eq!(Doubt::of_ratios(&fast, Some(0.5)), Some(Doubt::Cores));
    }

    #[test]
    fn ratios_within_rounds_are_told_if_all_lie_on_one_side() {
        let doubt = |ratios: &[f64]| Doubt::of_ratios(ratios, Some(1.0));
        assert_eq!(doubt(&[1.5, 2.0, 2.6]), None);
        assert_eq!(doubt(&[0.5, 0.45, 0.55]), None);
        assert_eq!(doubt(&[0.99, 1.02, 1.03]), Some(Doubt::Spread));
        assert_eq!(doubt(&[1.0, 1.3, 2.0]), Some(Doubt::Spread));
        assert_eq!(doubt(&[0.0, 2.0, 2.0]), Some(Doubt::Spread), "nothing committed in a round");
        assert_eq!(doubt(&[73.62]), Some(Doubt::OneRun));
    }
}
