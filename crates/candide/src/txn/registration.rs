//! The registration of long read-only attempts as snapshots.

#![forbid(unsafe_code)]

use super::State;
use crate::engine::{Engine, Protocol, Versions};
use crate::epoch::Epoch;

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

    /// Unregisters the snapshot of a long read-only attempt.
    #[cold]
    pub(super) fn unregister_snapshot(&mut self, engine: &Engine<P>) {
        let (time, since) = self.registered.take().expect("it is registered");
        P::Versions::unregister_snapshot(&engine.clock, time, since);
    }
}
