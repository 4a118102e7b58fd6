//! Progress at a terminal: the current step, and an estimate of the time left. The progress is
//! drawn by a thread that waits, never by a thread that works for a measurement. Nothing is drawn
//! if standard error is not a terminal.

use std::fs::File;
use std::io::{self, Read};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

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

    /// Describes the current turn, which takes `turn_left` longer, by its number and the time left
    /// for all turns. Returns an empty text if there is only one turn.
    fn place(&self, turn_left: Duration) -> String {
        self.place_before(turn_left, self.least)
    }

    /// Describes the current turn as [`Agenda::place`] does, but assumes that each later turn takes
    /// at least `later`.
    fn place_before(&self, turn_left: Duration, later: Duration) -> String {
        if self.turns < 2 {
            return String::new();
        }
        let left = in_words(self.left(self.begun.elapsed(), turn_left, later));
        format!("{}/{}, {left} left; ", (self.done + 1).min(self.turns), self.turns)
    }
}

/// Returns `duration` in words, cut to whole seconds.
fn in_words(duration: Duration) -> String {
    humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string()
}

fn bar(total: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a valid template");
    ProgressBar::new(total).with_style(style)
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
    let bar = bar(total, "{prefix} {wide_bar} {human_pos} of {human_len}, {msg} left");
    let done = AtomicU64::new(0);
    let draw = || {
        bar.set_position(done.load(Ordering::Relaxed));
        let turn_left = bar.eta().saturating_add(agenda.least);
        let later = if each_turn { bar.elapsed().saturating_add(turn_left) } else { agenda.least };
        bar.set_prefix(agenda.place_before(turn_left, later) + title);
        bar.set_message(in_words(bar.eta()));
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
        line.set_message(format!(", last time {} in all", in_words(before)));
    }
    let draw = || {
        let left = before.unwrap_or_default().saturating_sub(line.elapsed());
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

/// Returns a reader of `file` that draws how much of the file has been read.
pub(crate) fn reading(file: File) -> io::Result<impl Read> {
    let bar = bar(file.metadata()?.len(), "reading {wide_bar} {percent} %, {eta} left");
    Ok(bar.with_finish(ProgressFinish::AndClear).wrap_read(file))
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
        bar.set_prefix(agenda.place(total) + title);
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
        self.bar.set_prefix(self.agenda.place(left) + &self.title);
        self.bar.set_message(format!("{:.1} s left", left.as_secs_f64()));
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
            Agenda::new(1, secs(3)).place(secs(3)),
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
        assert_eq!(agenda.place(hours), "1/2, 6h 1s left; ");
        assert_eq!(agenda.place_before(hours, hours), "1/2, 12h left; ", "loaded for each turn");
        assert_eq!(agenda.left(secs(1), Duration::MAX, secs(1)), Duration::MAX);
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
