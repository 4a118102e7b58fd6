//! Sleeping until a lock is free.
//!
//! # Rules
//! A waiter looks at its lock for [`ROUNDS_BUSY`] rounds, then *enters* the queue of its lock's
//! bucket, looks once more, and sleeps. A running thread may take a free lock past all sleepers:
//! that is what keeps a lock busy while sleepers wake up.
//!
//! A release wakes the first sleeper that wants to own the lock, and those before it that only want
//! to look; but of the sleepers that want to own something, one per bucket and [`WOKEN_EVERY`]: the
//! running threads take the lock again long before a sleeper is awake, and waking it for nothing
//! costs as much as ten transactions. A release that leaves the sleeper asleep notes the bucket,
//! and whatever thread goes to sleep next wakes its sleepers first ([`Parking::wake_unwoken`]). So
//! the threads of a database do not all sleep while one of them waits for a free lock.
//!
//! A waiter that has slept for [`HANDED_AFTER`], or has lost [`LOST_MAX`] times after it was woken,
//! is *handed* the lock: the owner gives it over without freeing it, so no running thread can come
//! between. A bucket hands over once in [`HANDED_EVERY`] at most, since each time the lock is idle
//! until the sleeper runs.
//!
//! # Bounds
//! The first of `n` sleepers at a lock is handed it at the first release after [`HANDED_AFTER`],
//! and the last one `n` times [`HANDED_EVERY`] later: 16 ms for 64 threads, if the owners release
//! it in time and threads are let run when they are woken. Where no thread releases the lock again,
//! and none goes to sleep, because the last owner has left the engine, the first sleeper finds it
//! free after [`SLICE_MAX`] at the latest.
//!
//! # Cost
//! An owner that releases a lock looks whether there are sleepers at all, in a word that changes
//! when a bucket gets its first waiter or loses its last one. It takes the bucket's mutex, and asks
//! the clock, only if its own bucket has some.
//!
//! # Lost wake-ups
//! A sleeper has entered, then passed a fence, then seen its lock taken. The owner stores the free
//! lock and then looks for sleepers. There is no fence between the two, which each release would
//! have to pay for: so an owner may miss a waiter that enters while the store is on its way to
//! memory, which takes less than a microsecond. Such a waiter looks again by itself after
//! [`SLICE_FIRST`], and in doubling intervals up to [`SLICE_MAX`]. Nothing else rests on these
//! times: under shuttle, where memory has one order, there are none, and a sleeper that nothing
//! wakes is a deadlock. Under loom nothing sleeps.

#![forbid(unsafe_code)]

use super::{
    AtomicU64, Duration, Instant, MODELLED, Mutant, Mutex, MutexGuard, Ordering, full_fence, lock,
    mutant, thread,
};
use crossbeam_utils::CachePadded;
use thread::Thread;

/// The number of busy rounds before a waiter that wants to own something sleeps: some two
/// microseconds, in which a running owner commits.
const ROUNDS_BUSY: u32 = if MODELLED { 2 } else { 64 };
/// The number of busy rounds of a waiter that was woken and has found the lock taken again.
const ROUNDS_AGAIN: u32 = if MODELLED { 1 } else { 8 };
/// The number of busy rounds of a waiter that only reads the cell: it waits for a commit in
/// progress, not for a closure.
const ROUNDS_LOOKING: u32 = if MODELLED { 2 } else { 64 };
/// The time between two waiters of a bucket that are woken to own something.
const WOKEN_EVERY: Duration = Duration::from_micros(if MODELLED { 0 } else { 200 });
/// The time asleep after which a waiter is handed its lock.
const HANDED_AFTER: Duration = Duration::from_micros(500);
/// The number of lost wake-ups after which a waiter is handed its lock.
const LOST_MAX: u32 = if MODELLED { 1 } else { 8 };
/// The time between two locks of a bucket that are handed over.
const HANDED_EVERY: Duration = Duration::from_micros(if MODELLED { 0 } else { 250 });
/// The longest time of a waiter's first sleep, after which it checks the cell without being woken;
/// each following sleep is twice as long.
const SLICE_FIRST: Duration = Duration::from_millis(1);
/// The longest sleep of a waiter that is not woken.
const SLICE_MAX: Duration = Duration::from_millis(4);
/// The number of queues, to which addresses are distributed; each is a bit of a word.
const BUCKETS: usize = if MODELLED { 1 } else { 64 };

