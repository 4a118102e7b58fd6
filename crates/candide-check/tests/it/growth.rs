//! How the time that something takes grows with what it is given.

use std::fs;
use std::time::{Duration, Instant};

/// By how much the greater one of two inputs is greater.
pub const TIMES: usize = 16;

/// By how much the greater input may take longer than [`TIMES`] the smaller one. In proportion they
/// take as long, and the greater one somewhat longer where it leaves the caches; by the square it
/// would take 16 times as long.
const RATIO_MAX: f64 = 4.0;

/// Asserts that `check` takes time in proportion to its input: `large` is [`TIMES`] what `small`
/// is, which is checked as often, since the system may count time by ticks of milliseconds. It is
/// the time that this thread has had, which does not depend on what else the machine does.
pub fn assert_in_proportion<T>(what: &str, small: &T, large: &T, check: impl Fn(&T)) {
    let began = Instant::now();
    let [short, long] = [(small, TIMES), (large, 1)].map(|(input, times)| {
        let before = had(began);
        (0..times).for_each(|_| check(input));
        had(began) - before
    });
    println!("{what}: {long:.2?}, and {short:.2?} for {TIMES} sixteenths");
    assert!(
        long.as_secs_f64() < RATIO_MAX * short.as_secs_f64(),
        "{what}: {short:?}, then {long:?}"
    );
}

/// The time that this thread has had; where the system does not say that, how long it is since it
/// `began`.
fn had(began: Instant) -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_processor = statistics.and_then(|text| text.split_whitespace().next()?.parse().ok());
    on_processor.map_or_else(|| began.elapsed(), Duration::from_nanos)
}
