//! Epochs: a clock of milliseconds from which commits take their numbers, and the bound below which
//! memory is free.
//!
//! # Definitions
//! The *epoch* is one number per process. A thread, the *advancer*, adds one to the epoch each
//! millisecond. A commit that finds the epoch's numbers used up also advances the epoch
//! ([`Epochs::advance_past`]), and so does an attempt that needs a new epoch at once
//! ([`Epochs::tick_between_passes`]). Each round of the advancer is a *pass*. A thread that waits
//! for the end of an epoch sleeps meanwhile. A session that may hold references into an index is
//! *pinned*: its [`Slot`] shows the epoch that the session read when its transaction began. A
//! *stamp* is the epoch that a thread reads after it has unlinked memory and passed a full fence.
//! The *bound* is the smallest pin that a pass of the advancer saw, or the new epoch if the pass
//! saw no pin. Memory with a stamp below the bound is free.
//!
//! The versions that a reader in a snapshot needs are kept for the snapshot, however long the
//! reader runs. The reader's pin only keeps memory from being freed, and is called a pin *for
//! memory*. All other pins are *full*, also those of readers in the past (`past.rs`). A full pin
//! may become a pin for memory once its session's view is in the list of snapshots. The *horizon*
//! is the smallest full pin, so the horizon is never below the bound. No transaction outside of
//! snapshots will see a version that was replaced before the horizon.
//!
//! # Invariants
//! * **EP1** A session publishes its pin and passes a full fence before it loads any link.
//! * **EP2** A thread reads a stamp after the unlinking and a full fence.
//! * **EP3** A pass reads the new epoch `m`, passes a full fence, and only then loads the slots.
//!   The bound that the pass publishes does not exceed `m`.
//! * **EP4** The bound and the horizon never fall.
//!
//! # Why a block with a stamp below the bound is out of reach
//! Let reader R hold a block, let thread U have unlinked the block with stamp `f`, and let pass A
//! publish a bound above `f`. The epoch that A read before A's fence is at least the bound, hence
//! above `f`. If A's fence came before U's fence, U would have read that epoch or a later one. So
//! U's fence precedes A's fence. R loaded the link before U removed the link, so R's fence precedes
//! U's fence. Thus A, after A's fence, sees R's pin `p`, and A's bound is at most `p`. And `p <=
//! f`: R read `p` before R's fence, U read `f` after U's later fence, and the epoch only grows. So
//! the bound is at most `f`, which is a contradiction.
//!
//! One case is different. The links in a bucket that has been moved (`index::hash`, HI3) are never
//! removed. So such links still exist when their records and lines are unlinked elsewhere. A reader
//! that follows such links has loaded, under its present pin, a version of that bucket without the
//! flag MOVED. An insert that samples the neighbours of a full bucket has loaded, under its pin, an
//! array without a successor. So the bucket was moved after R's fence, and U's fence came later
//! still.
//!
//! # Source
//! The scheme is that of "Opportunities for Optimism" (VLDB 2020), section 2, with one change. In
//! the paper a stamp is the pin of the thread that unlinks. Such stamps cost a second word per
//! session, a publication loop at the begin of every transaction, and a bound that must lag a pass
//! behind. Here the thread reads the epoch again after unlinking. The second reading costs one
//! fence per transaction that unlinks.

#![forbid(unsafe_code)]

mod advancer;
mod alarm;
mod moments;
mod number;
mod past;
mod slot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(crate) use moments::Moment;
pub(crate) use number::{EPOCH_MAX, Epoch};
pub(crate) use past::PastView;
pub(crate) use slot::Slot;

use crate::error::Abort;
use crate::sync::{
    AtomicU64, Mutex, Ordering, count_pin, count_unpin, full_fence, lock, process,
    store_then_full_fence,
};
use alarm::Alarm;
use crossbeam_utils::CachePadded;
use moments::Moments;
use slot::{Pin, Published, Slots};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

/// The value of [`Clock::parked`] while the advancer sleeps. It is not below the number of pins of
/// any thread.
const PARKED: u64 = u64::MAX;

/// The number of times that attempts may move the epoch between two passes of the advancer. With as
/// many, the epochs of a process last for a year.
const TICKS_MAX: u64 = 8;

