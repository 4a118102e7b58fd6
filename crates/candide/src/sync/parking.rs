//! Sleeping until a lock is free.
//!
//! # Rules
//! A waiter looks at its lock for [`ROUNDS_BUSY`] rounds, then *enters* the queue of its lock's bucket, looks once more, and sleeps.
//! A running thread may take a free lock past all sleepers: that is what keeps a lock busy while sleepers wake up. Each release wakes
//! the first sleeper that wants to own the lock, and those before it that only want to look. One that has slept for
//! [`HANDED_AFTER`], or has lost [`LOST_MAX`] times after it was woken, is *handed* the lock: the owner gives it over without freeing it, so
//! no running thread can come between. A bucket hands over once in [`HANDED_EVERY`] at most, since each time the lock is idle until the
//! sleeper runs.
//!
//! # Bounds
//! The first of `n` sleepers at a lock is handed it at the first release after [`HANDED_AFTER`], and the last one `n` times
//! [`HANDED_EVERY`] later: 16 ms for 64 threads, if the owners release it in time and threads are let run when they are woken.
//!
//! # Cost
//! An owner that releases a lock looks whether there are sleepers at all, in a word that is written by waiters that enter and leave and by
//! nothing else. It takes the bucket's mutex only if there are some.
//!
//! # Lost wake-ups
//! A sleeper has entered, then passed a fence, then seen its lock taken. The owner stores the free lock and then looks for sleepers. There
//! is no fence between the two, which each release would have to pay for: so an owner may miss a waiter that enters while the
//! store is on its way to memory, which takes less than a microsecond. Such a waiter looks again by itself after [`SLICE_FIRST`], and
//! in doubling intervals up to [`SLICE_MAX`]. Nothing else rests on these times: under shuttle, where memory has one order, there are none, and a sleeper that
//! nothing wakes is a deadlock. Under loom nothing sleeps.

#![forbid(unsafe_code)]

use super::{
    AtomicU64, Duration, Instant, MODELLED, Mutant, Mutex, MutexGuard, Ordering, full_fence, lock, mutant, thread,
};
use crossbeam_utils::CachePadded;
use thread::Thread;

/// Rounds of busy waiting before a waiter that wants to own something sleeps: half a microsecond. With four times as many, two threads that
/// locked two rows in opposite orders were five times slower.
pub(crate) const ROUNDS_BUSY: u32 = if MODELLED { 2 } else { 16 };
/// The same for one that was woken and has found the lock taken again.
const ROUNDS_AGAIN: u32 = if MODELLED { 1 } else { 8 };
/// The same for one that looks: what it waits for is a commit that is going on, not a closure.
const ROUNDS_LOOKING: u32 = if MODELLED { 2 } else { 64 };
/// Sleep after which a waiter is handed its lock.
const HANDED_AFTER: Duration = Duration::from_micros(500);
/// Wake-ups after which a waiter is handed its lock.
const LOST_MAX: u32 = if MODELLED { 1 } else { 8 };
/// The time between two locks of a bucket that are handed over.
const HANDED_EVERY: Duration = Duration::from_micros(if MODELLED { 0 } else { 250 });
/// How long a sleeper trusts that it will be woken.
const SLICE_FIRST: Duration = Duration::from_millis(1);
const SLICE_MAX: Duration = Duration::from_millis(8);
/// Queues, to which addresses are distributed.
const BUCKETS: usize = if MODELLED { 1 } else { 64 };

/// Places to sleep, by the address of what is waited for.
#[derive(Debug)]
pub(crate) struct Parking {
    /// Waiters in all queues.
    sleepers: CachePadded<AtomicU64>,
    buckets: Box<[CachePadded<Mutex<Bucket>>]>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// In the order in which they have entered.
    waiters: Vec<Waiter>,
    entered: u64,
    /// When a lock was handed over last.
    handed: Option<Instant>,
}

/// One that has entered.
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

/// What a waiter wants of what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To see that it has changed.
    Look,
    /// To own it; with a number for the owner that hands it over.
    Own(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asleep,
    Woken,
    /// It owns what it waited for.
    Handed,
}

/// How long a waiter waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// For so many busy rounds, without sleeping.
    Rounds(u32),
    /// Busy, and then for so long.
    Lasting(Duration),
    /// Until then.
    Until(Instant),
    Endless,
}

/// What has come of a round of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The waiter is to look again.
    Again,
    /// It owns what it has waited for.
    Handed,
    /// Its patience is at an end.
    InVain,
}

impl Parking {
    pub(crate) fn new() -> Parking {
        Parking::with_buckets(BUCKETS)
    }

    /// Makes places for waiters of one thing.
    pub(crate) fn of_one() -> Parking {
        Parking::with_buckets(1)
    }

