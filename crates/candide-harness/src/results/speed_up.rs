//! The speed-up over the same program without transactions.

use serde::Serialize;

use super::doubt::{Doubt, least_share};
use super::number::median;
use super::run::Run;

/// The comparison with the same program without transactions, on one thread. The names of the
/// fields are the interface to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct SpeedUp {
    /// The transactions that the sequential program would have committed per second, at the median.
    pub(crate) sequential_tps: f64,
    /// The throughput of a run as a multiple of that, at the median; `None` if it is in doubt.
    pub(crate) speed_up: Option<f64>,
    /// The reason why the speed-up is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speed_up_doubt: Option<Doubt>,
}

impl SpeedUp {
    /// Returns the median of all runs for which the sequential program was measured; `None` if
    /// there is no such run.
    pub(crate) fn of(runs: &[Run]) -> Option<SpeedUp> {
        let compared = runs.iter().filter_map(|run| Some((run.sequential_tps?, run.throughput())));
        let (sequential, ratios): (Vec<f64>, Vec<f64>) =
            compared.map(|(sequential, tps)| (sequential, tps / sequential)).unzip();
        let core_share = runs.iter().map(|run| run.core_share).fold(None, least_share);
        (!ratios.is_empty()).then(|| {
            let speed_up_doubt = Doubt::of_ratios(&ratios, core_share);
            let speed_up = speed_up_doubt.is_none().then(|| median(&ratios));
            SpeedUp { sequential_tps: median(&sequential), speed_up, speed_up_doubt }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn speed_ups_of_runs_are_those_over_their_own_sequential_program() {
        let run = |committed, sequential_tps| {
            let mut run = Run::new(1);
            run.elapsed = Duration::from_secs(2);
            run.kinds[0].committed = committed;
            run.sequential_tps = sequential_tps;
            run
        };
        assert_eq!(SpeedUp::of(&[run(100, None)]), None);
        let runs =
            [run(200, Some(50.0)), run(440, Some(100.0)), run(100, None), run(360, Some(75.0))];
        let told = SpeedUp { sequential_tps: 75.0, speed_up: Some(2.2), speed_up_doubt: None };
        assert_eq!(SpeedUp::of(&runs), Some(told));
        let doubt = |runs: &[Run]| SpeedUp::of(runs).expect("compared").speed_up_doubt;
        assert_eq!(doubt(&runs[..1]), Some(Doubt::OneRun));
        assert_eq!(doubt(&[run(100, Some(50.0)), run(600, Some(75.0))]), Some(Doubt::Spread));
        assert_eq!(SpeedUp::of(&runs[..1]).and_then(|told| told.speed_up), None);
    }
}