/// The epochs of a process.
#[derive(Debug)]
pub struct Epochs {
    clock: CachePadded<Clock>,
    /// The bound and the horizon. Passes write them, and sessions that free memory read them.
    bounds: CachePadded<Bounds>,
    slots: Mutex<Slots>,
    collectors: Mutex<Vec<Weak<dyn Collect>>>,
    /// The number of epochs ended by commits that had used up the epoch's numbers.
    used_up: AtomicU64,
    /// The number of epochs that were ended by attempts that needed a new epoch at once.
    asked: AtomicU64,
    /// The moments at which epochs ended. `None` if explicit calls move the epochs: there is no
    /// advancer then, and each epoch counts as one millisecond.
    moments: Option<Moments>,
    advancer: OnceLock<process::JoinHandle<()>>,
    alarm: Arc<Alarm>,
}

/// The words that every transaction reads when it begins. A pass writes them once a millisecond.
#[derive(Debug)]
struct Clock {
    epoch: AtomicU64,
    /// [`PARKED`] while the advancer sleeps until a session pins, and zero otherwise.
    parked: AtomicU64,
    /// `passes` is the number of passes so far, counted from 1. `ticked` is the number of the last
    /// tick ([`Epochs::tick_between_passes`]): those after pass `n` have the numbers from
    /// `n * TICKS_MAX` on.
    passes: AtomicU64,
    ticked: AtomicU64,
}

#[derive(Debug)]
struct Bounds {
    bound: AtomicU64,
    horizon: AtomicU64,
}

/// A database whose idle sessions may have left garbage. The advancer calls `collect` after each
/// pass.
pub(crate) trait Collect: Send + Sync {
    /// Collects the garbage of each session whose last pin was taken before `idle_before`, if that
    /// pin has ended or is only for memory. Returns whether any session of the database has garbage
    /// left.
    fn collect(&self, idle_before: Epoch) -> bool;
}

impl Epochs {
    /// Makes epochs that only explicit calls move. Models use such epochs, and tests that control
    /// time.
    pub(crate) fn manual(first: Epoch) -> Arc<Epochs> {
        Epochs::starting(first, None)
    }

    fn starting(first: Epoch, moments: Option<Moments>) -> Arc<Epochs> {
        Arc::new(Epochs {
            clock: CachePadded::new(Clock {
                epoch: AtomicU64::new(first),
                parked: AtomicU64::new(0),
                passes: AtomicU64::new(1),
                ticked: AtomicU64::new(0),
            }),
            bounds: CachePadded::new(Bounds {
                bound: AtomicU64::new(0),
                horizon: AtomicU64::new(0),
            }),
            slots: Mutex::new(Slots { made: 0, all: BTreeMap::new() }),
            collectors: Mutex::new(Vec::new()),
            used_up: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            moments,
            advancer: OnceLock::new(),
            alarm: Arc::default(),
        })
    }

    /// Returns the current epoch. A caller that numbers a commit by this epoch must have passed a
    /// full fence after taking its locks.
    #[inline]
    pub(crate) fn now(&self) -> Epoch {
        self.clock.epoch.load(Ordering::Acquire)
    }

    /// Returns the bound. Garbage with a smaller stamp is free.
    #[inline]
    pub(crate) fn bound(&self) -> Epoch {
        // Acquire pairs with the pass's publication (E6).
        self.bounds.bound.load(Ordering::Acquire)
    }

    /// Returns the horizon. Only transactions in snapshots can still see a version that was
    /// replaced in a smaller epoch.
    #[inline]
    pub(crate) fn horizon(&self) -> Epoch {
        // Acquire pairs with the pass's publication of the horizon (E6).
        self.bounds.horizon.load(Ordering::Acquire)
    }

    /// Returns whether garbage with this stamp is free.
    #[inline]
    pub(crate) fn is_free(&self, stamp: Epoch) -> bool {
        stamp < self.bound()
    }

    /// Returns a number that rises whenever the bound or the horizon rises.
    #[inline]
    pub(crate) fn progress(&self) -> u64 {
        self.bound() + self.horizon()
    }

    /// Returns the stamp for everything that this thread has unlinked so far (EP2).
    pub(crate) fn stamp(&self) -> Epoch {
        full_fence(); // E10
        self.now()
    }

    /// Registers a slot for a new session.
    pub(crate) fn register(&self) -> Arc<Slot> {
        let pin = AtomicU64::new(Slot::word(self.now(), Pin::Nothing));
        let slots = &mut *lock(&self.slots);
        slots.made += 1;
        let slot = Arc::new(Slot(CachePadded::new(Published { pin, number: slots.made })));
        slots.all.insert(slots.made, slot.clone());
        slot
    }