    fn with_buckets(count: usize) -> Parking {
        let buckets = (0..count).map(|_| CachePadded::default()).collect();
        Parking { sleepers: CachePadded::new(AtomicU64::new(0)), buckets }
    }

    /// Whether there are waiters in any queue, apart from those that are just entering.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        // Relaxed: see "Lost wake-ups". Under loom waiters look again by themselves, and each load would be one more step to explore.
        !cfg!(loom) && self.sleepers.load(Ordering::Relaxed) != 0
    }

    /// The addresses of what is waited for by waiters that have entered and were not woken.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn waited_for(&self) -> Vec<u64> {
        let waiters = |bucket: &CachePadded<Mutex<Bucket>>| {
            let bucket = lock(bucket);
            let asleep = bucket.waiters.iter().filter(|waiter| waiter.state == State::Asleep);
            asleep.map(|waiter| waiter.address).collect::<Vec<u64>>()
        };
        self.buckets.iter().flat_map(waiters).collect()
    }

    /// How many waiters have ever entered.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn entered(&self) -> u64 {
        self.buckets.iter().map(|bucket| lock(bucket).entered).sum()
    }

    fn bucket(&self, address: u64) -> MutexGuard<'_, Bucket> {
        let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        lock(&self.buckets[hash as usize % self.buckets.len()])
    }

    /// Releases what is at an address, where there may be waiters: calls `free` with the number of the waiter that it is handed to
    /// and that owns it from then on, or with nothing, and then wakes the next ones.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(&self, address: u64, can_hand_over: bool, free: &mut dyn FnMut(Option<u64>)) {
        let mut bucket = self.bucket(address);
        match bucket.starving(address).filter(|_| can_hand_over) {
            Some(index) => {
                bucket.handed = Some(Instant::now());
                let waiter = &mut bucket.waiters[index];
                let Wish::Own(number) = waiter.wish else { unreachable!("one that wants to own it") };
                free(Some(number).filter(|_| !mutant(Mutant::HandedByFreeing)));
                waiter.state = State::Handed;
                let thread = waiter.thread.clone();
                // For those that look it is released, too: it is the first that wants to own it, so the wake-up ends there.
                Parking::wake_next(bucket, address);
                thread.unpark();
            }
            None => {
                free(None);
                Parking::wake_next(bucket, address);
            }
        }
    }

    /// Wakes the next waiters at an address, which has been released.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, address: u64) {
        if !mutant(Mutant::SleepersUnseen) {
            Parking::wake_next(self.bucket(address), address);
        }
    }

    fn wake_next(mut bucket: MutexGuard<'_, Bucket>, address: u64) {
        let mut owner = None;
        for waiter in bucket.waiters.iter_mut().filter(|waiter| waiter.address == address) {
            let is_asleep = waiter.state == State::Asleep;
            if is_asleep {
                waiter.state = State::Woken;
            }
            match waiter.wish {
                Wish::Look if is_asleep => waiter.thread.unpark(),
                Wish::Look => {}
                Wish::Own(_) => {
                    owner = is_asleep.then(|| waiter.thread.clone());
                    break;
                }
            }
        }
        drop(bucket);
        if let Some(thread) = owner {
            thread.unpark();
        }
    }
}

impl Bucket {
    fn place(&self, number: u64) -> usize {
        self.waiters.iter().position(|waiter| waiter.number == number).expect("it has entered")
    }

    /// The first that wants to own what is at an address, if it has waited for so long that it is handed that.
    fn starving(&self, address: u64) -> Option<usize> {
        let wants = |waiter: &Waiter| waiter.address == address && waiter.wish != Wish::Look;
        let index = self.waiters.iter().position(wants)?;
        let first = &self.waiters[index];
        let is_starving = first.lost >= LOST_MAX || first.since.elapsed() >= HANDED_AFTER;
        let is_time = self.handed.is_none_or(|handed| handed.elapsed() >= HANDED_EVERY);
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
    /// The number under which it has entered.
    number: Option<u64>,
    slice: Duration,
    /// Whether it was woken, and has not found since that what it waits for is taken.
    was_woken: bool,
}

impl<'a> Wait<'a> {
    #[inline]
    pub(crate) fn new(parking: &'a Parking, address: u64, wish: Wish, patience: Patience) -> Wait<'a> {
        Wait { parking, address, wish, patience, rounds: 0, number: None, slice: SLICE_FIRST, was_woken: false }
    }

    /// Waits for a round, or until it is woken. A call, so that loops which seldom wait stay small.
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
            return if matches!(self.patience, Patience::Endless) { Waited::Again } else { Waited::InVain };
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
        let mut bucket = self.parking.bucket(self.address);
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
        self.parking.sleepers.fetch_add(1, Ordering::Relaxed);
        drop(bucket);
        if let Patience::Lasting(duration) = self.patience {
            self.patience = Instant::now().checked_add(duration).map_or(Patience::Endless, Patience::Until);
        }
        // Before the waiter looks at what it waits for: an owner that does not see it yet has released that (E1).
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
        if left.is_zero() || MODELLED && matches!((self.patience, self.wish), (Patience::Until(_), Wish::Own(_))) {
            return self.give_up();
        }
        park_for(self.slice.min(left));
        self.slice = (self.slice * 2).min(SLICE_MAX);
        self.awoken(number).unwrap_or(Waited::Again)
    }