/// A parking lot: queues of sleeping waiters, by the address for which they wait.
#[derive(Debug)]
pub(crate) struct Parking {
    /// The buckets that have waiters.
    occupied: CachePadded<AtomicU64>,
    /// The buckets in which a release has left a sleeper asleep.
    unwoken: CachePadded<AtomicU64>,
    buckets: Box<[CachePadded<Mutex<Bucket>>]>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// The waiters in the order of their entry.
    waiters: Vec<Waiter>,
    entered: u64,
    /// The time of the last hand-over.
    handed: Option<Instant>,
    /// The time at which a waiter was last woken to own something.
    woken: Option<Instant>,
}

/// A thread that has entered.
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
    /// To see a change.
    Look,
    /// To own the lock; with a number for the owner that hands it over.
    Own(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asleep,
    Woken,
    /// It owns the lock it waited for.
    Handed,
}

/// The length of a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// A number of busy rounds, without sleeping.
    Rounds(u32),
    /// Busy rounds, then sleep for this time.
    Lasting(Duration),
    /// Until this time.
    Until(Instant),
    Endless,
}

/// The result of a round of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The waiter has to check the cell again.
    Again,
    /// The waiter owns the lock.
    Handed,
    /// The waiter's patience is at an end.
    InVain,
}

impl Parking {
    pub(crate) fn new() -> Parking {
        Parking::with_buckets(BUCKETS)
    }

    /// Makes a place for the waiters of one lock.
    pub(crate) fn of_one() -> Parking {
        Parking::with_buckets(1)
    }

    fn with_buckets(count: usize) -> Parking {
        let buckets = (0..count).map(|_| CachePadded::default()).collect();
        let bits = || CachePadded::new(AtomicU64::new(0));
        Parking { occupied: bits(), unwoken: bits(), buckets }
    }

    /// Returns whether any queue has waiters, except waiters that are just entering a queue.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        // Relaxed: see "Lost wake-ups". Under loom, waiters check again without being woken, and
        // each load would be one more step to explore.
        !cfg!(loom) && self.occupied.load(Ordering::Relaxed) != 0
    }

    /// Returns the number of the bucket of an address.
    fn place(&self, address: u64) -> usize {
        let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize % self.buckets.len()
    }

    /// Returns the addresses of sleeping waiters.
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

    /// Returns whether there are waiters in the bucket of an address.
    fn has_sleepers_at(&self, address: u64) -> bool {
        self.occupied.load(Ordering::Relaxed) & 1 << self.place(address) != 0
    }

    /// Releases the lock at an address, which may have waiters: calls `free` with the number of the
    /// waiter that is handed the lock and owns it from then on, or with `None`; then wakes the next
    /// waiters.
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
                    unreachable!("one that wants to own it")
                };
                free(Some(number).filter(|_| !mutant(Mutant::HandedByFreeing)));
                waiter.state = State::Handed;
                let thread = waiter.thread.clone();
                // Waiters that only read see the lock as released, too. The new owner is the first
                // waiter that wants to own the lock, so the wake-up ends there.
                self.wake_next(bucket, address, now);
                thread.unpark();
            }
            None => {
                free(None);
                self.wake_next(bucket, address, now);
            }
        }
    }

    /// Wakes the next waiters at an address, which has been released.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, address: u64) {
        if self.has_sleepers_at(address) && !mutant(Mutant::SleepersUnseen) {
            self.wake_next(self.bucket(address), address, Instant::now());
        }
    }

    /// Wakes the waiters at an address that only read, up to the first that wants to own the lock;
    /// wakes that one, too, unless another waiter was woken less than [`WOKEN_EVERY`] ago.
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

    /// Wakes the sleepers that releases have left asleep, on behalf of a thread that is going to
    /// sleep.
    #[inline]
    pub(crate) fn wake_unwoken(&self) {
        if self.unwoken.load(Ordering::Relaxed) != 0 {
            self.wake_in(self.unwoken.swap(0, Ordering::Relaxed));
        }
    }

    /// Wakes, in these buckets, the first waiter for each address that wants to own that.
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

    /// Returns the first waiter that wants to own the lock at an address, if it has waited long
    /// enough to be handed the lock.
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

