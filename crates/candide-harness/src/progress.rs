//! Progress at a terminal: the current step, and an estimate of the time left. The progress is
//! drawn by a thread that waits, never by a thread that works for a measurement. Nothing is drawn
//! if standard error is not a terminal.

use std::fmt;
use std::io::Read;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressState, ProgressStyle};

use crate::interrupt;

/// The time between two drawings.
const TICK: Duration = Duration::from_millis(100);

/// The turns of a command, which all take about the same time.
#[derive(Clone)]
pub struct Agenda {
    begun: Instant,
    /// The least time of a turn.
    least: Duration,
    turns: usize,
    /// The number of turns that have ended, and the time from `begun` to the end of the last one.
    done: usize,
    took: Duration,
}

impl Agenda {
    /// Plans `turns` turns, none of which takes less than `least`.
    pub fn new(turns: usize, least: Duration) -> Agenda {
        Agenda { begun: Instant::now(), least, turns, done: 0, took: Duration::ZERO }
    }

    /// Notes that one more turn has ended.
    pub fn advance(&mut self) {
        self.advance_after(self.begun.elapsed());
    }

    fn advance_after(&mut self, since_begun: Duration) {
        self.done += 1;
        self.took = since_begun;
    }

    /// Returns an estimate of the time that the remaining turns take. The estimate assumes that
    /// they take as long as the completed turns on average, but at least `turn_left` for the
    /// current turn and `later` for each later one.
    fn left(&self, since_begun: Duration, turn_left: Duration, later: Duration) -> Duration {
        let count = |turns: usize| u32::try_from(turns).unwrap_or(u32::MAX);
        let per_turn =
            self.took.checked_div(count(self.done)).unwrap_or(self.least).max(self.least);
        let like_others = per_turn.saturating_mul(count(self.turns)).saturating_sub(since_begun);
        let following = count(self.turns.saturating_sub(self.done + 1));
        like_others.max(turn_left.saturating_add(later.saturating_mul(following)))
    }

    /// Describes the current turn, which takes `turn_left` longer (`None` if that is not known), by
    /// its number and the time left for all turns. Returns an empty text if there is only one turn.
    fn place(&self, turn_left: Option<Duration>) -> String {
        self.place_before(turn_left, self.least)
    }

    /// Describes the current turn as [`Agenda::place`] does, but assumes that each later turn takes
    /// at least `later`.
    fn place_before(&self, turn_left: Option<Duration>, later: Duration) -> String {
        if self.turns < 2 {
            return String::new();
        }
        let left = self.left(self.begun.elapsed(), turn_left.unwrap_or_default(), later);
        let words = match turn_left {
            Some(_) => format!(", {}", in_words(Some(left))),
            None if left < SECOND => String::new(),
            None => format!(", at least {}", in_words(Some(left))),
        };
        format!("{}/{}{words}; ", (self.done + 1).min(self.turns), self.turns)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns how long work of `total` parts will go on if each part takes as long as the `done` parts
/// took in `elapsed`; `None` if none is done.
fn remaining(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    let parts = total.saturating_sub(done) as f64 / done as f64;
    (done > 0).then(|| {
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * parts).unwrap_or(Duration::MAX)
    })
}

/// Says how much time is left, in whole seconds; `None` if it is not known.
fn in_words(left: Option<Duration>) -> String {
    match left {
        None => "time left not known yet".to_string(),
        Some(left) if left < SECOND => "less than 1s left".to_string(),
        Some(left) => {
            format!("{} left", humantime::format_duration(Duration::from_secs(left.as_secs())))
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}

fn bar(total: u64, template: &str) -> ProgressBar {
    ProgressBar::new(total).with_style(style(template))
}

/// Runs `work` and draws a progress bar meanwhile. `work` adds its progress to a counter, up to
/// `total`. The work precedes one turn, or every turn if `each_turn` is set.
pub(crate) fn with_bar<T: Send>(
    agenda: &Agenda,
    title: &str,
    total: u64,
    each_turn: bool,
    work: impl FnOnce(&AtomicU64) -> T + Send,
) -> T {
    let bar = bar(total, "{prefix} {wide_bar} {human_pos} of {human_len}, {msg}");
    let done = AtomicU64::new(0);
    let draw = || {
        let done = done.load(Ordering::Relaxed);
        bar.set_position(done);
        let left = remaining(bar.elapsed(), done, total);
        let turn_left = left.unwrap_or_default().saturating_add(agenda.least);
        let later = if each_turn { bar.elapsed().saturating_add(turn_left) } else { agenda.least };
        bar.set_prefix(agenda.place_before(left.map(|_| turn_left), later) + title);
        bar.set_message(in_words(left));
    };
    draw();
    let result = beside(|| work(&done), draw);
    bar.finish_and_clear();
    result
}

/// Runs `work`, which does not report progress. Draws meanwhile the time that `work` has taken so
/// far, and `before`, the time that the same work took the last time.
pub(crate) fn with_line<T: Send>(
    agenda: &Agenda,
    title: &str,
    before: Option<Duration>,
    work: impl FnOnce() -> T + Send,
) -> T {
    let line = bar(0, "{prefix} {elapsed} so far{msg}");
    if let Some(before) = before {
        line.set_message(format!(", last time {:.1} s in all", before.as_secs_f64()));
    }
    let draw = || {
        let left = before.and_then(|before| before.checked_sub(line.elapsed()));
        line.set_prefix(agenda.place(left) + title);
        line.tick();
    };
    draw();
    let result = beside(work, draw);
    line.finish_and_clear();
    result
}

/// Runs `work` on its own thread, and calls `draw` every [`TICK`] meanwhile.
fn beside<T: Send>(work: impl FnOnce() -> T + Send, draw: impl Fn()) -> T {
    let (mut work, mut result) = (Some(work), None);
    let mut once = || result = work.take().map(|work| work());
    run_beside(&mut once, &draw);
    result.expect("the work is over")
}

/// Runs `work`, which stores its result itself. So this function has no type parameter for the
/// result, and is compiled only once for all kinds of work.
fn run_beside(work: &mut (dyn FnMut() + Send), draw: &dyn Fn()) {
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            // The sender is dropped when the work ends, by return or by panic.
            let _ended = ended;
            work();
        });
        while end.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
            draw();
        }
        worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
    });
}

