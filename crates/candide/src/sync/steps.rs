//! A counter for tests: it counts the steps of loops whose length grows with a transaction's
//! earlier operations. Outside the crate's own tests `step` does nothing.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a step of this thread.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// Returns the number of steps that this thread has counted so far.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn steps() -> u64 {
    STEPS.get()
}
