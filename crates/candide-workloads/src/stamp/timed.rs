//! The time of a sequential program.

use std::time::{Duration, Instant};

/// The shortest time in which a sequential program is measured. It is repeated until then.
const MEASURED_MIN: Duration = Duration::from_millis(100);

/// Runs a sequential program until it has been measured for long enough. Returns its result and the
/// shortest time of a run; `None` if it returns `None`, since it was told to stop.
pub(super) fn timed<T>(mut run: impl FnMut() -> Option<T>) -> Option<(T, Duration)> {
    let (all, mut took) = (Instant::now(), Duration::MAX);
    loop {
        let begun = Instant::now();
        let result = run()?;
        took = took.min(begun.elapsed());
        if all.elapsed() >= MEASURED_MIN {
            return Some((result, took));
        }
    }
}
