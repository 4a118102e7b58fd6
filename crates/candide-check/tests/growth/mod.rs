//! How the time that something takes grows with what it is given.

use std::fs;
use std::time::{Duration, Instant};

/// By how much the greater one of two inputs is greater.
pub const TIMES: usize = 16;

/// By how much the time may grow. In proportion it grows by [`TIMES`], and by somewhat more where the greater one leaves the caches; by
/// the square it would grow by 256.
const GROWTH_MAX: f64 = 64.0;

/// Asserts that `check` takes time in proportion to its input: `large` is [`TIMES`] what `small` is. It is given the time that this
/// thread has had, which does not depend on what else the machine does.
pub fn assert_in_proportion<T>(what: &str, small: T, large: T, check: impl Fn(T)) {
    let began = Instant::now();
    let [short, long] = [small, large].map(|input| {
        let before = had(began);
        check(input);
        had(began) - before
    });
    println!("{what}: {long:.2?}, and {short:.2?} for a sixteenth");
    assert!(long.as_secs_f64() < GROWTH_MAX * short.as_secs_f64(), "{what}: {short:?}, then {long:?}");
}

/// The time that this thread has had; where the system does not say that, how long it is since it `began`.
fn had(began: Instant) -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_processor = statistics.and_then(|text| text.split_whitespace().next()?.parse().ok());
    on_processor.map_or_else(|| began.elapsed(), Duration::from_nanos)
}
