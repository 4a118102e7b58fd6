//! Epochs: a clock of milliseconds that commits number themselves by, and the bound behind which memory is free.
//!
//! # Definitions
//! The *epoch* is one number per process; the advancer adds one each millisecond, whatever anyone does. A session that
//! may hold references into an index is *pinned*: its [`Slot`] shows the epoch it read when it began. A *stamp* is the
//! epoch read after something was unlinked and a full fence. The *bound* is the smallest pin that a pass of the
//! advancer saw (or the new epoch, if it saw none). What has a stamp below the bound is free.
//!
//! # Invariants
//! * **P1** A pin is published, and a full fence passed, before its session loads any link.
//! * **P2** A stamp is read after the unlinking and a full fence.
//! * **P3** A pass reads the new epoch `m`, passes a full fence, and only then looks at the slots; no bound exceeds its `m`.
//! * **P4** The bound never falls.
//!
//! # Why a block with a stamp below the bound is out of reach
//! Let reader R hold a block that U unlinked with stamp `f`, and let pass A publish a bound above `f`. The epoch that A
//! read before its fence is at least the bound, hence above `f`; were A's fence before U's, U would have read that
//! epoch or a later one; so U's fence precedes A's. R loaded the link before it was removed, so R's fence precedes
//! U's. Thus A, after its fence, sees R's pin `p`, and its bound is at most `p`. And `p <= f`: R read `p` before its fence, U
//! read `f` after a later one, and the epoch only grows. So the bound is at most `f`, a contradiction.
//!
//! # Source
//! The scheme of "Opportunities for Optimism" (VLDB 2020), section 2, with one change: there a stamp is the unlinker's own
//! pin, which costs a second word per session, a publication loop at every begin, and a bound that must lag a pass behind.
//! Reading the epoch again after unlinking costs one fence per unlinking transaction instead.

#![forbid(unsafe_code)]

use crate::error::Error;
use crate::sync::{
    AtomicBool, AtomicU64, Duration, Instant, Mutant, Mutex, Ordering, full_fence, lock, mutant, store_then_full_fence,
    thread,
};
use crossbeam_utils::CachePadded;
use std::sync::{Arc, Condvar, Mutex as StdMutex, PoisonError, Weak};

/// Time between two passes.
const PERIOD: Duration = Duration::from_millis(1);

/// The longest anyone waits for running transactions to end.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Passes without any pin before the advancer parks: long enough that a busy program never wakes it.
const IDLE_PASSES: u64 = 64;

/// An epoch: 38 bits, which last for eight years of milliseconds.
pub(crate) type Epoch = u64;

/// The last epoch. The clock stops there, and commits that would need a later one are refused.
pub(crate) const EPOCH_MAX: Epoch = (1 << 38) - 1;

/// The epochs of a process.
#[derive(Debug)]
pub(crate) struct Epochs {
    clock: CachePadded<Clock>,
    /// Written by passes, read by whoever frees.
    bound: CachePadded<AtomicU64>,
    slots: Mutex<Vec<Arc<Slot>>>,
    collectors: StdMutex<Vec<Weak<dyn Collect>>>,
    advancer: StdMutex<Option<std::thread::JoinHandle<()>>>,
    alarm: Arc<Alarm>,
}

/// Where the advancer sleeps while nobody is active. Apart from [`Epochs`], so that a sleeper keeps nothing alive.
#[derive(Debug, Default)]
struct Alarm {
    sleep: StdMutex<Sleep>,
    wake: Condvar,
}

impl Alarm {
    fn ring(&self, set: impl FnOnce(&mut Sleep)) {
        set(&mut std_lock(&self.sleep));
        self.wake.notify_one();
    }

    /// Sleeps until rung, at once if that has happened already.
    fn sleep(&self) {
        let sleep = std_lock(&self.sleep);
        let rung = self.wake.wait_while(sleep, |sleep| !sleep.woken && !sleep.stopping);
        rung.unwrap_or_else(PoisonError::into_inner).woken = false;
    }
}

/// What every begin reads: written once a millisecond.
#[derive(Debug)]
struct Clock {
    epoch: AtomicU64,
    /// The advancer sleeps until someone pins.
    parked: AtomicBool,
}

#[derive(Debug, Default)]
struct Sleep {
    woken: bool,
    stopping: bool,
}

/// Who keeps garbage that idle sessions left. Called by the advancer after each pass.
pub(crate) trait Collect: Send + Sync + std::fmt::Debug {
    /// Frees what is behind the bound in the garbage of sessions that have not pinned since `idle_before`; says whether
    /// any garbage is left anywhere.
    fn collect(&self, idle_before: Epoch) -> bool;
}

