//! The slots in which sessions publish their pins.

#![forbid(unsafe_code)]

use super::number::Epoch;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of a session's pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pin {
    Nothing = 0,
    /// A pin that holds back both the horizon and the bound.
    Full = 1,
    /// A pin that holds back only the bound: the session reads in a snapshot.
    ReclamationOnly = 2,
    /// A full pin whose owner only reads, in the database's view of the past.
    Past = 3,
}

impl Pin {
    /// Returns whether the pin holds back the horizon.
    pub(super) fn is_full(self) -> bool {
        matches!(self, Pin::Full | Pin::Past)
    }
}

/// The published pin of a session.
#[derive(Debug)]
pub(crate) struct Slot(pub(super) CachePadded<Published>);

#[derive(Debug)]
pub(super) struct Published {
    /// The session's pin: `epoch << 2 | pin`. Only this session writes it.
    pub(super) pin: AtomicU64,
    /// The slot's number, counted over all slots ever made.
    pub(super) number: u64,
}

/// The slots of all sessions, in the order of registration.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) made: u64,
    pub(super) all: BTreeMap<u64, Arc<Slot>>,
}

impl Slot {
    pub(super) const PIN_BITS: u32 = 2;

    pub(super) fn word(epoch: Epoch, pin: Pin) -> u64 {
        epoch << Slot::PIN_BITS | pin as u64
    }

    /// Returns the epoch of the session's last pin, and the kind of the session's present pin.
    pub(super) fn look(&self) -> (Epoch, Pin) {
        // Acquire pairs with `unpin` (E5): the session's reads under its pin happen before memory
        // is freed.
        let word = self.0.pin.load(Ordering::Acquire);
        let pin = [Pin::Nothing, Pin::Full, Pin::ReclamationOnly, Pin::Past]
            .into_iter()
            .find(|&pin| Slot::word(word >> Slot::PIN_BITS, pin) == word);
        (word >> Slot::PIN_BITS, pin.expect("only pins are stored"))
    }

    /// Returns the epoch in which the session's running transaction began; `None` if no transaction
    /// is running.
    pub(crate) fn pinned_epoch(&self) -> Option<Epoch> {
        let (epoch, pin) = self.look();
        (pin != Pin::Nothing).then_some(epoch)
    }

    /// Returns the epoch of the session's last pin. Only the session itself may call this.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn own_epoch(&self) -> Epoch {
        self.0.pin.load(Ordering::Relaxed) >> Slot::PIN_BITS
    }

    /// Returns whether the session is in a transaction.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned_epoch().is_some()
    }

    /// Returns whether another thread may collect the session's garbage: the session's last pin was
    /// taken before `epoch`, and that pin has ended or is only for memory. (A transaction with a
    /// pin for memory reads in a snapshot, and may run for long.)
    pub(crate) fn leaves_garbage_since(&self, epoch: Epoch) -> bool {
        let (last, pin) = self.look();
        !pin.is_full() && last < epoch
    }

    /// Returns whether the session has not been pinned since `epoch` began.
    pub(crate) fn idle_since(&self, epoch: Epoch) -> bool {
        let (last, pin) = self.look();
        pin == Pin::Nothing && last < epoch
    }
}
