use super::*;
use crate::tests::waiting::eventually;

#[test]
fn only_a_pin_keeps_the_reclamation_bound() {
    let epochs = Epochs::manual(10);
    let (reader, idle) = (epochs.register(), epochs.register());
    epochs.pin(&reader);
    let stamp = epochs.stamp();
    for _ in 0..5 {
        epochs.pass();
    }
    assert!(!epochs.is_free(stamp));
    epochs.unpin(&reader);
    epochs.pass();
    assert!(epochs.is_free(stamp));
    assert!(idle.idle_since(11));
}

#[test]
fn a_pin_for_memory_keeps_the_reclamation_bound_and_not_the_horizon() {
    let epochs = Epochs::manual(10);
    let slots = [(); 2].map(|()| epochs.register());
    epochs.pin_for_memory(&slots[0]).unwrap();
    let stamp = epochs.stamp();
    (0..5).for_each(|_| epochs.pass());
    assert_eq!((epochs.bound(), epochs.horizon(), epochs.is_free(stamp)), (10, 15, false));
    assert_eq!((slots[0].pinned_epoch(), slots[0].idle_since(20)), (Some(10), false));
    // The second session's full pin holds back the horizon.
    epochs.pin(&slots[1]);
    (0..5).for_each(|_| epochs.pass());
    assert_eq!((epochs.bound(), epochs.horizon()), (10, 15));
    epochs.unpin(&slots[0]);
    (0..5).for_each(|_| epochs.pass());
    assert_eq!((epochs.bound(), epochs.horizon(), epochs.is_free(stamp)), (15, 15, true));
    epochs.unpin(&slots[1]);
    epochs.pass();
    assert_eq!((epochs.bound(), epochs.horizon(), slots[1].pinned_epoch()), (26, 26, None));
}

#[test]
fn the_clock_stops_at_the_last_epoch() {
    let epochs = Epochs::manual(EPOCH_MAX - 1);
    epochs.pass();
    epochs.pass();
    assert_eq!(epochs.now(), EPOCH_MAX);
    epochs.advance_past(EPOCH_MAX);
    assert_eq!(epochs.now(), EPOCH_MAX);
}

#[test]
fn only_the_advancer_moves_the_epoch_while_a_thread_waits_for_others() {
    // This test does the work of the advancer.
    let epochs = Epochs::starting(10, Some(Moments::new()));
    let reader = epochs.register();
    let waits = || epochs.alarm.lock().waiting == 1;
    std::thread::scope(|scope| {
        let pin = epochs.pinned(&reader);
        let waiter = scope.spawn(|| epochs.wait_for_others());
        for passes in 0..100 {
            eventually("it waits for the next pass", || waits() || epochs.now() != 10 + passes);
            assert_eq!(epochs.now(), 10 + passes, "an epoch has passed without the advancer");
            epochs.advance();
        }
        assert!(!waiter.is_finished(), "the reader is there");
        drop(pin);
        eventually("it waits for the last pass", waits);
        epochs.advance();
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    assert_eq!((epochs.now(), epochs.used_up()), (111, 0));
}

#[test]
fn a_thread_that_waits_for_a_pass_wakes_the_advancer() {
    let epochs = Epochs::advancing();
    eventually("the advancer parks", || epochs.clock.parked.load(Ordering::Relaxed) == PARKED);
    let before = epochs.alarm.lock().passes;
    epochs.await_pass();
    assert!(epochs.alarm.lock().passes > before);
}

#[test]
fn a_thread_waits_for_no_pass_if_no_session_is_pinned() {
    let epochs = Epochs::starting(10, Some(Moments::new()));
    let (reader, report) = (epochs.register(), epochs.register());
    // Without an advancer, a wait for a pass would last for minutes.
    assert_eq!((epochs.wait_for_others(), epochs.now()), (Ok(()), 10));
    epochs.pin(&reader);
    epochs.pin_for_memory(&report).unwrap();
    assert!(!epochs.has_no_pin());
    epochs.unpin(&reader);
    assert!(!epochs.has_no_pin());
    epochs.unpin(&report);
    assert!(epochs.has_no_pin());
}

#[test]
fn epochs_that_commits_have_ended_are_counted() {
    let epochs = Epochs::manual(10);
    epochs.pass();
    assert_eq!(epochs.used_up(), 0);
    // The second call finds the epoch ended already.
    (0..2).for_each(|_| epochs.advance_past(11));
    assert_eq!((epochs.now(), epochs.used_up()), (12, 1));
}

#[test]
fn the_advancer_parks_when_idle_and_wakes_for_a_pin() {
    // The process's own epochs are shared with other tests, which may never all be idle.
    let epochs = Epochs::advancing();
    let slot = epochs.register();
    eventually("the advancer parks", || epochs.clock.parked.load(Ordering::Relaxed) == PARKED);
    let before = epochs.now();
    epochs.pin(&slot);
    eventually("it wakes", || epochs.now() > before + 2);
    epochs.unpin(&slot);
    epochs.unregister(&slot);
}
