//! A counter for tests of what transactions cost.

#![forbid(unsafe_code)]

thread_local! {
    /// The number of operations and late rows that write sets of this thread have visited.
    pub(crate) static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
