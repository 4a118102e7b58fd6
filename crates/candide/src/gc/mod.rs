//! Garbage collection: frees the memory that transactions leave behind and no transaction can see.

mod left_values;
mod session_queue;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use left_values::LeftValues;
pub(crate) use session_queue::Garbage;
