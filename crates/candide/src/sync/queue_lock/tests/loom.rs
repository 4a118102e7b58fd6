//! Small scenes of three threads. The scenes run under every interleaving and every reordering that
//! the memory model allows (`--cfg loom`), with at most as many forced switches as each states.

use super::Guarded;
use crate::sync::queue_lock::Mode::{Read, Write};
use crate::sync::queue_lock::{Mode, NodeId};
use crate::sync::thread;
use std::sync::Arc;

type Act = fn(&Guarded, NodeId);

const ACQUIRE_READ: Act = |lock, id| lock.acquire_and_leave(id, Read);
const ACQUIRE_WRITE: Act = |lock, id| lock.acquire_and_leave(id, Write);
const TRY_READ: Act = |lock, id| _ = lock.try_and_leave(id, Read);
const TRY_WRITE: Act = |lock, id| _ = lock.try_and_leave(id, Write);
const RELEASE: Act = |lock, id| lock.leave(id);
const CANCEL: Act = |lock, id| lock.cancel_or_leave(id);
const WAIT: Act = |lock, id| lock.wait_and_leave(id);
const REQUEST_READ_AND_CANCEL: Act = |lock, id| request_and_cancel(lock, id, Read);
const REQUEST_WRITE_AND_CANCEL: Act = |lock, id| request_and_cancel(lock, id, Write);

fn request_and_cancel(lock: &Guarded, id: NodeId, mode: Mode) {
    if lock.lock().request(id, mode) { lock.leave(id) } else { lock.cancel_or_leave(id) }
}

/// Plays three acts, of one request each, on three threads. The requests with a mode in `queued`
/// were made before, in this order. The other requests are made by their acts.
fn play(preemptions: usize, queued: &'static [Mode], acts: [Act; 3]) {
    play_from(preemptions, acts, move |lock| {
        queued.iter().enumerate().for_each(|(request, &mode)| _ = lock.request(request, mode));
    });
}

fn play_from(
    preemptions: usize,
    acts: [Act; 3],
    prepare: impl Fn(&Guarded) + Send + Sync + 'static,
) {
    let prepare = Arc::new(prepare);
    // Loom misses some executions that it does not come to from the first one, so another thread
    // goes first the second time.
    for order in [[0, 1, 2], [2, 1, 0]] {
        let mut builder = ::loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions.min(crate::sync::preemptions_max()));
        // A request that is never granted exceeds this number.
        builder.max_branches = 5_000;
        // The executions are counted outside the model, so that a passing test can report their
        // number.
        let executions = Arc::new(std::sync::Mutex::new(0));
        let (counted, prepare) = (executions.clone(), prepare.clone());
        builder.check(move || {
            *counted.lock().unwrap() += 1;
            // The fourth request is for the scene's preparation and its end.
            let lock = Arc::new(Guarded::new(4));
            prepare(&lock);
            let [first, second, here] = order;
            let others = [first, second].map(|request: usize| {
                let lock = lock.clone();
                thread::spawn(move || acts[request](&lock, lock.ids[request]))
            });
            acts[here](&lock, lock.ids[here]);
            for other in others {
                other.join().unwrap();
            }
            lock.check_at_the_end(lock.ids[3]);
        });
        println!("{} executions", executions.lock().unwrap());
    }
}

/// Leaves the queue empty while request 0 reads: a reader behind it has released the lock.
fn read_behind_an_empty_queue(lock: &Guarded) {
    assert!(lock.request(0, Read) && lock.request(3, Read));
    lock.release(3);
}

#[test]
fn loom_two_readers_and_a_writer() {
    play(2, &[], [ACQUIRE_READ, ACQUIRE_READ, ACQUIRE_WRITE]);
}

#[test]
fn loom_two_writers_and_a_reader() {
    play(2, &[], [ACQUIRE_WRITE, ACQUIRE_WRITE, ACQUIRE_READ]);
}

