//! Sleeping until a lock is free.
//!
//! # Rules
//! A waiter checks its lock for [`SPIN_ROUNDS`] rounds. Then the waiter *enters* the queue of the
//! lock's bucket, checks the lock once more, and sleeps. A running thread may take a free lock
//! although other threads sleep. So a lock is used while sleepers wake up.
//!
//! A release wakes the first sleeper that wants to own the lock, and the sleepers before it that
//! only want to look. But in each bucket, releases wake at most one sleeper that wants to own a
//! lock per [`WOKEN_EVERY`]: running threads take the lock again long before a sleeper is awake,
//! and a useless wake-up costs as much as ten transactions. A release that leaves a sleeper asleep
//! for this reason notes the bucket. Before the next thread goes to sleep, that thread wakes the
//! sleepers of the noted buckets ([`Parking::wake_unwoken`]). So the threads of a database do not
//! all sleep while one of them waits for a free lock.
//!
//! A waiter that has slept for [`HANDED_AFTER`], or has found the lock taken again after
//! [`LOST_MAX`] wake-ups, is *handed* the lock: the owner stores the waiter as the new owner
//! without freeing the lock, so no running thread can take the lock first. A bucket hands over a
//! lock at most once in [`HANDED_EVERY`], since the lock is idle from the hand-over until the
//! sleeper runs.
//!
//! # Bounds
//! The first of `n` sleepers at a lock is handed the lock at the first release after
//! [`HANDED_AFTER`]. The last sleeper is handed the lock `n` times [`HANDED_EVERY`] later: 16 ms
//! for 64 threads. The bound holds if the owners release the lock in time and the system runs
//! threads once they are woken. If the last owner has left the engine, it may happen that no thread
//! releases the lock again or goes to sleep. Then the first sleeper finds the lock free after
//! [`SLICE_MAX`] at the latest.
//!
//! # Cost
//! An owner that releases a lock loads one word. The word shows which buckets have waiters. The
//! word changes when a bucket gets its first waiter or loses its last one. The owner takes a
//! bucket's mutex and reads the clock only if the bucket of the released lock has waiters.
//!
//! # Lost wake-ups
//! A sleeper has entered, then passed a fence, then seen its lock taken. The owner stores the free
//! lock and then loads the word of waiters. There is no fence between this store and this load,
//! since the fence would slow down every release. So an owner may miss a waiter that enters while
//! the store is on its way to memory, which takes less than a microsecond. Such a waiter checks the
//! lock again by itself after [`SLICE_FIRST`], and then in doubling intervals up to [`SLICE_MAX`].
//! These two times have no other purpose. Under shuttle, where memory has one order, sleepers do
//! not wake up by themselves: a sleeper that no thread wakes is a deadlock. Under loom no thread
//! sleeps.

#![forbid(unsafe_code)]

use super::{
    AtomicU64, Duration, Instant, MODELLED, Mutex, MutexGuard, Ordering, full_fence, lock, thread,
};
use crossbeam_utils::CachePadded;
use thread::Thread;

/// The number of rounds in which a waiter checks its lock before it sleeps. All but the last round
/// are busy. The rounds take about two microseconds, the time in which a running owner commits. A
/// waiter that only wants to read waits for a commit in progress, not for a transaction's closure.
const SPIN_ROUNDS: u32 = if MODELLED { 2 } else { 64 };
/// The number of busy rounds of a waiter that was woken and has found the lock taken again.
const ROUNDS_AGAIN: u32 = if MODELLED { 1 } else { 8 };
/// The least time between two wake-ups, in one bucket, of waiters that want to own a lock.
const WOKEN_EVERY: Duration = Duration::from_micros(if MODELLED { 0 } else { 200 });
/// The time after its entry from which on a waiter may be handed its lock.
const HANDED_AFTER: Duration = Duration::from_micros(500);
/// The number of wake-ups after which a waiter that has not got its lock is handed the lock.
const LOST_MAX: u32 = if MODELLED { 1 } else { 8 };
/// The least time between two hand-overs in one bucket.
const HANDED_EVERY: Duration = Duration::from_micros(if MODELLED { 0 } else { 250 });
/// The length of the first sleep after which a waiter checks its lock by itself. Each following
/// sleep is twice as long as the one before.
const SLICE_FIRST: Duration = Duration::from_millis(1);
/// The length of the longest sleep after which a waiter checks its lock by itself.
const SLICE_MAX: Duration = Duration::from_millis(4);
/// The number of buckets. The addresses of locks are distributed over the buckets. One bit of a
/// word stands for each bucket.
const BUCKETS: usize = if MODELLED { 1 } else { 64 };

