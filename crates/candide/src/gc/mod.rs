//! Garbage collection: what transactions leave behind is freed when no other one can see it.

mod session_queue;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use session_queue::Garbage;
