//! Beginning transactions at a given rate, independently of how long each transaction takes.

use std::thread;
use std::time::Duration;

use quanta::Instant;

/// The time before an intended beginning at which a thread stops sleeping and only reads the clock.
/// If sleeps are [exact](be_exact), they end 3 µs late at the median and 30 µs late once in a
/// hundred times. After reading the clock, a transaction begins 0.1 µs late at the median. Waiting
/// for 12,500 beginnings per second takes a quarter of a core; waiting for a thousand takes 2 %.
/// (All measured on a virtualized x86-64.)
const MARGIN: Duration = Duration::from_micros(20);

/// The longest sleep, after which a waiting thread reads its orders again.
const NAP: Duration = Duration::from_millis(5);

/// The number of seconds until a beginning that never comes. The number is small enough to be added
/// to any `Instant`.
const NEVER_S: f64 = 1e9;

/// The intended beginnings of one thread's transactions. The beginnings are evenly spaced, and lie
/// between the beginnings of the other threads.
///
/// A thread that is late begins its next transaction at once and skips none. So the delay is part
/// of the latencies of the following transactions.
pub(crate) struct Pace {
    /// Transactions per second of all threads together.
    rate: f64,
    threads: u64,
    thread: u64,
    /// The intended time of beginning number 0.
    from: Instant,
    /// The number of this thread's next beginning, among those of all threads.
    next: u64,
}

impl Pace {
    /// Creates the pace of thread number `thread` of `threads`, which together begin `rate`
    /// transactions per second, the first one at `from`.
    pub(crate) fn new(rate: f64, thread: usize, threads: usize, from: Instant) -> Self {
        let (thread, threads) = (thread as u64, threads as u64);
        Pace { rate, threads, thread, from, next: thread }
    }

    /// Starts over, with beginning number 0 at `from`.
    pub(crate) fn restart(&mut self, from: Instant) {
        (self.from, self.next) = (from, self.thread);
    }

    /// Skips the transactions that should have begun before `moment` but have not.
    pub(crate) fn skip_to(&mut self, moment: Instant) {
        let due =
            (moment.saturating_duration_since(self.from).as_secs_f64() * self.rate).ceil() as u64;
        self.next += due.saturating_sub(self.next).div_ceil(self.threads) * self.threads;
    }

    /// Waits for the next beginning, unless its time has passed at `now`, and returns its intended
    /// time. Calls `may_wait` at least every 5 ms while waiting. If `may_wait` returns `false`, the
    /// wait ends with `None`, and the beginning remains the next one.
    pub(crate) fn wait(
        &mut self,
        mut now: Instant,
        may_wait: impl Fn() -> bool,
    ) -> Option<Instant> {
        let intended = self.intended();
        while now < intended {
            if !may_wait() {
                return None;
            }
            match (intended - now).checked_sub(MARGIN) {
                Some(long) if !long.is_zero() => thread::sleep(long.min(NAP)),
                // Other threads may need this core.
                _ => thread::yield_now(),
            }
            now = Instant::now();
        }
        self.next += self.threads;
        Some(intended)
    }

    /// Returns the intended time of the next beginning.
    fn intended(&self) -> Instant {
        self.from + Duration::from_secs_f64((self.next as f64 / self.rate).min(NEVER_S))
    }
}

/// Makes the calling thread's sleeps exact; otherwise Linux lets them last up to 50 µs longer. If
/// the system refuses, transactions begin later, which their latencies include.
#[cfg(target_os = "linux")]
pub(crate) fn be_exact() {
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
}

/// Does nothing, since not every system lets a thread choose the exactness of its sleeps.
#[cfg(not(target_os = "linux"))]
pub(crate) fn be_exact() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the next `count` beginnings, in milliseconds after `from`, of a thread that is
    /// always late.
    fn beginnings(pace: &mut Pace, from: Instant, count: usize) -> Vec<f64> {
        let late = from + Duration::from_secs(3600);
        let next =
            |_| pace.wait(late, || panic!("a late transaction does not wait")).expect("late");
        (0..count)
            .map(next)
            .map(|intended| ((intended - from).as_secs_f64() * 1e9).round() / 1e6)
            .collect()
    }

    #[test]
    fn beginnings_are_evenly_spaced_over_all_threads_and_none_is_skipped() {
        let from = Instant::now();
        let mut paces = [0, 1, 2].map(|thread| Pace::new(1000.0, thread, 3, from));
        let all = paces.each_mut().map(|pace| beginnings(pace, from, 3));
        assert_eq!(all, [[0.0, 3.0, 6.0], [1.0, 4.0, 7.0], [2.0, 5.0, 8.0]]);
    }

    #[test]
    fn skipped_beginnings_are_given_up_and_later_ones_are_kept() {
        let from = Instant::now();
        let mut pace = Pace::new(1000.0, 1, 2, from);
        pace.skip_to(from + Duration::from_micros(10_500));
        assert_eq!(beginnings(&mut pace, from, 2), [11.0, 13.0]);
        pace.skip_to(from + Duration::from_millis(12));
        pace.skip_to(from - Duration::from_millis(1));
        assert_eq!(beginnings(&mut pace, from, 1), [15.0]);
        let anew = from + Duration::from_millis(100);
        pace.restart(anew);
        assert_eq!(beginnings(&mut pace, anew, 2), [1.0, 3.0]);
    }

    #[test]
    fn a_beginning_is_waited_for_and_a_wait_can_be_ended() {
        let from = Instant::now();
        let mut pace = Pace::new(100.0, 1, 2, from);
        assert_eq!(pace.wait(from, || false), None, "told otherwise");
        let intended = pace.wait(from, || true).expect("waited for");
        assert!(Instant::now() >= intended);
        assert_eq!(intended - from, Duration::from_millis(10), "still the first");
        let mut never = Pace::new(f64::MIN_POSITIVE, 1, 2, from);
        let asked = std::cell::Cell::new(0);
        let a_few_times = || asked.replace(asked.get() + 1) < 3;
        assert_eq!(
            (never.wait(from, a_few_times), asked.get()),
            (None, 4),
            "the condition is checked after each sleep"
        );
    }
}
