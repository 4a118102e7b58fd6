//! The view of a database a little in the past, which its read-only transactions share.
//!
//! The view is an epoch and a *time* of the protocol's clock. Its *holder* is a slot without a
//! session. The holder behaves like a reader that has been pinned in the view's epoch, and then has
//! taken the time. A reader joins the view: it takes over both, while the holder is still pinned.
//! So whatever is kept for a reader that began in that epoch is kept for all that join. Readers
//! renew the view, at most once in an epoch; the advancer ends a view that is not renewed.
//!
//! # Invariants
//! * **PV1** While a view is published, its holder is pinned in its epoch or in an earlier one, and
//!   has been since before the time was taken.
//! * **PV2** A view is published when all commits up to its time have ended: when each session that
//!   was pinned when the time was taken has ended its pin, but for those that only read.
//! * **PV3** A reader publishes its pin, in the view's epoch, and passes a full fence. Then it
//!   finds the view still published, or tries again.
//!
//! # Why a pass sees the pin of a reader or of the holder
//! The view changes, the thread passes a full fence, and the holder's pin changes, all under the
//! lock under which a pass looks at the slots. If a pass looks at them before the change, the
//! holder's pin holds the horizon back. Otherwise let reader R have joined the view that was
//! published before. If the fence of the change came before R's fence (PV3), R would have found
//! another view. So R's fence came first, and the pass, which comes after the change, sees R's pin.

#![forbid(unsafe_code)]

use super::Epochs;
use super::moments::Moment;
use super::number::Epoch;
use super::slot::{Pin, Slot};
use crate::error::Abort;
use crate::sync::{AtomicU64, Mutex, Ordering, Point, count_pin, full_fence, lock, pass, try_lock};
use std::sync::Arc;

/// The epoch of a view that is not published. Epochs begin at one.
const NO_VIEW: Epoch = 0;

/// The number of epochs after which a view ends that has not been renewed.
const KEPT_FOR: Epoch = 32;

/// A view of a database in the past, which readers can join.
#[derive(Debug)]
pub(crate) struct PastView {
    /// The epoch of the view, or [`NO_VIEW`].
    epoch: AtomicU64,
    time: AtomicU64,
    /// The moment before which the time was not taken.
    taken: AtomicU64,
    /// The epoch in which the view was last renewed.
    renewed: AtomicU64,
    holder: Arc<Slot>,
    /// The next view, which is not published yet.
    next: Mutex<Option<Next>>,
}

/// A view that is published when all commits up to its time have ended.
#[derive(Debug, Clone, Copy)]
struct Next {
    epoch: Epoch,
    time: u64,
    taken: Moment,
    /// The sessions that were pinned when the time was taken have pins up to this epoch.
    pinned_until: Epoch,
}

impl Epochs {
    /// Makes a view that is not published.
    pub(crate) fn past_view(&self) -> PastView {
        PastView {
            epoch: AtomicU64::new(NO_VIEW),
            time: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            renewed: AtomicU64::new(NO_VIEW),
            holder: self.register(),
            next: Mutex::new(None),
        }
    }

    /// Removes the holder of a view, when the database is dropped.
    pub(crate) fn leave_past(&self, view: &PastView) {
        self.unregister(&view.holder);
    }

    /// Pins the session for an attempt that joins the view, and returns the view's time. Returns
    /// `None`, and does not pin, if no view is published that is at most `age` milliseconds old.
    ///
    /// # Errors
    /// As [`Epochs::pin_for_attempt`].
    pub(crate) fn pin_in_past(
        &self,
        slot: &Slot,
        view: &PastView,
        age: Moment,
    ) -> Result<Option<u64>, Abort> {
        // Moments are whole milliseconds, so an age may be one more than their difference.
        let is_young = |taken: Moment| self.moment().saturating_sub(taken) < age;
        let mut pins = None;
        loop {
            // Acquire: what is read of the view below is not older, and the outcomes of all commits
            // up to its time are visible (E33).
            let epoch = view.epoch.load(Ordering::Acquire);
            let taken = view.taken.load(Ordering::Acquire);
            let time = view.time.load(Ordering::Acquire);
            if epoch == NO_VIEW || !is_young(taken) {
                if pins.is_some() {
                    self.unpin(slot);
                }
                return Ok(None);
            }
            let pins = *pins.get_or_insert_with(count_pin);
            pass(Point::JoiningPast);
            if !self.publish_word(slot, Slot::word(epoch, Pin::Past), pins) {
                self.unpin(slot);
                return Err(Abort::Nested);
            }
            // Relaxed: the fence of the pin orders this load (PV3, E33).
            if view.epoch.load(Ordering::Relaxed) == epoch {
                return Ok(Some(time));
            }
        }
    }

    /// Renews the view, unless that was done in this epoch, or another thread is doing it:
    /// publishes the next view if all commits up to its time have ended, and begins another one.
    /// `now` is the time of the protocol's clock.
    pub(crate) fn renew_past(&self, view: &PastView, now: impl Fn() -> u64) {
        let current = self.now();
        if view.renewed.load(Ordering::Relaxed) == current {
            return;
        }
        let Some(mut next) = try_lock(&view.next) else { return };
        view.renewed.store(current, Ordering::Relaxed);
        if next.is_none_or(|next| self.publish_past(view, next)) {
            let new = self.begin_past(view, now);
            *next = (!self.publish_past(view, new)).then_some(new);
        }
    }