#[test]
fn loom_two_writers_and_one_that_cancels() {
    play(3, &[], [ACQUIRE_WRITE, ACQUIRE_WRITE, REQUEST_WRITE_AND_CANCEL]);
}

#[test]
fn loom_the_first_of_two_writers_behind_a_reader_cancels() {
    play(3, &[Read, Write, Write], [RELEASE, CANCEL, WAIT]);
}

#[test]
fn loom_the_middle_of_two_writers_behind_a_writer_cancels() {
    play(3, &[Write, Write, Write], [RELEASE, CANCEL, WAIT]);
}

#[test]
fn loom_a_writer_between_readers_cancels() {
    play(3, &[Read, Write, Read], [RELEASE, CANCEL, WAIT]);
}

#[test]
fn loom_two_neighbours_cancel_behind_a_writer() {
    play(3, &[Write, Read, Write], [RELEASE, CANCEL, CANCEL]);
}

#[test]
fn loom_two_neighbours_cancel_behind_a_reader() {
    play(2, &[Read, Write, Read], [RELEASE, CANCEL, CANCEL]);
}

#[test]
fn loom_the_last_reader_releases_beside_a_writer_that_cancels() {
    play(2, &[Read, Write], [RELEASE, CANCEL, ACQUIRE_READ]);
}

#[test]
fn loom_the_last_of_two_readers_releases_beside_a_writer() {
    play(3, &[Read, Read], [RELEASE, RELEASE, ACQUIRE_WRITE]);
}

#[test]
fn loom_a_reader_that_was_the_last_beside_another_reader_and_a_writer() {
    play_from(3, [RELEASE, ACQUIRE_READ, ACQUIRE_WRITE], read_behind_an_empty_queue);
}

#[test]
fn loom_the_last_reader_releases_beside_a_next_writer_that_cancels() {
    play_from(3, [RELEASE, REQUEST_WRITE_AND_CANCEL, ACQUIRE_WRITE], read_behind_an_empty_queue);
}

#[test]
fn loom_the_last_reader_releases_beside_a_next_writer_that_cancels_before_another() {
    play_from(3, [RELEASE, CANCEL, WAIT], |lock| {
        read_behind_an_empty_queue(lock);
        assert!(!lock.request(1, Write) && !lock.request(2, Write));
    });
}

#[test]
fn loom_the_last_reader_releases_beside_a_next_writer_that_cancels_before_a_reader() {
    play_from(3, [RELEASE, CANCEL, WAIT], |lock| {
        read_behind_an_empty_queue(lock);
        assert!(!lock.request(1, Write) && !lock.request(2, Read));
    });
}

#[test]
fn loom_a_reader_at_the_tail_cancels_beside_a_newcomer() {
    play(3, &[Write, Read], [RELEASE, CANCEL, ACQUIRE_READ]);
}

#[test]
fn loom_a_writer_at_the_tail_cancels_beside_a_newcomer() {
    play(3, &[Write, Write], [RELEASE, CANCEL, ACQUIRE_READ]);
}

#[test]
fn loom_a_writer_at_the_tail_cancels_beside_a_newcomer_that_cancels() {
    play(2, &[Read, Write], [RELEASE, CANCEL, REQUEST_READ_AND_CANCEL]);
}

#[test]
fn loom_a_reader_behind_a_reader_that_cancels() {
    play(3, &[Write, Read, Read], [RELEASE, CANCEL, WAIT]);
}

#[test]
fn loom_a_writer_behind_a_reader_that_cancels() {
    play(3, &[Write, Read, Write], [RELEASE, CANCEL, WAIT]);
}

#[test]
fn loom_tries_beside_a_release_of_a_writer() {
    play(3, &[Write], [RELEASE, TRY_READ, TRY_WRITE]);
}

#[test]
fn loom_tries_beside_a_release_of_a_reader() {
    play(3, &[Read], [RELEASE, TRY_READ, TRY_WRITE]);
}

#[test]
fn loom_tries_beside_an_acquisition() {
    play(2, &[], [ACQUIRE_WRITE, TRY_WRITE, TRY_READ]);
}