/// The queues of sleeping waiters, found by the addresses of the locks that they wait for.
#[derive(Debug)]
pub(crate) struct Parking {
    /// The buckets that have waiters, one bit for each.
    occupied: CachePadded<AtomicU64>,
    /// The buckets in which a release has left a sleeper asleep, one bit for each.
    unwoken: CachePadded<AtomicU64>,
    buckets: Box<[CachePadded<Mutex<Bucket>>]>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// The waiters in the order of their entry.
    waiters: Vec<Waiter>,
    entered: u64,
    /// The time of the last hand-over; `None` if there was none.
    handed: Option<Instant>,
    /// The time at which a waiter that wants to own a lock was last woken. `None` if the next such
    /// waiter may be woken at once.
    woken: Option<Instant>,
}

/// A thread that has entered a queue.
#[derive(Debug)]
struct Waiter {
    number: u64,
    address: u64,
    wish: Wish,
    state: State,
    thread: Thread,
    since: Instant,
    lost: u32,
}

/// The purpose of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To see a change of the lock, without owning it.
    Look,
    /// To own the lock. An owner that hands the lock over stores this number in the lock.
    Own(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asleep,
    Woken,
    /// The waiter owns the lock for which it waited.
    Handed,
}

/// The length of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A number of busy rounds, without sleeping.
    Rounds(u32),
    /// Busy rounds, and then sleeps for this time in total.
    Lasting(Duration),
    /// Busy rounds, and then sleeps until this time.
    Until(Instant),
    Endless,
}

/// The result of a round of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The waiter has to check the lock again.
    Again,
    /// The waiter owns the lock.
    Handed,
    /// The time limit of the wait has passed.
    InVain,
}

impl Parking {
    pub(crate) fn new() -> Parking {
        Parking::with_buckets(BUCKETS)
    }

    /// Makes a parking with one queue, for the waiters of one lock.
    pub(crate) fn of_one() -> Parking {
        Parking::with_buckets(1)
    }

    fn with_buckets(count: usize) -> Parking {
        let buckets = (0..count).map(|_| CachePadded::default()).collect();
        let bits = || CachePadded::new(AtomicU64::new(0));
        Parking { occupied: bits(), unwoken: bits(), buckets }
    }