    /// Takes the time of the next view, with the holder pinned.
    fn begin_past(&self, view: &PastView, now: impl Fn() -> u64) -> Next {
        if !view.holder.is_pinned() {
            let _ = self.publish(&view.holder, Pin::Past, 1); // PV1
        }
        let (epoch, taken) = (self.now(), self.moment());
        full_fence(); // E10
        let time = now();
        full_fence(); // E10
        Next { epoch, time, taken, pinned_until: self.now() }
    }

    /// Publishes a view, if all commits up to its time have ended (PV2). Returns whether it did.
    fn publish_past(&self, view: &PastView, next: Next) -> bool {
        let slots = lock(&self.slots);
        let has_ended = |slot: &Arc<Slot>| {
            let (epoch, pin) = slot.look();
            pin != Pin::Full || epoch > next.pinned_until
        };
        let all_ended = slots.all.values().all(has_ended);
        if all_ended {
            // Release: a reader that sees one of these words sees those before (E33).
            view.time.store(next.time, Ordering::Release);
            view.taken.store(next.taken, Ordering::Release);
            self.change_past(view, next.epoch, Slot::word(next.epoch, Pin::Past));
        }
        drop(slots);
        all_ended
    }

    /// Publishes the view's epoch, and then changes the holder's pin. The caller has locked the
    /// slots.
    fn change_past(&self, view: &PastView, epoch: Epoch, holder: u64) {
        view.epoch.store(epoch, Ordering::Release);
        full_fence(); // E33
        view.holder.0.pin.store(holder, Ordering::Release); // E5
    }

    /// Ends the view if its holder has been pinned for many epochs.
    pub(crate) fn end_past_if_old(&self, view: &PastView) {
        let is_old = |epoch| self.now() > epoch + KEPT_FOR;
        if !view.holder.pinned_epoch().is_some_and(is_old) {
            return;
        }
        let mut next = lock(&view.next);
        let slots = lock(&self.slots);
        if let Some(epoch) = view.holder.pinned_epoch().filter(|&epoch| is_old(epoch)) {
            *next = None;
            self.change_past(view, NO_VIEW, Slot::word(epoch, Pin::Nothing));
        }
        drop(slots);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::with_hook;

    /// Makes epochs, and a view of them that is published: of time 1, in epoch 10.
    fn published() -> (Arc<Epochs>, Arc<PastView>) {
        let epochs = Epochs::manual(10);
        let view = Arc::new(epochs.past_view());
        epochs.renew_past(&view, || 1);
        (epochs, view)
    }

    /// Joins the view, and returns its time.
    fn join(epochs: &Epochs, view: &PastView, slot: &Slot) -> Option<u64> {
        epochs.pin_in_past(slot, view, 1_000).unwrap()
    }

    #[test]
    fn a_view_is_published_when_sessions_pinned_at_its_time_are_not() {
        let (epochs, view) = published();
        let [writer, later, reader] = [(); 3].map(|()| epochs.register());
        epochs.pass();
        epochs.pin(&writer);
        for time in 2..5 {
            epochs.pass();
            epochs.renew_past(&view, || time);
            epochs.pass();
            assert_eq!(epochs.horizon(), 10, "PV1");
            assert_eq!(join(&epochs, &view, &reader), Some(1));
            assert_eq!(reader.pinned_epoch(), Some(10), "PV3: the view's epoch");
            epochs.unpin(&reader);
        }
        epochs.unpin(&writer);
        // Neither a session that pins later nor a reader in the past delays the view of time 2.
        assert_eq!(join(&epochs, &view, &reader), Some(1));
        epochs.pin(&later);
        epochs.pass();
        epochs.renew_past(&view, || 5);
        epochs.unpin(&reader);
        assert_eq!(join(&epochs, &view, &reader), Some(2));
        epochs.unpin(&reader);
        epochs.unpin(&later);
    }

    #[test]
    fn the_holder_keeps_the_horizon_until_the_view_changes() {
        let (epochs, view) = published();
        let reader = epochs.register();
        (0..3).for_each(|_| epochs.pass());
        assert_eq!((epochs.bound(), epochs.horizon()), (10, 10), "PV1");
        assert_eq!(join(&epochs, &view, &reader), Some(1));
        epochs.renew_past(&view, || 2);
        (0..3).for_each(|_| epochs.pass());
        assert_eq!((epochs.bound(), epochs.horizon()), (10, 10), "a reader runs in epoch 10");
        epochs.unpin(&reader);
        epochs.pass();
        assert_eq!((epochs.bound(), epochs.horizon()), (13, 13));
    }

    #[test]
    fn a_reader_joins_no_view_that_changes_meanwhile() {
        let (epochs, view) = published();
        let reader = epochs.register();
        let (inner, changing) = (epochs.clone(), view.clone());
        let mut changes = 0;
        let hook = move |point| {
            if point == Point::JoiningPast && changes < 2 {
                changes += 1;
                inner.pass();
                inner.renew_past(&changing, || 1 + changes);
                inner.pass();
            }
        };
        assert_eq!(with_hook(hook, || join(&epochs, &view, &reader)), Some(3));
        assert_eq!(reader.pinned_epoch(), Some(13));
        epochs.unpin(&reader);
    }

    #[test]
    fn a_view_that_is_not_renewed_ends() {
        let (epochs, view) = published();
        let reader = epochs.register();
        for _ in 0..=KEPT_FOR {
            epochs.end_past_if_old(&view);
            assert!(view.holder.is_pinned());
            epochs.pass();
        }
        epochs.end_past_if_old(&view);
        assert!(!view.holder.is_pinned());
        assert_eq!(join(&epochs, &view, &reader), None);
        assert_eq!(reader.pinned_epoch(), None);
        epochs.renew_past(&view, || 2);
        assert_eq!(join(&epochs, &view, &reader), Some(2));
        epochs.unpin(&reader);
    }
}
