//! Telling a person at a terminal what is going on. Drawn by the thread that waits, never by one that works; nothing is
//! drawn where standard error is not a terminal.

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Does `work`, which is told where to add up what it has done of `total`, and draws a bar meanwhile.
pub(crate) fn with_bar<T: Send>(title: &str, total: u64, work: impl FnOnce(&AtomicU64) -> T + Send) -> T {
    let style =
        ProgressStyle::with_template("{prefix} {wide_bar} {human_pos} of {human_len}").expect("a valid template");
    let bar = ProgressBar::new(total).with_style(style).with_prefix(title.to_string());
    let done = AtomicU64::new(0);
    let result = thread::scope(|scope| {
        let worker = scope.spawn(|| work(&done));
        while !worker.is_finished() {
            bar.set_position(done.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(20));
        }
        worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    });
    bar.finish_and_clear();
    result
}

/// A line that says what is being measured. Whoever holds it changes its message.
pub(crate) fn line() -> ProgressBar {
    ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{msg}").expect("a valid template"))
}