    /// Returns whether any queue has waiters. May miss waiters that are just entering.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_sleepers(&self) -> bool {
        // Relaxed: see "Lost wake-ups". Under loom waiters check their locks again by themselves,
        // and each load here would be one more step to explore.
        !cfg!(loom) && self.occupied.load(Ordering::Relaxed) != 0
    }

    /// Returns the number of the bucket to which `address` belongs.
    fn place(&self, address: u64) -> usize {
        let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize % self.buckets.len()
    }

    /// Returns the addresses of the locks for which sleeping waiters wait.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn waited_for(&self) -> Vec<u64> {
        let waiters = |bucket: &CachePadded<Mutex<Bucket>>| {
            let bucket = lock(bucket);
            let asleep = bucket.waiters.iter().filter(|waiter| waiter.state == State::Asleep);
            asleep.map(|waiter| waiter.address).collect::<Vec<u64>>()
        };
        self.buckets.iter().flat_map(waiters).collect()
    }

    /// Returns the number of waiters that have ever entered.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn entered(&self) -> u64 {
        self.buckets.iter().map(|bucket| lock(bucket).entered).sum()
    }

    fn bucket(&self, address: u64) -> MutexGuard<'_, Bucket> {
        lock(&self.buckets[self.place(address)])
    }

    /// Returns whether the bucket of `address` has waiters.
    fn has_sleepers_at(&self, address: u64) -> bool {
        self.occupied.load(Ordering::Relaxed) & 1 << self.place(address) != 0
    }

    /// Releases the lock at `address`, which may have waiters, and wakes the next waiters. If a
    /// waiter is handed the lock, calls `free` with that waiter's number, and the waiter owns the
    /// lock from then on. Otherwise calls `free` with `None`.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(
        &self,
        address: u64,
        can_hand_over: bool,
        free: &mut dyn FnMut(Option<u64>),
    ) {
        if !self.has_sleepers_at(address) {
            free(None);
            return self.wake(address);
        }
        let mut bucket = self.bucket(address);
        let now = Instant::now();
        match bucket.starving(address, now).filter(|_| can_hand_over) {
            Some(index) => {
                bucket.handed = Some(now);
                let waiter = &mut bucket.waiters[index];
                let Wish::Own(number) = waiter.wish else {
                    unreachable!("a waiter that wants to own the lock")
                };
                free(Some(number));
                waiter.state = State::Handed;
                let thread = waiter.thread.clone();
                // Waiters that only look can now see a change of the lock, so they are woken, too.
                // The new owner is the first waiter that wants to own the lock, so `wake_next`
                // wakes no waiter behind the new owner.
                self.wake_next(bucket, address, now);
                thread.unpark();
            }
            None => {
                free(None);
                self.wake_next(bucket, address, now);
            }
        }
    }

    /// Wakes the next waiters for the lock at `address`, which has been released.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, address: u64) {
        if self.has_sleepers_at(address) {
            self.wake_next(self.bucket(address), address, Instant::now());
        }
    }

    /// Wakes the waiters for `address` that only look and come before the first waiter that wants
    /// to own the lock. Wakes this first one, too, unless it is less than [`WOKEN_EVERY`] since a
    /// waiter of the bucket that wants to own a lock was woken.
    fn wake_next(&self, mut bucket: MutexGuard<'_, Bucket>, address: u64, now: Instant) {
        let is_soon =
            bucket.woken.is_some_and(|woken| now.saturating_duration_since(woken) < WOKEN_EVERY);
        let mut owner = None;
        for waiter in bucket.waiters.iter_mut().filter(|waiter| waiter.address == address) {
            let is_asleep = waiter.state == State::Asleep;
            if waiter.wish != Wish::Look {
                owner = is_asleep.then_some(waiter);
                break;
            }
            if is_asleep {
                waiter.state = State::Woken;
                waiter.thread.unpark();
            }
        }
        let Some(owner) = owner else { return };
        if is_soon {
            drop(bucket);
            let bit = 1 << self.place(address);
            if self.unwoken.load(Ordering::Relaxed) & bit == 0 {
                self.unwoken.fetch_or(bit, Ordering::Relaxed);
            }
        } else {
            owner.state = State::Woken;
            let thread = owner.thread.clone();
            bucket.woken = Some(now);
            drop(bucket);
            thread.unpark();
        }
    }

    /// Wakes the sleepers that releases have left asleep. A thread calls this function before it
    /// goes to sleep.
    #[inline]
    pub(crate) fn wake_unwoken(&self) {
        if self.unwoken.load(Ordering::Relaxed) != 0 {
            self.wake_in(self.unwoken.swap(0, Ordering::Relaxed));
        }
    }

    /// Wakes sleepers in the buckets whose bits are set in `places`: for each address the first
    /// waiter that wants to own the lock there.
    #[cold]
    fn wake_in(&self, mut places: u64) {
        while places != 0 {
            let mut bucket = lock(&self.buckets[places.trailing_zeros() as usize]);
            places &= places - 1;
            bucket.woken = Some(Instant::now());
            for index in 0..bucket.waiters.len() {
                let (before, from) = bucket.waiters.split_at_mut(index);
                let waiter = &mut from[0];
                let is_before =
                    |other: &Waiter| other.address == waiter.address && other.wish != Wish::Look;
                if waiter.wish != Wish::Look
                    && waiter.state == State::Asleep
                    && !before.iter().any(is_before)
                {
                    waiter.state = State::Woken;
                    waiter.thread.unpark();
                }
            }
        }
    }
}

impl Bucket {
    fn place(&self, number: u64) -> usize {
        self.waiters.iter().position(|waiter| waiter.number == number).expect("it has entered")
    }

    /// Returns the index of the first waiter that wants to own the lock at `address`. Returns
    /// `None` if no waiter wants to own it, if the first such waiter has not waited long enough to
    /// be handed the lock, or if the bucket's last hand-over is less than [`HANDED_EVERY`] ago.
    fn starving(&self, address: u64, now: Instant) -> Option<usize> {
        let wants = |waiter: &Waiter| waiter.address == address && waiter.wish != Wish::Look;
        let index = self.waiters.iter().position(wants)?;
        let first = &self.waiters[index];
        let is_starving =
            first.lost >= LOST_MAX || now.saturating_duration_since(first.since) >= HANDED_AFTER;
        let is_time =
            self.handed.is_none_or(|handed| now.saturating_duration_since(handed) >= HANDED_EVERY);
        (is_starving && is_time && first.state != State::Handed).then_some(index)
    }
}

