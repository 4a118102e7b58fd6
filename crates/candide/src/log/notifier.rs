//! Calls of the program's functions once a commit is durable. A separate thread makes them, so that
//! a call that takes long, or waits for the log itself, does not delay the logger.

#![forbid(unsafe_code)]

use super::level::Level;
use super::progress::Progress;
use crate::error::Abort;
use crate::sync::{Mutex, lock, process};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A call, and the stamp of its commit.
type Due = (u64, Box<dyn FnOnce(Result<(), Abort>) + Send>);

/// The queue of the thread that makes the calls.
#[derive(Debug, Default)]
pub(super) struct Notifier(Mutex<Queue>);

#[derive(Debug, Default)]
enum Queue {
    /// No call has been wanted yet.
    #[default]
    Unused,
    Open(Sender<Due>),
    /// The log is closed.
    Ended,
}

impl Notifier {
    /// Makes a call once a commit with this stamp is durable, or with [`Abort::LogFailed`]. If the
    /// log is closed, makes the call at once.
    pub(super) fn call(
        &self,
        progress: &Arc<Progress>,
        stamp: u64,
        then: Box<dyn FnOnce(Result<(), Abort>) + Send>,
    ) {
        let mut queue = lock(&self.0);
        if matches!(*queue, Queue::Unused) {
            *queue = Queue::Open(start_calls(progress));
        }
        match &*queue {
            Queue::Open(sender) => {
                sender.send((stamp, then)).expect("the thread lives as long as its queue");
            }
            Queue::Unused | Queue::Ended => {
                drop(queue);
                // The log is closed, so nothing is waited for.
                then(progress.wait(stamp, Level::Durable, None));
            }
        }
    }

    /// Lets the thread end when it has made its calls.
    pub(super) fn end(&self) {
        *lock(&self.0) = Queue::Ended;
    }
}

/// Starts the thread that makes the calls, and returns its queue.
fn start_calls(progress: &Arc<Progress>) -> Sender<Due> {
    let (sender, due) = channel();
    let progress = progress.clone();
    process::Builder::new()
        .name("candide-durable".to_owned())
        .spawn(move || make_calls(&progress, due))
        .expect("the operating system starts a thread");
    sender
}

fn make_calls(progress: &Progress, due: Receiver<Due>) {
    for (stamp, then) in due {
        let reached = progress.wait(stamp, Level::Durable, None);
        // The panic hook has reported a panic of the program's call. Other calls are still made.
        let _ = catch_unwind(AssertUnwindSafe(|| then(reached)));
    }
}
