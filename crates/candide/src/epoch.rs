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
//! memory*. All other pins are *full*. A full pin may become a pin for memory once its session's
//! view is in the list of snapshots. The *horizon* is the smallest full pin, so the horizon is
//! never below the bound. No transaction outside of snapshots will see a version that was replaced
//! before the horizon.
//!
//! # Invariants
//! * **EP1** A session publishes its pin and passes a full fence before it loads any link.
//! * **EP2** A thread reads a stamp after the unlinking and a full fence.
//! * **EP3** A pass reads the new epoch `m`, passes a full fence, and only then loads the slots.
//!   The bound that the pass publishes does not exceed `m`.
//! * **EP4** Neither the bound nor the horizon ever falls.
//!
//! # Why a block with a stamp below the bound is out of reach
//! Let reader R hold a block, let thread U have unlinked the block with stamp `f`, and let pass A
//! publish a bound above `f`. The epoch that A read before A's fence is at least the bound, hence
//! above `f`. If A's fence came before U's fence, U would have read that epoch or a later one. So
//! U's fence precedes A's fence. R loaded the link before U removed the link, so R's fence precedes
//! U's fence. Thus A, after A's fence, sees R's pin `p`, and A's bound is at most `p`. And `p <=
//! f`: R read `p` before R's fence, U read `f` after U's later fence, and the epoch only grows. So
//! the bound is at most `f`, a contradiction.
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
//! behind. Here the thread reads the epoch again after unlinking. This costs one fence per
//! transaction that unlinks.

#![forbid(unsafe_code)]

mod moments;
mod number;

pub(crate) use moments::Moment;
pub(crate) use number::{EPOCH_MAX, Epoch};

use crate::error::{Abort, Error};
use crate::sync::{
    AtomicBool, AtomicU64, Duration, Instant, MODELLED, Mutant, Mutex, Ordering, Point, full_fence,
    lock, mutant, pass, store_then_full_fence, thread, thread_address,
};
use crossbeam_utils::CachePadded;
use moments::Moments;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex as StdMutex, PoisonError, Weak};

/// Time between two passes.
const PERIOD: Duration = Duration::from_millis(1);

/// The longest wait for running transactions to end. The limit is higher in tests, which have long
/// transactions.
const WAIT_MAX: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });

/// The number of passes without any pin before the advancer parks. The number is so large that the
/// advancer of a busy program never parks.
const IDLE_PASSES: u64 = 64;

/// The epochs of a process.
#[derive(Debug)]
pub struct Epochs {
    clock: CachePadded<Clock>,
    /// The bound and the horizon. Passes write them, and sessions that free memory read them.
    bounds: CachePadded<Bounds>,
    slots: Mutex<Slots>,
    collectors: StdMutex<Vec<Weak<dyn Collect>>>,
    /// The number of epochs ended by commits that had used up the epoch's numbers.
    used_up: AtomicU64,
    /// The number of epochs that were ended by attempts that needed a new epoch at once.
    asked: AtomicU64,
    /// The moments at which epochs ended. `None` if explicit calls move the epochs: there is no
    /// advancer then, and each epoch counts as one millisecond.
    moments: Option<Moments>,
    advancer: StdMutex<Option<std::thread::JoinHandle<()>>>,
    alarm: Arc<Alarm>,
}

/// The alarm at which the advancer sleeps while no session is active. Other threads wait here for
/// the advancer's next pass. The alarm is separate from [`Epochs`], so that a sleeping advancer
/// does not keep the epochs alive.
#[derive(Debug, Default)]
struct Alarm {
    sleep: StdMutex<Sleep>,
    wake: Condvar,
    passed: Condvar,
}

impl Alarm {
    fn ring(&self, set: impl FnOnce(&mut Sleep)) {
        set(&mut std_lock(&self.sleep));
        self.wake.notify_one();
    }

