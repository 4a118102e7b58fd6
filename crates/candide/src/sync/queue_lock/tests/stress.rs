//! Threads that request, try, cancel and wait at random.

use super::Guarded;
use crate::sync::queue_lock::{Mode, NodeId, Supply};
use crate::sync::{AtomicU64, Duration, MODELLED, Ordering, Patience, Random, full_fence, thread};
use std::sync::Arc;

impl Guarded {
    /// Makes one request, of a random kind.
    fn request_at_random(&self, id: NodeId, random: &mut Random) {
        let mode = if random.below(3) == 0 { Mode::Write } else { Mode::Read };
        let lock = self.lock();
        match random.below(5) {
            0 => self.acquire_and_leave(id, mode),
            1 => _ = self.try_and_leave(id, mode),
            _ if lock.request(id, mode) => self.leave(id),
            2 => self.cancel_or_leave(id),
            kind => {
                let patience = match kind {
                    // A model has no time.
                    3 if !MODELLED => Patience::Lasting(Duration::from_micros(random.below(100))),
                    _ => Patience::Rounds(random.below(if MODELLED { 4 } else { 200 }) as u32),
                };
                if lock.wait(id, patience) {
                    self.leave(id);
                } else {
                    self.cancel_or_leave(id);
                }
            }
        }
    }
}

/// Epochs, as far as nodes need them.
struct Epochs {
    now: AtomicU64,
    /// For each thread the epoch in which it was pinned; zero if it is not.
    pins: Vec<AtomicU64>,
}

impl Epochs {
    fn pin(&self, thread: usize) {
        self.pins[thread].store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        full_fence();
    }

    fn unpin(&self, thread: usize) {
        self.pins[thread].store(0, Ordering::Release);
    }

    /// Returns an epoch that no thread is pinned before.
    fn safe(&self) -> u64 {
        let now = self.now.load(Ordering::Relaxed);
        full_fence();
        let pins = self.pins.iter().map(|pin| pin.load(Ordering::Acquire));
        pins.filter(|&pin| pin != 0).fold(now, u64::min)
    }
}

/// Runs `threads` threads that make `requests` requests each.
fn run(threads: usize, requests: usize, seed: u64) {
    // The last node is for the end. The other nodes are of desks that no thread has.
    let lock = Arc::new(Guarded::new(1));
    let pins = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let epochs = Arc::new(Epochs { now: AtomicU64::new(1), pins });
    let threads: Vec<_> = (0..threads)
        .map(|number| {
            let (lock, epochs) = (lock.clone(), epochs.clone());
            thread::spawn(move || {
                let mut random = Random::seeded(seed + number as u64);
                let mut supply = Supply::new(number as u16 + 1);
                for request in 0..requests {
                    let safe = epochs.safe();
                    epochs.pin(number);
                    if let Some(id) = supply.take(&lock.nodes, safe) {
                        lock.request_at_random(id, &mut random);
                        supply.give_back(&lock.nodes, id, epochs.now.load(Ordering::Relaxed));
                    }
                    epochs.unpin(number);
                    if request % 8 == 0 {
                        epochs.now.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    lock.check_at_the_end(lock.ids[0]);
}

#[cfg(not(shuttle))]
#[test]
fn requests_at_random_exclude_one_another_and_end() {
    for seed in 0..4 {
        run(8, 4_000, seed * 8);
    }
}

#[cfg(shuttle)]
#[test]
fn shuttle_requests_at_random_exclude_one_another_and_end() {
    let schedules = std::env::var("CANDIDE_SCHEDULES").ok().and_then(|number| number.parse().ok());
    let seed = std::sync::atomic::AtomicU64::new(0);
    let scene = move || run(4, 3, seed.fetch_add(4, std::sync::atomic::Ordering::Relaxed));
    shuttle::check_random(scene, schedules.unwrap_or(5_000));
}