/// One wait, for as long as it takes within its patience.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    parking: &'a Parking,
    address: u64,
    wish: Wish,
    patience: Patience,
    rounds: u32,
    /// The number of its entry in the queue.
    number: Option<u64>,
    slice: Duration,
    /// Whether the waiter was woken and has not found the lock taken since then.
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

    /// Waits for a round, or until it is woken. Out of line, so that loops which seldom wait stay
    /// small.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self) -> Waited {
        self.rounds += 1;
        self.was_woken = false;
        if let Patience::Rounds(max) = self.patience {
            busy_round();
            return if self.rounds < max { Waited::Again } else { Waited::InVain };
        }
        let busy = if self.wish == Wish::Look { ROUNDS_LOOKING } else { ROUNDS_BUSY };
        if self.rounds < busy {
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
        // Before the waiter checks once more: an owner that does not see it in the queue has stored
        // the free lock before that check (E1).
        full_fence();
    }

    /// Sleeps until it is woken, or for a slice.
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

    /// Returns the result of the wait if the waiter was woken.
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
                self.rounds = ROUNDS_BUSY - ROUNDS_AGAIN;
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

    /// Leaves the queue, unless the waiter is handed the lock. If it was woken, it wakes the next
    /// waiter in its place, also if the lock is free and it does not take it.
    pub(crate) fn give_up(&mut self) -> Waited {
        let was_woken = std::mem::take(&mut self.was_woken);
        match self.leave() {
            State::Handed => return Waited::Handed,
            State::Asleep if !was_woken => {}
            State::Asleep | State::Woken => {
                let mut bucket = self.parking.bucket(self.address);
                // The next waiter is woken in place of this one.
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
        // A waiter that is handed the lock while it still waits has to free it: it has to
        // `give_up`.
        debug_assert!(
            state != State::Handed || std::thread::panicking(),
            "nothing owns the lock now"
        );
    }
}

fn busy_round() {
    if MODELLED { thread::yield_now() } else { std::hint::spin_loop() }
}

/// Sleeps until the thread is woken; outside models for `_longest` at most.
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

    /// Waits until `wait` is in the queue.
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

    /// Releases the place, and returns the number of the waiter that was handed it.
    fn release(parking: &Parking, can_hand_over: bool) -> Option<u64> {
        let mut handed = None;
        parking.release(PLACE, can_hand_over, &mut |to| handed = to);
        handed
    }

    fn awoken(wait: &mut Wait<'_>) -> Option<Waited> {
        wait.awoken(wait.number.unwrap())
    }

    /// Wakes the next waiters, `times` times [`WOKEN_EVERY`] after `begun`.
    fn wake_at(parking: &Parking, begun: Instant, times: u32) {
        parking.wake_next(parking.bucket(PLACE), PLACE, begun + times * WOKEN_EVERY);
    }

    #[test]
    fn a_release_wakes_waiters_that_look_and_the_first_that_wants_to_own() {
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
            "the first one has not been there yet"
        );
        drop((before, first));
        wake_at(&parking, Instant::now(), 2);
        assert_eq!((awoken(&mut second), awoken(&mut behind)), (Some(Waited::Again), None));
        drop((second, behind));
        assert!(!parking.has_sleepers());
    }

    #[test]
    fn a_waiter_that_has_lost_eight_times_is_handed_what_it_waits_for() {
        let parking = Parking::new();
        let (mut first, second) = (owner(&parking, 1), owner(&parking, 2));
        let begun = Instant::now();
        for times in 0..LOST_MAX {
            wake_at(&parking, begun, times);
            assert_eq!(awoken(&mut first), Some(Waited::Again));
        }
        assert_eq!(release(&parking, false), None, "what cannot be handed over is freed");
        assert_eq!(release(&parking, true), Some(1));
        assert_eq!(awoken(&mut first), Some(Waited::Handed));
        assert!(parking.has_sleepers());
        drop((first, second));
        assert!(!parking.has_sleepers());
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
    fn what_a_release_leaves_asleep_is_woken_before_a_thread_sleeps() {
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
        assert_eq!(awoken(&mut first), None, "it is too soon after the one before");
        parking.wake_unwoken();
        assert_eq!(
            [&mut first, &mut second, &mut elsewhere].map(awoken),
            [Some(Waited::Again), None, None]
        );
        parking.wake_unwoken();
        assert_eq!(awoken(&mut first), None, "nothing was left asleep since");
    }

    #[test]
    fn a_waiter_that_has_no_use_for_what_it_was_woken_for_wakes_the_next() {
        let parking = Parking::new();
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        wake_at(&parking, Instant::now(), 0);
        assert_eq!(awoken(&mut first), Some(Waited::Again));
        // It has looked, and does not take the free lock.
        assert_eq!(first.give_up(), Waited::InVain);
        assert_eq!(awoken(&mut second), Some(Waited::Again));
    }

    #[test]
    fn a_lock_that_is_handed_over_wakes_the_waiters_that_look() {
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
            "it may have waited for the commit that is over"
        );
        assert_eq!(awoken(&mut first), Some(Waited::Handed));
    }

    #[test]
    fn a_waiter_whose_time_is_over_has_waited_in_vain() {
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
        assert!(!parking.has_sleepers(), "it has never slept");
    }
}