    /// Sleeps until the alarm is rung or a thread waits for a pass. Returns at once if the alarm
    /// has been rung already, or a thread waits already.
    fn sleep(&self) {
        let sleep = std_lock(&self.sleep);
        let rung = self
            .wake
            .wait_while(sleep, |sleep| !sleep.woken && !sleep.stopping && sleep.waiting == 0);
        rung.unwrap_or_else(PoisonError::into_inner).woken = false;
    }

    /// Wakes the threads that wait for a pass.
    fn tell_of_pass(&self) {
        let sleep = &mut *std_lock(&self.sleep);
        sleep.passes += 1;
        if sleep.waiting > 0 {
            self.passed.notify_all();
        }
    }

    /// Sleeps until the advancer has made a pass, but no longer than [`WAIT_MAX`]. The advancer
    /// does not park meanwhile.
    fn await_pass(&self) {
        let mut sleep = std_lock(&self.sleep);
        let passes = sleep.passes;
        sleep.waiting += 1;
        self.wake.notify_one();
        let woken = self.passed.wait_timeout_while(sleep, WAIT_MAX, |sleep| sleep.passes == passes);
        woken.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
    }
}

/// The words that every transaction reads when it begins. A pass writes them once a millisecond.
#[derive(Debug)]
struct Clock {
    epoch: AtomicU64,
    /// Whether the advancer sleeps until a session pins.
    parked: AtomicBool,
    /// `passes` is the number of passes so far, counted from 1. `ticked` is the number of the last
    /// pass after which an attempt moved the epoch by itself ([`Epochs::tick_between_passes`]).
    passes: AtomicU64,
    ticked: AtomicU64,
}

#[derive(Debug)]
struct Bounds {
    bound: AtomicU64,
    horizon: AtomicU64,
}

#[derive(Debug, Default)]
struct Sleep {
    woken: bool,
    stopping: bool,
    /// `passes` is the number of the advancer's passes. `waiting` is the number of threads that
    /// wait for the advancer's next pass.
    passes: u64,
    waiting: usize,
}

/// A database whose idle sessions may have left garbage. The advancer calls `collect` after each
/// pass.
pub(crate) trait Collect: Send + Sync {
    /// Collects the garbage of each session whose last pin was taken before `idle_before`, if that
    /// pin has ended or is only for memory. Returns whether any session of the database has garbage
    /// left.
    fn collect(&self, idle_before: Epoch) -> bool;
}

/// The kind of a session's pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pin {
    Nothing = 0,
    /// A pin that holds back both the horizon and the bound.
    Full = 1,
    /// A pin that holds back only the bound: the session reads in a snapshot.
    ReclamationOnly = 2,
}

/// The published pin of a session.
#[derive(Debug)]
pub(crate) struct Slot(CachePadded<Published>);

#[derive(Debug)]
struct Published {
    /// The session's pin: `epoch << 2 | pin`. Only this session writes it.
    pin: AtomicU64,
    /// The thread of the session's last pin ([`thread_address`]). Only this session writes it.
    thread: AtomicU64,
    /// The slot's number, counted over all slots ever made.
    number: u64,
}

/// The slots of all sessions, in the order of registration.
#[derive(Debug)]
struct Slots {
    made: u64,
    all: BTreeMap<u64, Arc<Slot>>,
}

impl Slot {
    const PIN_BITS: u32 = 2;

    fn word(epoch: Epoch, pin: Pin) -> u64 {
        epoch << Slot::PIN_BITS | pin as u64
    }

    /// Returns the epoch of the session's last pin, and the kind of the session's present pin.
    fn look(&self) -> (Epoch, Pin) {
        // Acquire pairs with `unpin` (E5): the session's reads under its pin happen before memory
        // is freed.
        let word = self.0.pin.load(Ordering::Acquire);
        let pin = [Pin::Nothing, Pin::Full, Pin::ReclamationOnly]
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
        pin != Pin::Full && last < epoch
    }

