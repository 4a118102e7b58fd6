//! The session that is alone: no other one of the process has been pinned for some milliseconds.
//! What such a session finds in a row was written by itself, or by transactions that ended before
//! it was alone.
//!
//! # Rule
//! The word of [`Alone`] is [`NONE`], *announces* the number of a slot, *confirms* it, or is
//! [`ENDED`]. Exchanges alone change it.
//! * If all pins since [`RECENTLY`] are of one session S, and the word is [`NONE`], the advancer
//!   announces S, and passes a full fence. Then it puts every other slot aside
//!   ([`Slot::put_aside`]), which fails if the slot is pinned. Then it exchanges the announcement
//!   for a confirmation, or for [`NONE`] if a slot was pinned, unless the announcement has been
//!   exchanged. It holds the list of slots meanwhile.
//! * A session X whose pin, a full fence, finds its slot put aside loads the word. Unless that is
//!   [`NONE`], X exchanges it for [`ENDED`], passes a full fence, makes sure that the epoch rises,
//!   and exchanges [`ENDED`] for [`NONE`]. So X ends the epoch although another session has already
//!   exchanged the confirmation: that one may not have ended the epoch yet. New slots are put aside
//!   from their beginning.
//! * S is alone in an attempt if it finds itself confirmed after its pin ([`Alone::is`]).
//!
//! # Invariant
//! * **EP5** Let S be alone in an attempt that is pinned in epoch p. Then every commit of another
//!   session has either ended before S found itself confirmed, so that S has acquired it before the
//!   attempt reads anything, or is of a later epoch than p.
//!
//! *Proof.* Let C be the confirmation that S has read, A the advancer when it stored C, and X
//! another session with a commit. The value before C is A's announcement, and after C comes
//! [`ENDED`]. If the commit had ended when A put X's slot aside, or before X left the list of
//! slots, its unpin happens before C, and C before S's load (E33). Otherwise A did not find the
//! slot pinned, since it stored C: X pinned it after A had put it aside, or after A had looked at
//! it, or registered after A held the list. So X has found the slot aside at the pin for the
//! commit, or at an earlier pin of that kind; let F be the fence of that pin. A's fence came before
//! F, or A held the list before X registered: in both cases X, after F, loads A's announcement or a
//! later value. If it exchanged the announcement, C would not have been stored. So X meets C or a
//! later value, and there are two cases.
//!
//! X exchanges that value for [`ENDED`], passes a fence, and reads an epoch e that ends before the
//! commit reads its own. If p > e, S read an epoch after e and then passed the fence of its pin. So
//! X's second fence came first, and S's load after its own fence finds [`ENDED`] or a later value,
//! which is not C. Hence p <= e, and the commit is of a later epoch.
//!
//! X loads [`NONE`]. The first [`NONE`] after C was stored by a session that has exchanged a value
//! for [`ENDED`] and ended an epoch e. That exchange came after C: a session that makes it before
//! the announcement is pinned until it has ended e, so A finds it pinned, or it is S, which then
//! never reads C. So p <= e as in the first case. X acquires that e has ended (E33), so its commit
//! is of a later epoch.
//!
//! (At the last epoch, which does not rise, no attempt is alone: see `View::begin`.)

#![forbid(unsafe_code)]

use super::number::Epoch;
use super::slot::{Slot, Slots};
use crate::sync::{AtomicU64, Ordering, Point, full_fence, pass};
use std::sync::Arc;

/// No session is alone.
const NONE: u64 = 0;
/// No session is alone any more, and the epoch in which one was may not have ended. No slot has
/// the number zero.
const ENDED: u64 = 1;
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

    /// Lets no session be alone, for a session that has found its slot put aside, and calls
    /// `end_epoch`. So the commits of that session are of later epochs than the attempts of one
    /// that was alone.
    #[cold]
    #[inline(never)]
    pub(super) fn end(&self, end_epoch: impl FnOnce()) {
        // Acquire: the epoch has ended (E33).
        if self.0.load(Ordering::Acquire) == NONE {
            return;
        }
        self.0.swap(ENDED, Ordering::Relaxed);
        full_fence(); // E33
        end_epoch();
        // Release: the epoch has ended (E33).
        let _ = self.0.compare_exchange(ENDED, NONE, Ordering::Release, Ordering::Relaxed);
    }

    /// Announces and confirms the only session that has been pinned recently, if there is one.
    /// `now` is the epoch.
    pub(super) fn find(&self, slots: &Slots, now: Epoch) {
        let Some(recently) = now.checked_sub(RECENTLY) else { return };
        let is_recent = |slot: &&Arc<Slot>| !slot.is_aside() && !slot.idle_since(recently);
        let mut recent = slots.all.values().filter(is_recent);
        let (Some(slot), None) = (recent.next(), recent.next()) else { return };
        let number = slot.number();
        let (announce, relaxed) = (announced(number), Ordering::Relaxed);
        if self.0.compare_exchange(NONE, announce, relaxed, relaxed).is_err() {
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