/// One wait for a lock. The wait consists of rounds, until the lock is free or `patience` is used
/// up.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    parking: &'a Parking,
    address: u64,
    wish: Wish,
    patience: Patience,
    rounds: u32,
    /// The number of the waiter's entry in the queue; `None` before the waiter has entered.
    number: Option<u64>,
    slice: Duration,
    /// Whether the waiter was woken, and has not yet found the lock taken since then.
    was_woken: bool,
}

impl<'a> Wait<'a> {
    #[inline]
    pub(crate) fn new(
        parking: &'a Parking,
        address: u64,
        wish: Wish,
        patience: Patience,
    ) -> Wait<'a> {
        Wait {
            parking,
            address,
            wish,
            patience,
            rounds: 0,
            number: None,
            slice: SLICE_FIRST,
            was_woken: false,
        }
    }

    /// Waits for one round. The round is either busy or a sleep. The function is never inlined, so
    /// that loops that seldom wait stay small.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self) -> Waited {
        self.rounds += 1;
        self.was_woken = false;
        if let Patience::Rounds(max) = self.patience {
            busy_round();
            return if self.rounds < max { Waited::Again } else { Waited::InVain };
        }
        if self.rounds < SPIN_ROUNDS {
            busy_round();
            return Waited::Again;
        }
        if cfg!(loom) {
            busy_round();
            return if matches!(self.patience, Patience::Endless) {
                Waited::Again
            } else {
                Waited::InVain
            };
        }
        match self.number {
            Some(number) => self.sleep(number),
            None => {
                self.enter();
                Waited::Again
            }
        }
    }

    fn enter(&mut self) {
        let place = self.parking.place(self.address);
        let mut bucket = lock(&self.parking.buckets[place]);
        if bucket.waiters.is_empty() {
            self.parking.occupied.fetch_or(1 << place, Ordering::Relaxed);
        }
        bucket.entered += 1;
        let number = bucket.entered;
        bucket.waiters.push(Waiter {
            number,
            address: self.address,
            wish: self.wish,
            state: State::Asleep,
            thread: thread::current(),
            since: Instant::now(),
            lost: 0,
        });
        self.number = Some(number);
        drop(bucket);
        if let Patience::Lasting(duration) = self.patience {
            self.patience =
                Instant::now().checked_add(duration).map_or(Patience::Endless, Patience::Until);
        }
        // The fence comes before the waiter's last load of the lock. If an owner does not see the
        // waiter in the queue, that load sees the free lock that the owner has stored (E1).
        full_fence();
    }

    /// Sleeps until the waiter is woken, or for one slice of time.
    fn sleep(&mut self, number: u64) -> Waited {
        if let Some(waited) = self.awoken(number) {
            return waited;
        }
        let left = match self.patience {
            Patience::Until(until) => until.saturating_duration_since(Instant::now()),
            _ => Duration::MAX,
        };
        if left.is_zero()
            || MODELLED && matches!((self.patience, self.wish), (Patience::Until(_), Wish::Own(_)))
        {
            return self.give_up();
        }
        self.parking.wake_unwoken();
        park_for(self.slice.min(left));
        self.slice = (self.slice * 2).min(SLICE_MAX);
        self.awoken(number).unwrap_or(Waited::Again)
    }

    /// Returns the result of this round if the waiter was woken; `None` if the waiter was not
    /// woken.
    fn awoken(&mut self, number: u64) -> Option<Waited> {
        let mut bucket = self.parking.bucket(self.address);
        let place = bucket.place(number);
        let waiter = &mut bucket.waiters[place];
        match waiter.state {
            State::Asleep => None,
            State::Woken => {
                waiter.state = State::Asleep;
                waiter.lost += 1;
                drop(bucket);
                self.rounds = SPIN_ROUNDS.saturating_sub(ROUNDS_AGAIN);
                self.slice = SLICE_FIRST;
                self.was_woken = true;
                Some(Waited::Again)
            }
            State::Handed => {
                drop(bucket);
                self.leave();
                Some(Waited::Handed)
            }
        }
    }

    /// Leaves the queue. Returns [`Waited::Handed`] if the waiter was handed the lock before. A
    /// waiter that was woken and leaves without the lock wakes the next waiter, even if the lock is
    /// free.
    pub(crate) fn give_up(&mut self) -> Waited {
        let was_woken = std::mem::take(&mut self.was_woken);
        match self.leave() {
            State::Handed => return Waited::Handed,
            State::Asleep if !was_woken => {}
            State::Asleep | State::Woken => {
                let mut bucket = self.parking.bucket(self.address);
                // The next waiter is woken in place of this one, so its wake-up need not wait for
                // `WOKEN_EVERY`.
                bucket.woken = None;
                self.parking.wake_next(bucket, self.address, Instant::now());
            }
        }
        Waited::InVain
    }

    fn leave(&mut self) -> State {
        let Some(number) = self.number.take() else { return State::Asleep };
        let mut bucket = self.parking.bucket(self.address);
        let place = bucket.place(number);
        let state = bucket.waiters.remove(place).state;
        if bucket.waiters.is_empty() {
            let others = !(1 << self.parking.place(self.address));
            self.parking.occupied.fetch_and(others, Ordering::Relaxed);
        }
        state
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let state = self.leave();
        // A waiter may be handed the lock just before it stops waiting, and must then free the
        // lock. So the waiter has to call `give_up`, which returns whether the waiter was handed
        // the lock.
        debug_assert!(state != State::Handed || std::thread::panicking(), "the lock is free");
    }
}

