//! Windows of histories whose lines are not in order of time.

use crate::history::Event;

/// Computes the time up to which a history is complete after each window of lines. The lines may be
/// in any order. All lines must be passed to [`note`](Self::note) once before the history is fed.
///
/// ```
/// use candide_check::{Checker, Event, Forgotten, Options, Windows};
///
/// let line = |at| Event::Forgotten(Forgotten { table: 0, key: [at].into(), version: 1, at });
/// let history: Vec<Event> = (0..40_000).rev().map(line).collect();
/// let mut windows = Windows::default();
/// history.iter().for_each(|event| windows.note(event));
/// let mut checker = Checker::new(Options::default());
/// for (window, watermark) in history.chunks(Windows::LINES).zip(windows.watermarks()) {
///     window.iter().for_each(|event| checker.feed(event));
///     checker.advance(watermark);
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Windows {
    /// For each window, the time by which its lines have to be fed.
    dues: Vec<u64>,
    lines: usize,
}

impl Windows {
    /// The number of lines in a window. Windows are so large that the work between them costs
    /// little.
    pub const LINES: usize = 10_000;

    /// Takes the next line into account.
    pub fn note(&mut self, event: &Event) {
        if self.lines.is_multiple_of(Self::LINES) {
            self.dues.push(u64::MAX);
        }
        self.lines += 1;
        if let Some(due) = self.dues.last_mut() {
            *due = event.due().min(*due);
        }
    }

    /// Returns, for each window, the time up to which the history is complete once that window has
    /// been fed. No line of a later window is due before that time.
    pub fn watermarks(mut self) -> Vec<u64> {
        let mut due = u64::MAX;
        for window in self.dues.iter_mut().rev() {
            due = due.min(std::mem::replace(window, due));
        }
        self.dues
    }
}