/// Returns a reader of `input`, whose length in bytes may be known, that draws how much of it has
/// been read.
pub(crate) fn reading(input: impl Read, length: Option<u64>) -> impl Read {
    let bar = match length {
        Some(length) => {
            let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
                let left = remaining(state.elapsed(), state.pos(), state.len().unwrap_or(0));
                // What cannot be drawn is not missed.
                let _ = out.write_str(&in_words(left));
            };
            let style = style("reading {wide_bar} {percent} %, {left}").with_key("left", left);
            ProgressBar::new(length).with_style(style)
        }
        None => bar(0, "reading, {human_pos} bytes in {elapsed}"),
    };
    bar.with_finish(ProgressFinish::AndClear).wrap_read(input)
}

/// A clock that draws the passing of a planned time as a bar.
pub(crate) struct Clock<'a> {
    bar: ProgressBar,
    agenda: Agenda,
    title: String,
    /// Returns whether something has failed that ends the planned time early; `None` if nothing
    /// can.
    has_failed: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Clock<'a> {
    /// Creates a clock for the planned time `total`.
    pub(crate) fn new(agenda: &Agenda, title: &str, total: Duration) -> Self {
        let bar = bar(total.as_millis() as u64, "{prefix} {wide_bar} {msg}");
        bar.set_prefix(agenda.place(Some(total)) + title);
        // Before they are measured, the threads draw their inputs at random.
        bar.set_message("preparing");
        bar.tick();
        Clock { bar, agenda: agenda.clone(), title: title.to_string(), has_failed: None }
    }

    /// Lets the planned time end early when `has_failed` returns `true`, which is asked now and
    /// then.
    pub(crate) fn watching(mut self, has_failed: &'a dyn Fn() -> bool) -> Self {
        self.has_failed = Some(has_failed);
        self
    }

    /// Sleeps for `duration`, or until Ctrl-C is pressed or the watched thing fails. Returns
    /// `false` in these two cases.
    pub(crate) fn sleep(&self, duration: Duration) -> bool {
        let begun = Instant::now();
        let before = self.bar.position();
        // If the bar is hidden, the thread need not wake in between to draw it.
        let is_idle = self.bar.is_hidden() && self.has_failed.is_none();
        let tick = if is_idle { duration } else { TICK };
        loop {
            let passed = begun.elapsed().min(duration);
            self.show(Duration::from_millis(before) + passed);
            if passed == duration {
                return !interrupt::is_pressed();
            }
            let slept = interrupt::sleep((duration - passed).min(tick));
            if !slept || self.has_failed.is_some_and(|has_failed| has_failed()) {
                return false;
            }
        }
    }

    /// Draws that `passed` of the planned time has ended.
    pub(crate) fn show(&self, passed: Duration) {
        self.bar.set_position(passed.as_millis() as u64);
        let left = self.bar.length().unwrap_or(0).saturating_sub(self.bar.position());
        let left = Duration::from_millis(left);
        self.bar.set_prefix(self.agenda.place(Some(left)) + &self.title);
        self.bar.set_message(match left.as_millis() {
            0..100 => "ending".to_string(),
            _ => format!("{:.1} s left", left.as_secs_f64()),
        });
    }
}