fn busy_round() {
    if MODELLED { thread::yield_now() } else { std::hint::spin_loop() }
}

/// Sleeps until the thread is woken. Outside of models, sleeps for `_longest` at most.
fn park_for(_longest: Duration) {
    #[cfg(not(any(loom, shuttle)))]
    thread::park_timeout(_longest);
    #[cfg(any(loom, shuttle))]
    thread::park();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const PLACE: u64 = 8;

    /// Waits until the waiter of `wait` is in the queue.
    fn enter(wait: &mut Wait<'_>) {
        while wait.number.is_none() {
            assert_eq!(wait.wait(), Waited::Again);
        }
    }

    fn owner(parking: &Parking, number: u64) -> Wait<'_> {
        let mut wait = Wait::new(parking, PLACE, Wish::Own(number), Patience::Endless);
        enter(&mut wait);
        wait
    }

    /// Releases the lock at `PLACE`. Returns the number of the waiter that was handed the lock;
    /// `None` if no waiter was.
    fn release(parking: &Parking, can_hand_over: bool) -> Option<u64> {
        let mut handed = None;
        parking.release(PLACE, can_hand_over, &mut |to| handed = to);
        handed
    }

    fn awoken(wait: &mut Wait<'_>) -> Option<Waited> {
        wait.awoken(wait.number.unwrap())
    }

    /// Wakes the next waiters, as if the present time were `begun` plus `times` times
    /// [`WOKEN_EVERY`].
    fn wake_at(parking: &Parking, begun: Instant, times: u32) {
        parking.wake_next(parking.bucket(PLACE), PLACE, begun + times * WOKEN_EVERY);
    }

    #[test]
    fn a_release_wakes_all_readers_and_the_first_waiting_owner() {
        let parking = Parking::new();
        let looking = || Wait::new(&parking, PLACE, Wish::Look, Patience::Endless);
        let (mut before, mut behind) = (looking(), looking());
        enter(&mut before);
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        enter(&mut behind);
        for _ in 0..2 {
            parking.wake(PLACE);
        }
        assert_eq!(awoken(&mut before), Some(Waited::Again));
        assert_eq!(awoken(&mut first), Some(Waited::Again));
        assert_eq!(
            (awoken(&mut second), awoken(&mut behind)),
            (None, None),
            "the first waiter has not entered the queue yet"
        );
        drop((before, first));
        wake_at(&parking, Instant::now(), 2);
        assert_eq!((awoken(&mut second), awoken(&mut behind)), (Some(Waited::Again), None));
        drop((second, behind));
        assert!(!parking.has_sleepers());
    }

    #[test]
    fn a_waiter_that_has_lost_eight_times_is_handed_the_lock() {
        let parking = Parking::new();
        let (mut first, second) = (owner(&parking, 1), owner(&parking, 2));
        let begun = Instant::now();
        for times in 0..LOST_MAX {
            wake_at(&parking, begun, times);
            assert_eq!(awoken(&mut first), Some(Waited::Again));
        }
        assert_eq!(release(&parking, false), None, "a lock that cannot be handed over is freed");
        assert_eq!(release(&parking, true), Some(1));
        assert_eq!(awoken(&mut first), Some(Waited::Handed));
        assert!(parking.has_sleepers());
        drop((first, second));
        assert!(!parking.has_sleepers());
    }

    #[test]
    fn a_waiter_enters_the_queue_after_its_busy_rounds() {
        let parking = Parking::new();
        for wish in [Wish::Look, Wish::Own(1)] {
            let mut wait = Wait::new(&parking, PLACE, wish, Patience::Endless);
            for _ in 1..SPIN_ROUNDS {
                assert_eq!((wait.wait(), wait.number), (Waited::Again, None));
            }
            assert_eq!(wait.wait(), Waited::Again);
            assert!(wait.number.is_some(), "{wish:?}");
        }
    }

    #[test]
    fn a_waiter_that_is_woken_and_gives_up_wakes_the_next() {
        let parking = Parking::new();
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        wake_at(&parking, Instant::now(), 0);
        assert_eq!(first.give_up(), Waited::InVain);
        assert_eq!(awoken(&mut second), Some(Waited::Again));
    }

    #[test]
    fn a_waiter_left_asleep_by_a_release_is_woken_before_a_thread_sleeps() {
        let parking = Parking::new();
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        let mut elsewhere = Wait::new(&parking, PLACE + 8, Wish::Own(3), Patience::Endless);
        enter(&mut elsewhere);
        let begun = Instant::now();
        for times in [0, 1] {
            wake_at(&parking, begun, times);
            assert_eq!(awoken(&mut first), Some(Waited::Again));
        }
        parking.wake_next(parking.bucket(PLACE), PLACE, begun + WOKEN_EVERY + WOKEN_EVERY / 2);
        assert_eq!(awoken(&mut first), None, "the handover is too soon after the last one");
        parking.wake_unwoken();
        assert_eq!(
            [&mut first, &mut second, &mut elsewhere].map(awoken),
            [Some(Waited::Again), None, None]
        );
        parking.wake_unwoken();
        assert_eq!(awoken(&mut first), None, "no waiter was left asleep since");
    }

    #[test]
    fn a_woken_waiter_that_gives_up_wakes_the_next() {
        let parking = Parking::new();
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        wake_at(&parking, Instant::now(), 0);
        assert_eq!(awoken(&mut first), Some(Waited::Again));
        // The waiter has checked the lock, and does not take the lock although it is free.
        assert_eq!(first.give_up(), Waited::InVain);
        assert_eq!(awoken(&mut second), Some(Waited::Again));
    }

    #[test]
    fn a_lock_that_is_handed_over_wakes_waiting_readers() {
        let parking = Parking::new();
        let mut looking = Wait::new(&parking, PLACE, Wish::Look, Patience::Endless);
        enter(&mut looking);
        let mut first = owner(&parking, 1);
        let begun = Instant::now();
        for times in 0..LOST_MAX {
            wake_at(&parking, begun, times);
            assert_eq!(awoken(&mut first), Some(Waited::Again));
        }
        assert_eq!(awoken(&mut looking), Some(Waited::Again));
        assert_eq!(release(&parking, true), Some(1));
        assert_eq!(
            awoken(&mut looking),
            Some(Waited::Again),
            "the waiter may have waited for the commit that has ended"
        );
        assert_eq!(awoken(&mut first), Some(Waited::Handed));
    }

    #[test]
    fn a_waiter_whose_deadline_passes_returns_without_the_lock() {
        let parking = Parking::new();
        let mut wait = Wait::new(&parking, PLACE, Wish::Own(1), Patience::Until(Instant::now()));
        enter(&mut wait);
        assert_eq!(wait.wait(), Waited::InVain);
        assert!(!parking.has_sleepers());
        let mut wait = Wait::new(&parking, PLACE, Wish::Own(1), Patience::Rounds(3));
        assert_eq!(
            [wait.wait(), wait.wait(), wait.wait()],
            [Waited::Again, Waited::Again, Waited::InVain]
        );
        assert!(!parking.has_sleepers(), "the waiter has never slept");
    }
}
