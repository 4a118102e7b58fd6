//! The verdict on noise: whether the threads had their cores.

use super::doubt::{CORE_SHARE_MIN, DOUBTS};
use super::notes::label;
use super::report::Report;

/// The verdict on the noise of a report.
pub(crate) struct Noise {
    /// Whether all threads had their cores.
    pub(crate) is_quiet: bool,
    /// The verdict in sentences.
    pub(crate) words: String,
}

impl Noise {
    /// Judges a report; `None` if the system does not report how long threads waited for a core.
    pub(crate) fn of(report: &Report) -> Option<Noise> {
        let known = report.results.iter().filter_map(|result| Some((result.core_share?, result)));
        let mut known: Vec<_> = known.collect();
        known.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let &(least, worst) = known.first()?;
        let noisy = known.iter().filter(|(share, _)| *share < CORE_SHARE_MIN).count();
        let words = match noisy {
            0 => format!("Quiet: every thread had at least {least:.2} of a core. {DOUBTS}."),
            noisy => format!(
                "Noise: in {noisy} of {} settings a thread had less than {CORE_SHARE_MIN} of a core; the least was \
                 {least:.2} (in {}). Other programs, or more threads than cores, took the rest. {DOUBTS}.",
                known.len(),
                label(worst)
            ),
        };
        Some(Noise { is_quiet: noisy == 0, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{Sample, measurement, report};

    #[test]
    fn the_verdict_names_the_setting_with_the_least_of_a_core() {
        let of = |shares: &[Option<f64>]| {
            let sample = |threads| Sample { protocol: 0, threads, cu: true, ts: true, tps: 1.0 };
            let results = shares.iter().enumerate().map(|(index, &core_share)| {
                let mut result = measurement("tpcc", sample(index + 1));
                result.core_share = core_share;
                result
            });
            Noise::of(&report(results.collect()))
        };
        let quiet = of(&[Some(0.99), Some(0.94), None]).expect("known");
        assert!(quiet.is_quiet && quiet.words.starts_with("Quiet: every thread had at least 0.94"));
        let noisy = of(&[Some(0.99), Some(0.53), Some(0.7)]).expect("known");
        assert!(!noisy.is_quiet);
        assert!(noisy.words.starts_with("Noise: in 2 of 3 settings a thread had less than 0.8"));
        assert!(
            noisy.words.contains("the least was 0.53 (in tpcc occ, 2 threads)"),
            "{}",
            noisy.words
        );
        assert!(of(&[None]).is_none());
    }
}
