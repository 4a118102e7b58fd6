//! Steps of loops that grow with what a transaction has done before: tests count them. Outside the
//! crate's own tests this is empty.

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

/// Returns how many steps this thread has taken so far.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) fn steps() -> u64 {
    STEPS.get()
}
