//! Orders of requests, releases and cancellations that one thread makes.

use super::Guarded;
use crate::sync::queue_lock::Mode;
use crate::sync::queue_lock::Mode::{Read, Write};
use crate::sync::{Duration, Ordering, Patience};

impl Guarded {
    /// Makes requests with these modes, and returns the lock.
    fn queue(modes: &[Mode]) -> Guarded {
        let lock = Guarded::new(16);
        for (request, &mode) in modes.iter().enumerate() {
            let is_granted = lock.request(request, mode);
            assert_eq!(is_granted, lock.is_granted(request));
        }
        lock
    }

    /// Returns which of the first requests hold the lock.
    fn granted(&self, requests: usize) -> Vec<usize> {
        (0..requests).filter(|&request| self.is_granted(request)).collect()
    }

    fn assert_free(&self) {
        self.check_at_the_end(self.ids[15]);
    }
}

#[test]
fn requests_are_granted_in_their_order() {
    let lock = Guarded::queue(&[Write, Read, Read, Write, Read]);
    assert_eq!(lock.granted(5), [0]);
    lock.release(0);
    assert_eq!(lock.granted(5)[1..], [1, 2], "two readers, and not the one behind the writer");
    lock.release(2);
    assert!(!lock.is_granted(3));
    lock.release(1);
    assert!(lock.is_granted(3) && !lock.is_granted(4));
    lock.release(3);
    assert!(lock.is_granted(4));
    lock.release(4);
    lock.assert_free();
}

#[test]
fn a_reader_waits_behind_a_writer_that_waits() {
    let lock = Guarded::queue(&[Read, Read, Write, Read]);
    assert_eq!(lock.granted(4), [0, 1]);
    for request in [0, 1] {
        lock.release(request);
    }
    assert!(lock.is_granted(2) && !lock.is_granted(3));
    lock.release(2);
    assert!(lock.is_granted(3));
    lock.release(3);
    lock.assert_free();
}

#[test]
fn a_writer_waits_in_an_empty_queue_while_a_reader_holds_the_lock() {
    let lock = Guarded::queue(&[Read, Read]);
    lock.release(1);
    assert!(lock.lock().tail.load(Ordering::Relaxed) == 0 && !lock.lock().is_free());
    assert!(lock.request(2, Read), "a reader beside it");
    lock.release(2);
    assert!(!lock.request(3, Write) && !lock.request(4, Read));
    lock.release(0);
    assert!(lock.is_granted(3) && !lock.is_granted(4));
    lock.release(3);
    lock.release(4);
    lock.assert_free();
}

#[test]
fn a_request_leaves_from_any_place() {
    // Every queue of a holder and three requests; one of them, or two, leave.
    let modes = [Read, Write];
    for shape in 0..16usize {
        let queue: Vec<Mode> = (0..4).map(|place| modes[shape >> place & 1]).collect();
        for first in 1..4 {
            for second in 1..4 {
                leave_and_check(&queue, first, second);
            }
        }
    }
}

/// Cancels two requests of a queue, or one if they are the same, and checks the grants of the
/// others.
fn leave_and_check(queue: &[Mode], first: usize, second: usize) {
    let lock = Guarded::queue(queue);
    let mut left: Vec<usize> = (0..queue.len()).collect();
    for request in [first, second] {
        if left.contains(&request) {
            let was_granted = lock.is_granted(request);
            assert_eq!(lock.cancel(request), !was_granted, "{queue:?} {request}");
            if !was_granted {
                left.retain(|&other| other != request);
            }
        }
    }
    while !left.is_empty() {
        let readers = left.iter().take_while(|&&request| queue[request] == Read).count();
        let (holders, waiters) = left.split_at(readers.max(1));
        for &holder in holders {
            assert!(lock.is_granted(holder), "{queue:?} without {first}, {second}: {holder}");
        }
        for &waiter in waiters {
            assert!(!lock.is_granted(waiter), "{queue:?} without {first}, {second}: {waiter}");
        }
        let holder = holders[0];
        lock.leave(lock.ids[holder]);
        left.remove(0);
    }
    lock.assert_free();
}

#[test]
fn a_writer_that_leaves_the_queue_lets_readers_behind_it_in() {
    let lock = Guarded::queue(&[Read, Write, Read, Read, Write]);
    assert!(lock.cancel(1));
    assert_eq!(lock.granted(5), [0, 2, 3]);
    for request in [0, 3, 2] {
        lock.release(request);
    }
    assert!(lock.is_granted(4));
    lock.release(4);
    lock.assert_free();
}

#[test]
fn the_next_writer_lets_the_readers_behind_it_in_as_it_leaves() {
    let lock = Guarded::queue(&[Read, Read]);
    lock.release(1);
    assert!(!lock.request(2, Write) && !lock.request(3, Read) && !lock.request(4, Write));
    assert!(lock.cancel(2));
    assert!(lock.is_granted(3) && !lock.is_granted(4));
    lock.release(0);
    lock.release(3);
    assert!(lock.is_granted(4));
    lock.release(4);
    lock.assert_free();
}

#[test]
fn a_failed_try_leaves_the_lock_unchanged() {
    let lock = Guarded::queue(&[Write]);
    for mode in [Read, Write] {
        assert!(!lock.lock().try_acquire(lock.ids[1], mode));
        assert!(!lock.lock().is_awaited(lock.ids[0]));
    }
    lock.release(0);
    assert!(lock.lock().try_acquire(lock.ids[1], Read));
    assert!(lock.lock().try_acquire(lock.ids[2], Read), "beside a reader");
    assert!(lock.lock().is_awaited(lock.ids[1]));
    assert!(!lock.lock().try_acquire(lock.ids[3], Write));
    assert!(!lock.request(3, Write));
    assert!(!lock.lock().try_acquire(lock.ids[4], Read), "a writer waits");
    for request in [2, 1, 3] {
        lock.release(request);
    }
    assert!(lock.lock().try_acquire(lock.ids[1], Write));
    lock.release(1);
    lock.assert_free();
}

#[test]
fn a_wait_ends_at_its_bound_or_with_the_grant() {
    let lock = Guarded::queue(&[Write, Write]);
    for patience in [Patience::Rounds(3), Patience::Lasting(Duration::from_micros(50))] {
        assert!(!lock.lock().wait(lock.ids[1], patience));
    }
    assert!(!lock.parking.has_sleepers());
    lock.release(0);
    assert!(lock.lock().wait(lock.ids[1], Patience::Rounds(1)));
    assert!(!lock.cancel(1), "it holds the lock");
    lock.release(1);
    lock.assert_free();
}

#[test]
fn a_grant_wakes_the_thread_that_sleeps() {
    let lock = Guarded::queue(&[Write, Write]);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.wait_and_leave(lock.ids[1]));
        while !lock.parking.waited_for().contains(&lock.nodes.node(lock.ids[1]).address()) {
            std::thread::yield_now();
        }
        lock.leave(lock.ids[0]);
        waiter.join().unwrap();
    });
    lock.assert_free();
}