    /// Removes the slot of a session that has been closed.
    pub(crate) fn unregister(&self, slot: &Slot) {
        lock(&self.slots).all.remove(&slot.0.number);
    }

    /// Adds a database. The advancer will collect the garbage of its idle sessions.
    pub(crate) fn add_collector(&self, collector: Weak<dyn Collect>) {
        lock(&self.collectors).push(collector);
    }

    /// Pins the session (EP1), but not for an attempt of a transaction.
    #[inline]
    pub(crate) fn pin(&self, slot: &Slot) {
        let _ = self.pin_as(slot, Pin::Full);
    }

    /// Pins the session for an attempt (EP1).
    ///
    /// # Errors
    /// [`Abort::Nested`] if the thread runs a step. The session is not pinned then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pin_for_attempt(&self, slot: &Slot) -> Result<(), Abort> {
        self.pin_if_admitted(slot, Pin::Full)
    }

    /// Pins the session for an attempt, for memory only. The session reads in a snapshot. The
    /// snapshot stays open until the pin has ended.
    ///
    /// # Errors
    /// As [`Epochs::pin_for_attempt`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pin_for_memory(&self, slot: &Slot) -> Result<(), Abort> {
        self.pin_if_admitted(slot, Pin::ReclamationOnly)
    }

    /// Turns the session's full pin into a pin for memory only. From now on the session reads in
    /// an open snapshot.
    pub(crate) fn hold_memory_only(&self, slot: &Slot) {
        let (epoch, pin) = slot.look();
        debug_assert!(pin.is_full());
        // Release: a pass that sees the pin "for memory only" also sees the snapshot in the list
        // (E5).
        slot.0.pin.store(Slot::word(epoch, Pin::ReclamationOnly), Ordering::Release);
    }

    /// Takes the pin of a pinned session anew.
    pub(crate) fn pin_again(&self, slot: &Slot) {
        let _ = self.publish(slot, Pin::Full, 1);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pin_if_admitted(&self, slot: &Slot, pin: Pin) -> Result<(), Abort> {
        if self.pin_as(slot, pin) {
            return Ok(());
        }
        self.unpin(slot);
        Err(Abort::Nested)
    }

    /// Pins the session. Returns whether the thread may begin an attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pin_as(&self, slot: &Slot, pin: Pin) -> bool {
        self.publish(slot, pin, count_pin())
    }

    /// Publishes a pin of a thread that has `pins` pins. Returns whether `pins` is not zero.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn publish(&self, slot: &Slot, pin: Pin, pins: u64) -> bool {
        let epoch = self.clock.epoch.load(Ordering::Relaxed);
        self.publish_word(slot, Slot::word(epoch, pin), pins)
    }

    /// As [`Epochs::publish`], for a pin given as the slot's word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn publish_word(&self, slot: &Slot, word: u64, pins: u64) -> bool {
        store_then_full_fence(&slot.0.pin, word); // E10
        // The fence pairs with the advancer's. The advancer sets `parked` and then reads the slots;
        // this thread publishes its slot and then reads `parked`. So at least one of the two
        // threads sees what the other has written (E7). One comparison answers whether the advancer
        // sleeps, and whether the thread may begin an attempt.
        if pins > self.clock.parked.load(Ordering::Relaxed) { true } else { self.after_pin(pins) }
    }

    /// Wakes the advancer if it sleeps. Returns whether `pins` is not zero.
    #[cold]
    fn after_pin(&self, pins: u64) -> bool {
        if self.clock.parked.load(Ordering::Relaxed) == PARKED {
            self.unpark();
        }
        pins > 0
    }

    /// Pins the session until the returned guard is dropped. Callers that may panic use this
    /// function.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pinned<'a>(&'a self, slot: &'a Slot) -> Pinned<'a> {
        self.pin(slot);
        Pinned { epochs: self, slot }
    }

    /// Pins the session for an attempt until the returned guard is dropped.
    ///
    /// # Errors
    /// As [`Epochs::pin_for_attempt`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pinned_for_attempt<'a>(&'a self, slot: &'a Slot) -> Result<Pinned<'a>, Abort> {
        self.pin_for_attempt(slot)?;
        Ok(Pinned { epochs: self, slot })
    }

    /// Ends the session's pin.
    #[inline]
    pub(crate) fn unpin(&self, slot: &Slot) {
        let pinned = slot.0.pin.load(Ordering::Relaxed);
        let unpinned = Slot::word(pinned >> Slot::PIN_BITS, Pin::Nothing);
        debug_assert_ne!(pinned, unpinned, "EP1: a pin was published");
        slot.0.pin.store(unpinned, Ordering::Release); // E5
        count_unpin();
    }

    /// Moves the current epoch past `epoch`, for a commit that finds the numbers of `epoch` used
    /// up, and counts the move. Does nothing if `epoch` has ended already, or is [`EPOCH_MAX`].
    #[cold]
    pub(crate) fn advance_past(&self, epoch: Epoch) {
        self.used_up.fetch_add(u64::from(self.step_from(epoch)), Ordering::Relaxed);
    }

    /// Ends the epoch `epoch`, for the logger, unless it has ended already or is [`EPOCH_MAX`].
    pub(crate) fn end_epoch(&self, epoch: Epoch) {
        self.step_from(epoch);
    }

    /// Returns the number of epochs ended by commits that had used up the epoch's numbers.
    pub(crate) fn used_up(&self) -> u64 {
        self.used_up.load(Ordering::Relaxed)
    }

    /// Moves the current epoch from `epoch` to the next, unless `epoch` has ended already or is
    /// [`EPOCH_MAX`]. Returns whether this call moved the current epoch.
    fn step_from(&self, epoch: Epoch) -> bool {
        let step = |epoch| {
            self.clock.epoch.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed)
        };
        epoch < EPOCH_MAX && step(epoch).is_ok()
    }

    /// Returns the present moment.
    pub(crate) fn moment(&self) -> Moment {
        self.moments.as_ref().map_or_else(|| self.now(), Moments::now)
    }

    /// Returns the latest moment at which a pin may have been taken in `epoch`. The lag of a bound
    /// equal to `epoch` is measured from the same moment.
    pub(crate) fn moment_of(&self, epoch: Epoch) -> Moment {
        self.moments.as_ref().map_or(epoch, |moments| moments.end_of(epoch))
    }

    /// Moves the epoch on, for an attempt that needs every commit so far to have an epoch before
    /// the current one. Does nothing if attempts have already moved it [`TICKS_MAX`] times since
    /// the advancer's last pass. Returns whether this call moved the epoch.
    pub(crate) fn tick_between_passes(&self) -> bool {
        // If explicit calls move the epochs, there are no passes to wait for.
        if self.moments.is_none() {
            return self.step_asked();
        }
        // Relaxed: these numbers only limit the ticks.
        let first = self.clock.passes.load(Ordering::Relaxed) * TICKS_MAX;
        let ticked = &self.clock.ticked;
        let last = ticked.load(Ordering::Relaxed);
        let next = first.max(last + 1);
        let may = next < first + TICKS_MAX
            && ticked.compare_exchange(last, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        may && self.step_asked()
    }

    fn step_asked(&self) -> bool {
        let has_moved = self.step_from(self.now());
        self.asked.fetch_add(u64::from(has_moved), Ordering::Relaxed);
        has_moved
    }

    /// Returns whether the clock ends epochs.
    #[cfg(any(test, feature = "experiments"))]
    pub(crate) fn pass_by_clock(&self) -> bool {
        self.moments.is_some()
    }

    /// Returns the number of epochs ended by attempts that needed a new epoch at once
    /// ([`Epochs::tick_between_passes`]).
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Makes one pass: begins a new epoch, and publishes a new bound and horizon (EP3, EP4).
    pub(crate) fn pass(&self) {
        self.step_from(self.now());
        self.clock.passes.fetch_add(1, Ordering::Relaxed);
        let mut bound = self.now();
        let mut horizon = bound;
        full_fence(); // E10
        for slot in lock(&self.slots).all.values() {
            let (epoch, pin) = slot.look();
            if pin != Pin::Nothing {
                bound = bound.min(epoch);
            }
            if pin.is_full() {
                horizon = horizon.min(epoch);
            }
        }
        debug_assert!(bound <= horizon, "EP4: a pin for memory only does not hold the horizon");
        // The horizon is raised first, so that the horizon is never below the bound.
        self.bounds.horizon.fetch_max(horizon, Ordering::AcqRel); // E6
        self.bounds.bound.fetch_max(bound, Ordering::AcqRel); // E6
    }
}

/// A guard of a session's pin. The pin ends when the guard is dropped.
pub(crate) struct Pinned<'a> {
    epochs: &'a Epochs,
    slot: &'a Slot,
}

impl Drop for Pinned<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        self.epochs.unpin(self.slot);
    }
}