impl Drop for Clock<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_estimated_from_finished_turns() {
        let secs = Duration::from_secs;
        let mut agenda = Agenda::new(10, secs(3));
        let left = |agenda: &Agenda, since_begun, turn_left| {
            agenda.left(secs(since_begun), secs(turn_left), secs(3))
        };
        assert_eq!(left(&agenda, 0, 3), secs(30), "at least");
        assert_eq!(left(&agenda, 2, 1), secs(28));
        agenda.advance_after(secs(2));
        assert_eq!(left(&agenda, 2, 3), secs(28), "a turn takes at least its minimum");
        agenda.advance_after(secs(10));
        assert_eq!(left(&agenda, 10, 3), secs(40));
        assert_eq!(left(&agenda, 12, 1), secs(38), "the time of a turn is known at its end");
        (3..=10).for_each(|turns| agenda.advance_after(secs(5 * turns)));
        assert_eq!(left(&agenda, 50, 0), secs(0));
        assert_eq!(
            Agenda::new(1, secs(3)).place(Some(secs(3))),
            "",
            "there is nothing to say of one turn"
        );
    }

    #[test]
    fn remaining_time_is_at_least_that_of_the_current_turn() {
        let secs = Duration::from_secs;
        let agenda = Agenda::new(2, secs(1));
        let hours = secs(6 * 60 * 60);
        assert_eq!(agenda.left(secs(1), hours, secs(1)), hours + secs(1));
        assert_eq!(agenda.place(Some(hours)), "1/2, 6h 1s left; ");
        assert_eq!(
            agenda.place_before(Some(hours), hours),
            "1/2, 12h left; ",
            "loaded for each turn"
        );
        assert_eq!(agenda.left(secs(1), Duration::MAX, secs(1)), Duration::MAX);
    }

    #[test]
    fn unknown_times_are_named_as_such_and_short_ones_are_not_zero() {
        let millis = Duration::from_millis;
        assert_eq!(remaining(millis(300), 0, 10), None, "there is no rate");
        assert_eq!(remaining(millis(300), 3, 10), Some(millis(700)));
        assert_eq!(remaining(millis(300), 12, 10), Some(Duration::ZERO), "more than planned");
        assert_eq!(remaining(Duration::MAX, 1, u64::MAX), Some(Duration::MAX));
        let words = [None, Some(Duration::ZERO), Some(millis(999)), Some(millis(61_500))];
        assert_eq!(
            words.map(in_words),
            ["time left not known yet", "less than 1s left", "less than 1s left", "1m 1s left"]
        );
        let mut agenda = Agenda::new(2, Duration::from_secs(3));
        assert_eq!(agenda.place(None), "1/2, at least 5s left; ");
        agenda.advance_after(Duration::ZERO);
        agenda.least = Duration::ZERO;
        assert_eq!(agenda.place(None), "2/2; ");
        assert_eq!(agenda.place(Some(Duration::ZERO)), "2/2, less than 1s left; ");
    }

    #[test]
    fn work_beside_a_progress_bar_returns_its_result_or_panic() {
        let agenda = Agenda::new(1, Duration::ZERO);
        assert_eq!(
            with_bar(&agenda, "working", 3, true, |done| done.fetch_add(3, Ordering::Relaxed) + 4),
            4
        );
        assert_eq!(with_line(&agenda, "working", None, || 5), 5);
        let panicked =
            panic::catch_unwind(|| with_line(&agenda, "working", None, || panic!("as asked")));
        assert_eq!(panicked.expect_err("it panics").downcast_ref(), Some(&"as asked"));
    }
}
