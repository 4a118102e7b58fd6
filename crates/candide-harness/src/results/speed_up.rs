//! The speed-up over the same program without transactions.

use serde::Serialize;

use super::number::median;
use super::run::Run;

/// The comparison with the same program without transactions, on one thread. The names of the
/// fields are the interface to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct SpeedUp {
    /// The transactions that the sequential program would have committed per second, at the median.
    pub(crate) sequential_tps: f64,
    /// The throughput of a run as a multiple of that, at the median.
    pub(crate) speed_up: f64,
}

impl SpeedUp {
    /// Returns the median of all runs for which the sequential program was measured; `None` if
    /// there is no such run.
    pub(crate) fn of(runs: &[Run]) -> Option<SpeedUp> {
        let compared = runs.iter().filter_map(|run| Some((run.sequential_tps?, run.throughput())));
        let (sequential, ratios): (Vec<f64>, Vec<f64>) =
            compared.map(|(sequential, tps)| (sequential, tps / sequential)).unzip();
        (!ratios.is_empty())
            .then(|| SpeedUp { sequential_tps: median(&sequential), speed_up: median(&ratios) })
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
            [run(100, Some(50.0)), run(300, Some(100.0)), run(100, None), run(600, Some(75.0))];
        let expected = SpeedUp { sequential_tps: 75.0, speed_up: 1.5 };
        assert_eq!(SpeedUp::of(&runs), Some(expected));
    }
}
