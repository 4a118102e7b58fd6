//! Memory is freed while sessions are pinned.

use super::explore;
use crate::epoch::{Epochs, Slot};
use crate::sync::{AtomicU64, Ordering, thread};
use std::sync::Arc;

scenes! {
    /// A reader holds a block under its pin. Another thread unlinks the block, reads a stamp, and
    /// tests whether the block is free.
    loom_pin_against_reclaim = pin_against_reclaim(Epochs::pin);
    loom_pin_of_a_snapshot_against_reclaim = pin_against_reclaim(pin_for_memory);
}

fn pin_for_memory(epochs: &Epochs, slot: &Slot) {
    epochs.pin_for_memory(slot).expect("no step runs");
}

fn pin_against_reclaim(pin: fn(&Epochs, &Slot)) {
    const LIVE: u64 = 1;
    const FREED: u64 = 2;
    explore(5, move || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(AtomicU64::new(LIVE));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                pin(&epochs, &reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    assert_eq!(block.load(Ordering::Relaxed), LIVE, "freed under a pin");
                }
                epochs.unpin(&reader_slot);
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        for _ in 0..2 {
            epochs.pass();
            if epochs.is_free(stamp) {
                block.store(FREED, Ordering::Relaxed);
            }
        }
        reader.join().unwrap();
        epochs.pass();
        assert!(epochs.is_free(stamp), "a block that no session holds is free after a pass");
    });
}

/// A block is not freed under a reader's pin. The passes run on a separate thread, and loom detects
/// concurrent use of the block's memory.
#[test]
fn loom_reader_unlinker_advancer() {
    struct Cell(loom::cell::UnsafeCell<u64>);
    // SAFETY: the test asserts that no two threads use the value at the same time.
    unsafe impl Sync for Cell {}
    explore(3, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(Cell(loom::cell::UnsafeCell::new(0)));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    // SAFETY: as above.
                    block.0.with(|block| assert_eq!(unsafe { *block }, 0, "freed under a pin"));
                }
                epochs.unpin(&reader_slot);
            })
        };
        let advancer = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                epochs.pass();
                epochs.pass();
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        if epochs.is_free(stamp) {
            // SAFETY: as above.
            block.0.with_mut(|block| unsafe { *block = 1 });
        }
        reader.join().unwrap();
        advancer.join().unwrap();
    });
}

/// A reader begins its second transaction at once after its first. An advancer that does not see
/// the end of the first pin sees the second pin. With that pin, the advancer also sees that the
/// first transaction has ended.
#[test]
fn loom_reader_that_pins_again() {
    struct Cell(loom::cell::UnsafeCell<u64>);
    // SAFETY: the test asserts that no two threads use the value at the same time.
    unsafe impl Sync for Cell {}
    explore(4, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(Cell(loom::cell::UnsafeCell::new(0)));
        let slot = epochs.register();
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&slot);
                if link.load(Ordering::Acquire) == 1 {
                    // SAFETY: as above.
                    block.0.with(|block| assert_eq!(unsafe { *block }, 0, "freed under a pin"));
                }
                epochs.unpin(&slot);
                epochs.pin(&slot);
                epochs.unpin(&slot);
            })
        };
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        (0..2).for_each(|_| epochs.pass());
        if epochs.is_free(stamp) {
            // SAFETY: as above.
            block.0.with_mut(|block| unsafe { *block = 1 });
        }
        reader.join().unwrap();
    });
}

/// A reader joins a view of the past while another thread has replaced the value that is visible in
/// it, and renews the view. Passes run on a third thread. A reader of time 1 finds the value, and
/// one of time 2 the commit's outcome.
#[test]
fn loom_reader_of_the_past_against_renewal() {
    const LIVE: u64 = 1;
    const FREED: u64 = 2;
    explore(3, || {
        let epochs = Epochs::manual(5);
        let view = Arc::new(epochs.past_view());
        epochs.renew_past(&view, || 1);
        let block = Arc::new(AtomicU64::new(LIVE));
        let outcome = Arc::new(AtomicU64::new(0));
        let slot = epochs.register();
        let reader = {
            let (epochs, view) = (epochs.clone(), view.clone());
            let (block, outcome) = (block.clone(), outcome.clone());
            thread::spawn(move || {
                match epochs.pin_in_past(&slot, &view, u64::MAX).unwrap() {
                    Some(1) => {
                        assert_eq!(block.load(Ordering::Relaxed), LIVE, "freed under a pin");
                    }
                    Some(2) => {
                        assert_eq!(outcome.load(Ordering::Relaxed), 1, "its commit has ended");
                    }
                    time => panic!("there is no view of {time:?}"),
                }
                epochs.unpin(&slot);
            })
        };
        outcome.store(1, Ordering::Relaxed);
        let stamp = epochs.stamp();
        epochs.pass();
        let advancer = {
            let (epochs, block) = (epochs.clone(), block.clone());
            thread::spawn(move || {
                epochs.pass();
                if epochs.is_free(stamp) {
                    block.store(FREED, Ordering::Relaxed);
                }
            })
        };
        epochs.renew_past(&view, || 2);
        reader.join().unwrap();
        advancer.join().unwrap();
        epochs.pass();
        assert!(epochs.is_free(stamp), "the view's holder does not see the value any more");
    });
}