/// A session's published pin: `epoch << 1 | pinned`. Written by its session alone.
#[derive(Debug)]
pub(crate) struct Slot(CachePadded<AtomicU64>);

impl Slot {
    /// The epoch of the last pin, and whether it is still held.
    fn look(&self) -> (Epoch, bool) {
        // Acquire pairs with `unpin` (E5): what the session read under its pin happened before what we free.
        let word = self.0.load(Ordering::Acquire);
        (word >> 1, word & 1 == 1)
    }

    /// The epoch in which the session began the transaction it is in, if it is in one.
    pub(crate) fn pinned_epoch(&self) -> Option<Epoch> {
        let (epoch, pinned) = self.look();
        pinned.then_some(epoch)
    }

    /// Whether the session is in a transaction.
    pub(crate) fn is_pinned(&self) -> bool {
        self.look().1
    }

    /// Whether the session has not been pinned since `epoch` began.
    pub(crate) fn idle_since(&self, epoch: Epoch) -> bool {
        let (last, pinned) = self.look();
        !pinned && last < epoch
    }
}

impl Epochs {
    /// Epochs that only move when told to: for models, and for tests that need to own time.
    pub(crate) fn manual(first: Epoch) -> Arc<Epochs> {
        Arc::new(Epochs {
            clock: CachePadded::new(Clock { epoch: AtomicU64::new(first), parked: AtomicBool::new(false) }),
            bound: CachePadded::new(AtomicU64::new(0)),
            slots: Mutex::new(Vec::new()),
            collectors: StdMutex::new(Vec::new()),
            advancer: StdMutex::new(None),
            alarm: Arc::default(),
        })
    }

    /// The epochs of this process, with their advancer running; stopped and joined when the last user is dropped.
    pub(crate) fn of_process() -> Arc<Epochs> {
        static CURRENT: StdMutex<Weak<Epochs>> = StdMutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(epochs) = current.upgrade() {
            return epochs;
        }
        let epochs = Epochs::manual(1);
        let (weak, alarm) = (Arc::downgrade(&epochs), epochs.alarm.clone());
        let advancer = std::thread::Builder::new().name("candide-epoch".into()).spawn(move || advance(&weak, &alarm));
        *std_lock(&epochs.advancer) = Some(advancer.expect("the operating system starts a thread"));
        *current = Arc::downgrade(&epochs);
        epochs
    }

    /// The current epoch. Where it numbers a commit, the caller has passed a full fence after taking its locks.
    #[inline]
    pub(crate) fn now(&self) -> Epoch {
        self.clock.epoch.load(Ordering::Acquire)
    }

    /// Garbage with a smaller stamp is free.
    #[inline]
    pub(crate) fn bound(&self) -> Epoch {
        // Acquire pairs with the pass's publication (E6).
        self.bound.load(Ordering::Acquire)
    }

    /// Whether garbage of this stamp is free.
    #[inline]
    pub(crate) fn is_free(&self, stamp: Epoch) -> bool {
        let bound = self.bound();
        stamp < bound || (mutant(Mutant::ReclaimEarly) && stamp == bound)
    }

    /// The stamp for what this thread has unlinked up to now (P2).
    pub(crate) fn stamp(&self) -> Epoch {
        full_fence(); // E10
        self.now()
    }

    /// A slot for a new session.
    pub(crate) fn register(&self) -> Arc<Slot> {
        let slot = Arc::new(Slot(CachePadded::new(AtomicU64::new(self.now() << 1))));
        lock(&self.slots).push(slot.clone());
        slot
    }