    /// Returns whether the session has not been pinned since `epoch` began.
    pub(crate) fn idle_since(&self, epoch: Epoch) -> bool {
        let (last, pin) = self.look();
        pin == Pin::Nothing && last < epoch
    }
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
                parked: AtomicBool::new(false),
                passes: AtomicU64::new(1),
                ticked: AtomicU64::new(0),
            }),
            bounds: CachePadded::new(Bounds {
                bound: AtomicU64::new(0),
                horizon: AtomicU64::new(0),
            }),
            slots: Mutex::new(Slots { made: 0, all: BTreeMap::new() }),
            collectors: StdMutex::new(Vec::new()),
            used_up: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            moments,
            advancer: StdMutex::new(None),
            alarm: Arc::default(),
        })
    }

    /// Returns the epochs of this process, with a running advancer. The advancer is stopped and
    /// joined when the last user of the epochs is dropped.
    pub(crate) fn of_process() -> Arc<Epochs> {
        static CURRENT: StdMutex<Weak<Epochs>> = StdMutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(epochs) = current.upgrade() {
            return epochs;
        }
        let epochs = Epochs::advancing();
        *current = Arc::downgrade(&epochs);
        epochs
    }

    /// Makes epochs with an advancer of their own.
    pub(crate) fn advancing() -> Arc<Epochs> {
        let epochs = Epochs::starting(1, Some(Moments::new()));
        let (weak, alarm) = (Arc::downgrade(&epochs), epochs.alarm.clone());
        let advancer = std::thread::Builder::new()
            .name("candide-epoch".into())
            .spawn(move || advance(&weak, &alarm));
        *std_lock(&epochs.advancer) = Some(advancer.expect("the operating system starts a thread"));
        epochs
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
        let bound = if mutant(Mutant::FreedByHorizon) { self.horizon() } else { self.bound() };
        stamp < bound || (mutant(Mutant::ReclaimEarly) && stamp == bound)
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
        let thread = AtomicU64::new(0);
        let slots = &mut *lock(&self.slots);
        slots.made += 1;
        let slot = Arc::new(Slot(CachePadded::new(Published { pin, thread, number: slots.made })));
        slots.all.insert(slots.made, slot.clone());
        slot
    }

    /// Removes the slot of a session that has been closed.
    pub(crate) fn unregister(&self, slot: &Slot) {
        lock(&self.slots).all.remove(&slot.0.number);
    }

    /// Adds a database. The advancer will collect the garbage of its idle sessions.
    pub(crate) fn add_collector(&self, collector: Weak<dyn Collect>) {
        std_lock(&self.collectors).push(collector);
    }

    /// Pins the session (EP1).
    #[inline]
    pub(crate) fn pin(&self, slot: &Slot) {
        self.pin_as(slot, Pin::Full);
    }

    /// Pins the session for memory only. The session reads in a snapshot. The snapshot stays open
    /// until the pin has ended.
    #[inline]
    pub(crate) fn pin_for_memory(&self, slot: &Slot) {
        self.pin_as(slot, Pin::ReclamationOnly);
    }

    /// Turns the session's full pin into a pin for memory only. From now on the session reads in
    /// an open snapshot.
    pub(crate) fn hold_memory_only(&self, slot: &Slot) {
        let (epoch, pin) = slot.look();
        debug_assert_eq!(pin, Pin::Full);
        // Release: a pass that sees the pin "for memory only" also sees the snapshot in the list
        // (E5).
        slot.0.pin.store(Slot::word(epoch, Pin::ReclamationOnly), Ordering::Release);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pin_as(&self, slot: &Slot, pin: Pin) {
        let epoch = self.clock.epoch.load(Ordering::Relaxed);
        if !MODELLED {
            // Relaxed: only this thread looks for its own number.
            slot.0.thread.store(thread_address(), Ordering::Relaxed);
        }
        store_then_full_fence(&slot.0.pin, Slot::word(epoch, pin)); // E10
        // The fence pairs with the advancer's. The advancer sets `parked` and then reads the slots;
        // this thread publishes its slot and then reads `parked`. So at least one of the two
        // threads sees what the other has written (E7).
        if self.clock.parked.load(Ordering::Relaxed) {
            self.unpark();
        }
    }

    /// Pins the session until the returned guard is dropped. Callers that may panic use this
    /// function.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pinned<'a>(&'a self, slot: &'a Slot) -> Pinned<'a> {
        self.pin(slot);
        Pinned { epochs: self, slot }
    }

    /// Ends the session's pin.
    #[inline]
    pub(crate) fn unpin(&self, slot: &Slot) {
        let pinned = slot.0.pin.load(Ordering::Relaxed);
        let unpinned = Slot::word(pinned >> Slot::PIN_BITS, Pin::Nothing);
        debug_assert_ne!(pinned, unpinned, "EP1: a pin was published");
        slot.0.pin.store(unpinned, Ordering::Release); // E5
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
    /// the current one. Does nothing if an attempt has already called this function since the
    /// advancer's last pass. Returns whether this call moved the epoch.
    pub(crate) fn tick_between_passes(&self) -> bool {
        // If explicit calls move the epochs, there are no passes to wait for.
        if self.moments.is_none() {
            return self.step_asked();
        }
        let (passes, ticked) = (&self.clock.passes, &self.clock.ticked);
        let (pass, last) = (passes.load(Ordering::Relaxed), ticked.load(Ordering::Relaxed));
        // Relaxed: these numbers only limit the ticks to one per pass.
        let may = last != pass
            && ticked.compare_exchange(last, pass, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        may && self.step_asked()
    }

    fn step_asked(&self) -> bool {
        let has_moved = self.step_from(self.now());
        self.asked.fetch_add(u64::from(has_moved), Ordering::Relaxed);
        has_moved
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
            if pin == Pin::Full {
                horizon = horizon.min(epoch);
            }
        }
        debug_assert!(bound <= horizon, "EP4: a pin for memory only does not hold the horizon");
        // The horizon is raised first, so that the horizon is never below the bound.
        self.bounds.horizon.fetch_max(horizon, Ordering::AcqRel); // E6
        self.bounds.bound.fetch_max(bound, Ordering::AcqRel); // E6
    }

    /// Checks that this thread is not inside a transaction, for which it would wait in vain.
    ///
    /// # Errors
    /// [`Error::Transaction`] with [`Abort::Nested`].
    pub(crate) fn refuse_inside(&self) -> Result<(), Error> {
        let own = thread_address();
        let is_own = |slot: &Slot| slot.0.thread.load(Ordering::Relaxed) == own && slot.is_pinned();
        let is_inside = !MODELLED && lock(&self.slots).all.values().any(|slot| is_own(slot));
        if is_inside { Err(Error::Transaction(Abort::Nested)) } else { Ok(()) }
    }

    /// Waits until every transaction that is now running in this process has ended. Sleeps between
    /// the advancer's passes.
    ///
    /// # Errors
    /// [`Error::Busy`] if one of these transactions is still running after ten seconds.
    pub(crate) fn wait_for_others(&self) -> Result<(), Error> {
        let begun = Instant::now();
        let stamp = self.stamp();
        loop {
            self.await_pass();
            if self.is_free(stamp) {
                return Ok(());
            }
            let waited = begun.elapsed();
            if waited > WAIT_MAX {
                return Err(Error::Busy { waited });
            }
            pass(Point::Awaiting);
        }
    }

    /// Does the advancer's work of one period.
    fn advance(&self) {
        self.pass();
        if let Some(moments) = &self.moments {
            moments.mark(self.now());
        }
        self.alarm.tell_of_pass();
    }

    /// Waits for the advancer's next pass. If there is no advancer, this function makes a pass.
    fn await_pass(&self) {
        if self.moments.is_some() {
            self.alarm.await_pass();
        } else {
            self.pass();
            thread::yield_now();
        }
    }

    /// Lets the databases collect the garbage of their idle sessions. Returns whether garbage is
    /// left.
    fn collect(&self) -> bool {
        let idle_before = self.now().saturating_sub(8);
        let collectors: Vec<_> = {
            let mut collectors = std_lock(&self.collectors);
            collectors.retain(|collector| collector.strong_count() > 0);
            collectors.iter().filter_map(Weak::upgrade).collect()
        };
        let mut left = false;
        for collector in collectors {
            left |= collector.collect(idle_before);
        }
        left
    }

    fn all_idle(&self) -> bool {
        let since = self.now().saturating_sub(IDLE_PASSES);
        lock(&self.slots).all.values().all(|slot| slot.idle_since(since))
    }

    /// Announces that the advancer is about to sleep. Returns whether all sessions are still idle
    /// after the announcement.
    fn announce_parked(&self) -> bool {
        self.clock.parked.store(true, Ordering::Relaxed);
        full_fence(); // E7
        self.all_idle()
    }

    /// Makes the advancer pass soon, even if the advancer is asleep.
    #[cold]
    pub(crate) fn unpark(&self) {
        self.alarm.ring(|sleep| sleep.woken = true);
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

impl Drop for Epochs {
    fn drop(&mut self) {
        let advancer = std_lock(&self.advancer).take();
        if let Some(advancer) = advancer {
            self.alarm.ring(|sleep| sleep.stopping = true);
            // The advancer's own thread may be dropping the last reference. Then that thread ends
            // by itself.
            if advancer.thread().id() != std::thread::current().id() {
                let _ = advancer.join();
            }
        }
    }
}

/// Runs the advancer. A sleeping advancer holds no strong reference to `epochs`, so dropping the
/// last database ends the advancer.
fn advance(epochs: &Weak<Epochs>, alarm: &Alarm) {
    loop {
        std::thread::sleep(PERIOD);
        let Some(current) = epochs.upgrade() else { return };
        current.clock.parked.store(false, Ordering::Relaxed);
        current.advance();
        let garbage_left = current.collect();
        let parking = !garbage_left && current.all_idle() && current.announce_parked();
        drop(current);
        if parking {
            alarm.sleep();
        }
    }
}

fn std_lock<T: ?Sized>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::tests::waiting::eventually;

    #[test]
    fn a_pin_holds_the_bound_and_nothing_else_does() {
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
    fn a_pin_for_memory_holds_the_bound_and_not_the_horizon() {
        let epochs = Epochs::manual(10);
        let slots = [(); 2].map(|()| epochs.register());
        epochs.pin_for_memory(&slots[0]);
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
        let waits = || std_lock(&epochs.alarm.sleep).waiting == 1;
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
    fn a_thread_that_waits_for_others_wakes_the_advancer() {
        let epochs = Epochs::advancing();
        eventually("the advancer parks", || epochs.clock.parked.load(Ordering::Relaxed));
        assert_eq!(epochs.wait_for_others(), Ok(()));
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
        eventually("the advancer parks", || epochs.clock.parked.load(Ordering::Relaxed));
        let before = epochs.now();
        epochs.pin(&slot);
        eventually("it wakes", || epochs.now() > before + 2);
        epochs.unpin(&slot);
        epochs.unregister(&slot);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Either the advancer sees the active session and stays awake, or that session wakes the
    /// advancer.
    #[test]
    fn loom_pin_against_parking() {
        loom::model(|| {
            let epochs = Epochs::manual(5);
            let slot = epochs.register();
            // The epoch is far beyond the last one in which a session was active.
            epochs.clock.epoch.store(6 + IDLE_PASSES, Ordering::Relaxed);
            let advancer = {
                let epochs = epochs.clone();
                thread::spawn(move || epochs.announce_parked())
            };
            epochs.pin(&slot);
            let parks = advancer.join().unwrap();
            assert!(
                !parks || std_lock(&epochs.alarm.sleep).woken,
                "it sleeps while a session is active"
            );
            epochs.unpin(&slot);
        });
    }
}
