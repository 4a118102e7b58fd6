//! Garbage collection: what transactions leave behind is freed when no other one can see it.

mod session_queue;

pub(crate) use session_queue::Garbage;
