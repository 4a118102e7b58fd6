//! A count, for tests, of the steps of loops whose length grows with a transaction's earlier
//! operations. Outside the crate's own tests this is empty.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a step of this thread.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// Returns the number of steps this thread has taken so far.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn steps() -> u64 {
    STEPS.get()
}
