//! The thread that touches memory ahead of demand, for all databases of the process.
//!
//! The thread begins when a database takes a chunk, and ends when no database has grown for a
//! while. So a process whose databases do not grow has no such thread.

#![forbid(unsafe_code)]

use crate::sync::Duration;
use crate::sync::process::{Builder, Mutex, Thread, lock, park_timeout};
use std::sync::Weak;

/// The time between two measurements of the databases' growth.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// The memory of a database, as the provider sees it.
pub(super) trait Growing: Send + Sync {
    /// Touches an amount of memory that follows from the growth since the last call. Returns
    /// whether to continue calling; if not, the caller forgets this memory until the next
    /// [`watch`].
    fn provide(&self) -> bool;
}

struct Provider {
    /// Memory that has begun to grow and that the thread has not yet seen.
    begun: Vec<Weak<dyn Growing>>,
    /// The running thread; `None` if there is none.
    thread: Option<Thread>,
}

static PROVIDER: Mutex<Provider> = Mutex::new(Provider { begun: Vec::new(), thread: None });

/// Makes the provider call [`Growing::provide`] regularly, from soon on. Returns whether it will:
/// not if the system refuses to start the thread.
pub(super) fn watch(memory: Weak<dyn Growing>) -> bool {
    let mut provider = lock(&PROVIDER);
    if provider.thread.is_none() {
        let started = Builder::new().name("candide-memory".into()).spawn(run);
        let Ok(handle) = started else { return false };
        provider.thread = Some(handle.thread().clone());
    }
    provider.begun.push(memory);
    true
}

/// Makes the provider look at all growing memory now.
pub(super) fn hurry() {
    let provider = lock(&PROVIDER);
    if let Some(thread) = &provider.thread {
        thread.unpark();
    }
}

fn run() {
    let mut watched: Vec<Weak<dyn Growing>> = Vec::new();
    loop {
        watched.retain(|memory| memory.upgrade().is_some_and(|memory| memory.provide()));
        let mut provider = lock(&PROVIDER);
        watched.append(&mut provider.begun);
        if watched.is_empty() {
            provider.thread = None;
            return;
        }
        drop(provider);
        park_timeout(TICK);
    }
}