    /// Forgets the slot of a session that is gone.
    pub(crate) fn unregister(&self, slot: &Arc<Slot>) {
        lock(&self.slots).retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Adds a database whose idle sessions' garbage the advancer shall collect.
    pub(crate) fn add_collector(&self, collector: Weak<dyn Collect>) {
        std_lock(&self.collectors).push(collector);
    }

    /// Pins the session (P1).
    #[inline]
    pub(crate) fn pin(&self, slot: &Slot) {
        let epoch = self.clock.epoch.load(Ordering::Relaxed);
        store_then_full_fence(&slot.0, epoch << 1 | 1); // E10
        // The fence makes this a handshake with the advancer, which announces and then looks at the slots (E7).
        if self.clock.parked.load(Ordering::Relaxed) {
            self.unpark();
        }
    }

    /// Ends the session's pin.
    #[inline]
    pub(crate) fn unpin(&self, slot: &Slot) {
        let pinned = slot.0.load(Ordering::Relaxed);
        debug_assert!(pinned & 1 == 1);
        slot.0.store(pinned & !1, Ordering::Release); // E5
    }

    /// Moves the epoch past `epoch`, for a committer that has used all of its numbers. Does nothing at the last one.
    pub(crate) fn advance_past(&self, epoch: Epoch) {
        if epoch < EPOCH_MAX {
            // Failure means that someone else has advanced.
            let _ = self.clock.epoch.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// One pass: a new epoch, a new bound (P3, P4).
    pub(crate) fn pass(&self) {
        self.advance_past(self.now());
        let mut smallest = self.now();
        full_fence(); // E10
        for slot in lock(&self.slots).iter() {
            let (epoch, pinned) = slot.look();
            if pinned {
                smallest = smallest.min(epoch);
            }
        }
        self.bound.fetch_max(smallest, Ordering::AcqRel); // E6
    }

    /// Waits until every transaction of the process that is running now has ended, with passes of its own.
    ///
    /// # Errors
    /// [`Error::Busy`] if one goes on for ten seconds.
    pub(crate) fn wait_for_others(&self) -> Result<(), Error> {
        let begun = Instant::now();
        let stamp = self.stamp();
        loop {
            self.pass();
            if self.is_free(stamp) {
                return Ok(());
            }
            if begun.elapsed() > WAIT_MAX {
                return Err(Error::Busy);
            }
            thread::yield_now();
        }
    }

    /// Lets the databases collect for their idle sessions; says whether garbage is left.
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
        lock(&self.slots).iter().all(|slot| slot.idle_since(since))
    }

    /// Announces that the advancer is about to sleep; says whether nobody has become active meanwhile.
    fn announce_parked(&self) -> bool {
        self.clock.parked.store(true, Ordering::Relaxed);
        full_fence(); // E7
        self.all_idle()
    }

    #[cold]
    fn unpark(&self) {
        self.alarm.ring(|sleep| sleep.woken = true);
    }
}

impl Drop for Epochs {
    fn drop(&mut self) {
        let advancer = std_lock(&self.advancer).take();
        if let Some(advancer) = advancer {
            self.alarm.ring(|sleep| sleep.stopping = true);
            // The advancer itself may have dropped the last reference; it then ends by itself.
            if advancer.thread().id() != std::thread::current().id() {
                let _ = advancer.join();
            }
        }
    }
}

/// The advancer's life. It owns nothing while it sleeps, so that dropping the last database ends it.
fn advance(epochs: &Weak<Epochs>, alarm: &Alarm) {
    loop {
        std::thread::sleep(PERIOD);
        let Some(current) = epochs.upgrade() else { return };
        current.clock.parked.store(false, Ordering::Relaxed);
        current.pass();
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
    fn the_clock_stops_at_the_last_epoch() {
        let epochs = Epochs::manual(EPOCH_MAX - 1);
        epochs.pass();
        epochs.pass();
        assert_eq!(epochs.now(), EPOCH_MAX);
        epochs.advance_past(EPOCH_MAX);
        assert_eq!(epochs.now(), EPOCH_MAX);
    }

    #[test]
    fn the_advancer_parks_when_idle_and_wakes_for_a_pin() {
        let epochs = Epochs::of_process();
        let slot = epochs.register();
        let wait_for = |what: &dyn Fn() -> bool| {
            let begun = std::time::Instant::now();
            while !what() {
                assert!(begun.elapsed() < Duration::from_secs(20), "waited too long");
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        // Other tests of this process share the advancer; they end.
        wait_for(&|| epochs.clock.parked.load(Ordering::Relaxed));
        let before = epochs.now();
        epochs.pin(&slot);
        wait_for(&|| epochs.now() > before + 2);
        epochs.unpin(&slot);
        epochs.unregister(&slot);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Either the advancer sees that somebody is active and stays awake, or whoever is active rings for it.
    #[test]
    fn loom_pin_against_parking() {
        loom::model(|| {
            let epochs = Epochs::manual(5);
            let slot = epochs.register();
            // Long after anybody was active.
            epochs.clock.epoch.store(6 + IDLE_PASSES, Ordering::Relaxed);
            let advancer = {
                let epochs = epochs.clone();
                thread::spawn(move || epochs.announce_parked())
            };
            epochs.pin(&slot);
            let parks = advancer.join().unwrap();
            assert!(!parks || std_lock(&epochs.alarm.sleep).woken, "it sleeps while somebody is active");
            epochs.unpin(&slot);
        });
    }
}
