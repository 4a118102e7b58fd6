//! Threads that start together.

use std::sync::Barrier;

use candide_harness::Cores;

/// Runs `body` on `threads` new threads, and passes a barrier to each. As long as there are enough
/// cores, each thread has a core of its own.
pub(crate) fn on_threads<T: Send>(
    threads: usize,
    body: impl Fn(usize, &Barrier) -> T + Sync,
) -> Vec<T> {
    let cores = Cores::allowed();
    on_free_threads(threads, |thread, start| {
        cores.pin(thread);
        body(thread, start)
    })
}

/// Runs `body` on `threads` new threads, and passes a barrier to each. The system chooses their
/// cores.
pub(crate) fn on_free_threads<T: Send>(
    threads: usize,
    body: impl Fn(usize, &Barrier) -> T + Sync,
) -> Vec<T> {
    let (start, body) = (&Barrier::new(threads), &body);
    std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || body(thread, start))).collect();
        running.into_iter().map(|thread| thread.join().expect("threads do not panic")).collect()
    })
}
