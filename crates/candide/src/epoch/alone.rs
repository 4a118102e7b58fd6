//! The session that is alone: no other one of the process has been pinned for some milliseconds.
//! What such a session finds in a row was written by itself, or by transactions that ended before
//! it was alone.
//!
//! # Rule
//! The word of [`Alone`] is [`NONE`], *announces* the number of a slot, or *confirms* it.
//! * If all pins since [`RECENTLY`] are of one session S, the advancer announces S, and passes a
//!   full fence. Then it puts every other slot aside ([`Slot::put_aside`]), which fails if the slot
//!   is pinned. Then it exchanges the announcement for a confirmation, if the announcement is still
//!   there.
//! * A session X whose pin, a full fence, finds its slot put aside exchanges the word for [`NONE`].
//!   If that replaces a confirmation, X passes a full fence, and then makes sure that the epoch
//!   rises. New slots are put aside from their beginning.
//! * S is alone in an attempt if it finds itself confirmed after its pin ([`Alone::is`]).
//!
//! # Invariant
//! * **EP5** Let S be alone in an attempt that is pinned in epoch p. Then every commit of another
//!   session has either ended before the attempt began, so that S has acquired it, or is of a later
//!   epoch than p.
//!
//! *Proof.* Let X be another session with a commit, and A the advancer when it set the confirmation
//! that S has read. If X's slot was put aside after the commit, and before A's confirmation, then
//! the commit's unpin happens before the exchange that put it aside, this before the confirmation,
//! and this before S's load of it (E33). Otherwise X pinned for the commit after its slot had been
//! put aside and after A had looked at it. So the fence of this pin came after A's fence, and X
//! found A's announcement or a later value. If X replaced the announcement, A's exchange failed. So
//! X replaced the confirmation, passed a fence, and read an epoch e that ended before the commit
//! read its own. If p > e, S has read an epoch after e, which was stored after X's load, and then
//! passed the fence of its pin. So X's fence came first, and S's load after its own finds what X
//! stored or a later value, which is not this confirmation. Hence p <= e, and the commit is of a
//! later epoch. (At the last epoch, which does not rise, no attempt is alone: see `View::begin`.)

#![forbid(unsafe_code)]

use super::number::Epoch;
use super::slot::{Slot, Slots};
use crate::sync::{AtomicU64, Ordering, Point, full_fence, pass};
use std::sync::Arc;

/// No session is alone.
const NONE: u64 = 0;
/// The number of epochs for which no other session has been pinned when a session is announced.
const RECENTLY: Epoch = 8;

/// Returns the word that announces the slot with this number.
fn announced(number: u64) -> u64 {
    number << 1
}

/// Returns the word that confirms the slot with this number.
#[inline(always)]
fn confirmed(number: u64) -> u64 {
    number << 1 | 1
}

/// The session that is alone.
#[derive(Debug)]
pub(super) struct Alone(AtomicU64);

impl Alone {
    /// Makes a state in which no session is alone.
    pub(super) fn none() -> Alone {
        Alone(AtomicU64::new(NONE))
    }

    /// Returns whether the session of `slot`, which is pinned, is confirmed.
    #[inline(always)]
    pub(super) fn is(&self, slot: &Slot) -> bool {
        // Acquire: what other sessions have committed before (E33).
        self.0.load(Ordering::Acquire) == confirmed(slot.number())
    }

    /// Lets no session be alone, for the session of `slot`, which has been pinned. Returns whether
    /// another one was confirmed. Then the caller, which has passed a full fence, makes sure that
    /// the epoch rises.
    #[cold]
    #[inline(never)]
    pub(super) fn end(&self, slot: &Slot) -> bool {
        if self.0.load(Ordering::Relaxed) == NONE {
            return false;
        }
        let was = self.0.swap(NONE, Ordering::Relaxed);
        debug_assert_ne!(was, confirmed(slot.number()), "a session that is alone is not put aside");
        let was_confirmed = was & 1 != 0;
        if was_confirmed {
            full_fence(); // E33
        }
        was_confirmed
    }

    /// Announces and confirms the only session that has been pinned recently, if there is one.
    /// `now` is the epoch.
    pub(super) fn find(&self, slots: &Slots, now: Epoch) {
        let Some(recently) = now.checked_sub(RECENTLY) else { return };
        let is_recent = |slot: &&Arc<Slot>| !slot.is_aside() && !slot.idle_since(recently);
        let mut recent = slots.all.values().filter(is_recent);
        let (Some(slot), None) = (recent.next(), recent.next()) else { return };
        let number = slot.number();
        let before = self.0.load(Ordering::Relaxed);
        if before == confirmed(number) {
            return;
        }
        let (announce, relaxed) = (announced(number), Ordering::Relaxed);
        if self.0.compare_exchange(before, announce, relaxed, relaxed).is_err() {
            return;
        }
        full_fence(); // E33
        let mut others = slots.all.values().filter(|other| other.number() != number);
        let all_are_aside = others.all(|other| other.put_aside());
        pass(Point::Announced);
        let confirm = if all_are_aside { confirmed(number) } else { NONE };
        // Release: what the other sessions had committed when their slots were put aside (E33).
        let _ = self.0.compare_exchange(announce, confirm, Ordering::Release, relaxed);
    }
}
