//! Calls that programs want once a commit is durable. A thread of their own makes them, so that a
//! call that takes long, or waits for the log itself, does not hold up the logger.

#![forbid(unsafe_code)]

use super::level::Level;
use super::progress::Progress;
use crate::error::Abort;
use crate::sync::{Mutex, lock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A call, and the stamp of its commit.
type Due = (u64, Box<dyn FnOnce(Result<(), Abort>) + Send>);

/// The queue of the thread that makes the calls.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    /// `None` before the first call is wanted, and after the end of the log.
    queue: Mutex<Option<Sender<Due>>>,
}

impl Notifier {
    /// Makes a call once a commit with this stamp is durable, or with [`Abort::LogFailed`].
    pub(super) fn call(
        &self,
        progress: &Arc<Progress>,
        stamp: u64,
        then: Box<dyn FnOnce(Result<(), Abort>) + Send>,
    ) {
        let mut queue = lock(&self.queue);
        let sender = queue.get_or_insert_with(|| {
            let (sender, due) = channel();
            let progress = progress.clone();
            std::thread::Builder::new()
                .name("candide-durable".to_owned())
                .spawn(move || make_calls(&progress, due))
                .expect("the operating system starts a thread");
            sender
        });
        sender.send((stamp, then)).expect("the thread lives as long as its queue");
    }

    /// Lets the thread end when it has made its calls.
    pub(super) fn end(&self) {
        *lock(&self.queue) = None;
    }
}

fn make_calls(progress: &Progress, due: Receiver<Due>) {
    for (stamp, then) in due {
        let reached = progress.wait(stamp, Level::Durable);
        // The panic hook has reported a panic of the program's call. Other calls are still made.
        let _ = catch_unwind(AssertUnwindSafe(|| then(reached)));
    }
}
