//! The registration of long read-only attempts as snapshots.

#![forbid(unsafe_code)]

use super::State;
use crate::engine::{Engine, Protocol, ReadView, Versions};
use crate::epoch::Epoch;
use crate::error::Abort;

/// The number of epochs after which a read-only transaction is registered as a snapshot.
/// Registering takes a lock, but few transactions run for so many epochs.
const REGISTERED_AFTER: Epoch = 8;

impl<P: Protocol> State<P> {
    /// Registers a long read-only attempt as a snapshot, so that the attempt delays collection no
    /// more than a snapshot does.
    pub(super) fn register_snapshot(&mut self, engine: &Engine<P>) {
        let slot = &self.worker.local.slot;
        let is_long = |epoch: &Epoch| engine.epochs.now() >= epoch + REGISTERED_AFTER;
        if self.registered.is_none()
            && let Some(epoch) = slot.pinned_epoch().filter(is_long)
            && let since = engine.epochs.moment_of(epoch)
            && let Some(time) = P::Versions::register_snapshot(&engine.clock, &self.attempt, since)
        {
            self.registered = Some((time, since));
            engine.epochs.hold_memory_only(slot);
        }
    }

    /// Has the next attempt read the view of a database that follows another one, as a registered
    /// snapshot, unless it reads in a snapshot anyway. `read_view` is what the caller of `run`
    /// wants. If the database follows no more, has the session's attempts write as others do.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_view(&mut self, engine: &Engine<P>, read_view: ReadView) {
        let following = engine.following.get().expect("the session reads a view");
        let since = engine.epochs.moment();
        let view = following.look(|ts| {
            if let ReadView::Snapshot(_) = read_view {
                return read_view;
            }
            P::Versions::open_again(&engine.clock, ts, since); // FW3
            self.registered = Some((ts, since));
            ReadView::Snapshot(ts)
        });
        self.worker.local.read_view = view.unwrap_or(read_view);
        if view.is_none()
            && let Some(log) = &mut self.log
        {
            log.admit_writes();
        }
    }

    /// Pins the session for a read-only attempt of a database whose readers see the past. If there
    /// is no time in the past that is recent enough, the attempt reads at its beginning.
    #[cold]
    #[inline(never)]
    pub(super) fn pin_in_past(&mut self, engine: &Engine<P>) -> Result<(), Abort> {
        let view = engine.past.as_ref().expect("the caller has looked");
        let local = &mut self.worker.local;
        engine.epochs.renew_past(view, || P::cut(&engine.clock, &engine.epochs));
        let time = engine.epochs.pin_in_past(&local.slot, view, engine.options.past_ms)?;
        local.read_view = time.map_or(ReadView::AtBegin, ReadView::Past);
        if time.is_none() { engine.epochs.pin_for_attempt(&local.slot) } else { Ok(()) }
    }

    /// Returns whether the attempt is registered as a snapshot.
    pub(super) fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// Unregisters the snapshot of an attempt.
    #[cold]
    pub(super) fn unregister_snapshot(&mut self, engine: &Engine<P>) {
        let (time, since) = self.registered.take().expect("it is registered");
        P::Versions::unregister_snapshot(&engine.clock, time, since);
    }
}