    /// What it was woken for, if it was.
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

    /// Leaves, unless it is handed what it has waited for. If it was woken, that is passed on: to leave what is free alone is to give up, too.
    pub(crate) fn give_up(&mut self) -> Waited {
        let was_woken = std::mem::take(&mut self.was_woken);
        match self.leave() {
            State::Handed => return Waited::Handed,
            State::Asleep if !was_woken => {}
            State::Asleep | State::Woken => Parking::wake_next(self.parking.bucket(self.address), self.address),
        }
        Waited::InVain
    }

    fn leave(&mut self) -> State {
        let Some(number) = self.number.take() else { return State::Asleep };
        let mut bucket = self.parking.bucket(self.address);
        let place = bucket.place(number);
        self.parking.sleepers.fetch_add(1_u64.wrapping_neg(), Ordering::Relaxed);
        bucket.waiters.remove(place).state
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let state = self.leave();
        // What a waiter is handed while it still waits is its own to free: it has to `give_up`.
        debug_assert!(state != State::Handed || std::thread::panicking(), "nothing owns the lock now");
    }
}

fn busy_round() {
    if MODELLED { thread::yield_now() } else { std::hint::spin_loop() }
}

/// Sleeps until the thread is woken; in reality for so long at most.
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

    /// Releases the place, and returns the number of the waiter that it was handed to.
    fn release(parking: &Parking, can_hand_over: bool) -> Option<u64> {
        let mut handed = None;
        parking.release(PLACE, can_hand_over, &mut |to| handed = to);
        handed
    }

    fn awoken(wait: &mut Wait<'_>) -> Option<Waited> {
        wait.awoken(wait.number.unwrap())
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
        assert_eq!((awoken(&mut second), awoken(&mut behind)), (None, None), "the first one has not been there yet");
        drop((before, first));
        parking.wake(PLACE);
        assert_eq!((awoken(&mut second), awoken(&mut behind)), (Some(Waited::Again), None));
        drop((second, behind));
        assert!(!parking.has_sleepers());
    }

    #[test]
    fn a_waiter_that_has_lost_eight_times_is_handed_what_it_waits_for() {
        let parking = Parking::new();
        let (mut first, second) = (owner(&parking, 1), owner(&parking, 2));
        for _ in 0..LOST_MAX {
            parking.wake(PLACE);
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
        parking.wake(PLACE);
        assert_eq!(first.give_up(), Waited::InVain);
        assert_eq!(awoken(&mut second), Some(Waited::Again));
    }

    #[test]
    fn a_waiter_that_has_no_use_for_what_it_was_woken_for_wakes_the_next() {
        let parking = Parking::new();
        let (mut first, mut second) = (owner(&parking, 1), owner(&parking, 2));
        parking.wake(PLACE);
        assert_eq!(awoken(&mut first), Some(Waited::Again));
        // It has looked, and what is free is nothing to it.
        assert_eq!(first.give_up(), Waited::InVain);
        assert_eq!(awoken(&mut second), Some(Waited::Again));
    }

    #[test]
    fn a_lock_that_is_handed_over_wakes_the_waiters_that_look() {
        let parking = Parking::new();
        let mut looking = Wait::new(&parking, PLACE, Wish::Look, Patience::Endless);
        enter(&mut looking);
        let mut first = owner(&parking, 1);
        for _ in 0..LOST_MAX {
            parking.wake(PLACE);
            assert_eq!(awoken(&mut first), Some(Waited::Again));
        }
        assert_eq!(awoken(&mut looking), Some(Waited::Again));
        assert_eq!(release(&parking, true), Some(1));
        assert_eq!(awoken(&mut looking), Some(Waited::Again), "it may have waited for the commit that is over");
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
        assert_eq!([wait.wait(), wait.wait(), wait.wait()], [Waited::Again, Waited::Again, Waited::InVain]);
        assert!(!parking.has_sleepers(), "it has never slept");
    }
}
