//! A lock for one thread at a time.

#![forbid(unsafe_code)]

use super::{
    AtomicU64, Duration, Instant, MODELLED, Ordering, Parking, Patience, Point, Wait, Waited, Wish,
    is_in_step, pass, process,
};
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::Arc;

/// A lock for one thread at a time. The lock is taken in one call and released in another, as a
/// transaction that owns the database requires.
#[derive(Debug)]
pub(crate) struct Exclusive {
    /// The number of the thread that holds the lock; zero if the lock is free. [`NESTED`] also
    /// refers to this word.
    holder: Arc<AtomicU64>,
    // Boxed, like the turns: a parking is cache-padded, and would make `Exclusive` large.
    parking: Box<Parking>,
}

/// The reason why a lock was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The thread would wait for itself. Either the thread already holds the lock, or the lock's
    /// holder waits, directly or through further holders, for another lock that the thread holds;
    /// or the thread runs a step.
    Nested,
    /// The deadline has passed.
    TooLate,
}

impl Default for Exclusive {
    fn default() -> Exclusive {
        Exclusive { holder: Arc::new(AtomicU64::new(0)), parking: Box::new(Parking::of_one()) }
    }
}

#[cfg(not(any(loom, shuttle)))]
thread_local! {
    /// The number of locks that the thread holds. The address of this variable is the thread's
    /// number.
    static HELD: Cell<u32> = const { Cell::new(0) };
}
// Models have thread-locals of their own, since all threads of a model run on one system thread.
#[cfg(loom)]
loom::thread_local! {
    static HELD: Cell<u32> = Cell::new(0);
}
#[cfg(shuttle)]
shuttle::thread_local! {
    static HELD: Cell<u32> = Cell::new(0);
}

/// Returns a number that no other living thread has, of the thread's variable [`HELD`].
#[inline]
fn number_of(held: &Cell<u32>) -> u64 {
    std::ptr::from_ref(held).addr() as u64
}

/// Counts a lock that the thread takes or gives back.
fn count(held: &Cell<u32>, change: i32) {
    held.set(held.get().wrapping_add_signed(change));
}

impl Exclusive {
    /// Returns the number of locks that the thread holds.
    pub(crate) fn held_by_this_thread() -> u32 {
        HELD.with(Cell::get)
    }

    /// Waits for the lock, and takes it. Gives up at `until`; `None` means no time limit.
    #[inline]
    pub(crate) fn acquire(&self, until: Option<Instant>) -> Result<(), Refusal> {
        // The thread's variable is accessed only once if the lock is free, since each access may be
        // a call.
        let busy = HELD.with(|held| {
            let me = number_of(held);
            if !self.try_acquire(me) {
                return Some(me);
            }
            count(held, 1);
            None
        });
        match busy {
            None => Ok(()),
            Some(me) => self.wait_for(me, until),
        }
    }

    #[inline]
    fn try_acquire(&self, me: u64) -> bool {
        // Acquire: makes the previous holder's writes visible (E2).
        self.holder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_for(&self, me: u64, until: Option<Instant>) -> Result<(), Refusal> {
        // In a step no attempt may begin, and the step's transaction holds its locks.
        if self.holder.load(Ordering::Relaxed) == me || is_in_step() {
            return Err(Refusal::Nested);
        }
        let _nested = match HELD.with(Cell::get) {
            0 => None,
            _ => Some(Nested::begin(me, &self.holder)?),
        };
        let patience = until.map_or(Patience::Endless, Patience::Until);
        if wait_to_own(&self.holder, me, Wait::new(&self.parking, 0, Wish::Own(me), patience)) {
            HELD.with(|held| count(held, 1));
            Ok(())
        } else {
            Err(Refusal::TooLate)
        }
    }

    /// Releases the lock, which this thread holds.
    #[inline]
    pub(crate) fn release(&self) {
        debug_assert_eq!(
            self.holder.load(Ordering::Relaxed),
            HELD.with(number_of),
            "only the holder gives it back"
        );
        HELD.with(|held| count(held, -1));
        give_up(&self.holder, &self.parking, 0);
    }
}

/// Waits until thread or session `me` is the holder. Returns `false` if the time limit of `wait`
/// passes first.
fn wait_to_own(holder: &AtomicU64, me: u64, mut wait: Wait<'_>) -> bool {
    loop {
        // A relaxed load comes first, so that all waiters can keep the cache line in shared state
        // while the lock is taken. Acquire: makes the previous holder's writes visible (E2).
        let is_free = holder.load(Ordering::Relaxed) == 0;
        if is_free && holder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        pass(Point::Excluded);
        match wait.wait() {
            Waited::Again => {}
            Waited::Handed => {
                let now = holder.load(Ordering::Acquire); // E2
                debug_assert_eq!(now, me, "it was handed over");
                return true;
            }
            Waited::InVain => return false,
        }
    }
}

/// Frees a lock that this thread holds, or hands the lock over to a waiter.
#[inline]
fn give_up(holder: &AtomicU64, parking: &Parking, address: u64) {
    if parking.has_sleepers() {
        return parking
            .release(address, true, &mut |to| holder.store(to.unwrap_or(0), Ordering::Release)); // E2
    }
    holder.store(0, Ordering::Release); // E2
    if parking.has_sleepers() {
        parking.wake(address);
    }
}

/// Turns of transactions that have failed on the same row. One of these transactions at a time has
/// the turn and tries again, while the others sleep.
///
/// A turn locks nothing, and a transaction waits for its turn no longer than [`TURN_WAIT_MAX`].
/// After that the transaction continues without a turn. So the holder of a turn may wait for
/// anything.
#[derive(Debug)]
pub(crate) struct Turns {
    owners: [CachePadded<AtomicU64>; TURNS],
}

const TURNS: usize = if MODELLED { 1 } else { 32 };
/// The longest time that a transaction waits for its turn.
const TURN_WAIT_MAX: Duration = Duration::from_millis(10);

/// The turn of a transaction. Dropping this value ends the turn.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    owner: &'a AtomicU64,
    parking: &'a Parking,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns { owners: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))) }
    }

    /// Returns the number of the turn for transactions that have failed on the row whose hash is
    /// `hash`.
    pub(crate) fn number(hash: u64) -> usize {
        hash as usize % TURNS
    }

    /// Waits in `parking` for turn `number`, for session `id`. Returns `None` if the session does
    /// not get the turn within [`TURN_WAIT_MAX`].
    pub(crate) fn wait<'a>(
        &'a self,
        parking: &'a Parking,
        number: usize,
        id: u64,
    ) -> Option<Turn<'a>> {
        let owner = &*self.owners[number];
        let wait =
            Wait::new(parking, place(owner), Wish::Own(id), Patience::Lasting(TURN_WAIT_MAX));
        wait_to_own(owner, id, wait).then(|| Turn { owner, parking })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        give_up(self.owner, self.parking, place(self.owner));
    }
}

/// Returns the address under which waiters for a turn sleep in the parking.
fn place(owner: &AtomicU64) -> u64 {
    std::ptr::from_ref(owner).addr() as u64
}

/// The threads that hold a lock and wait for another lock. Each entry is a thread's number and the
/// `holder` word of the lock for which the thread waits.
static NESTED: process::Mutex<Vec<(u64, Arc<AtomicU64>)>> = process::Mutex::new(Vec::new());

/// An entry of [`NESTED`].
struct Nested(u64);

impl Nested {
    /// Adds thread `me`, which is going to wait for `lock`, to [`NESTED`].
    ///
    /// Suppose that threads would wait for one another in a circle once the last thread of the
    /// circle, `me`, waits. All other threads of the circle are then in the list. Each of them
    /// waits for a lock whose holder does not change, since the holder waits, too. So the search
    /// along the holders finds the circle. A thread in the list that no longer waits holds the lock
    /// of its entry. The search ends at such a thread.
    ///
    /// # Errors
    /// [`Refusal::Nested`] if the holder of `lock` waits for `me`, directly or through further
    /// threads.
    fn begin(me: u64, lock: &Arc<AtomicU64>) -> Result<Nested, Refusal> {
        if MODELLED {
            return Ok(Nested(0));
        }
        let mut list = process::lock(&NESTED);
        let (mut lock_waited_for, mut waiter) = (lock, me);
        loop {
            let holder = lock_waited_for.load(Ordering::Relaxed);
            if holder == me {
                return Err(Refusal::Nested);
            }
            if holder == waiter {
                break;
            }
            let Some((_, next)) = list.iter().find(|(thread, _)| *thread == holder) else { break };
            (lock_waited_for, waiter) = (next, holder);
        }
        list.push((me, lock.clone()));
        Ok(Nested(me))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        if !MODELLED {
            let mut list = process::lock(&NESTED);
            list.retain(|(thread, _)| *thread != self.0);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_not_acquired_in_time_stays_with_its_owner() {
        let (turns, parking, lock) = (Turns::new(), Parking::new(), Exclusive::default());
        let turn = turns.wait(&parking, 7, 1).expect("it is free");
        assert!(turns.wait(&parking, 7, 2).is_none());
        assert_eq!(turns.owners[7].load(Ordering::Relaxed), 1);
        drop(turn);
        assert!(turns.wait(&parking, 7, 2).is_some());
        lock.acquire(None).unwrap();
        assert_eq!(lock.acquire(None), Err(Refusal::Nested));
        std::thread::scope(|scope| {
            let late = scope.spawn(|| lock.acquire(Some(Instant::now())));
            assert_eq!(late.join().unwrap(), Err(Refusal::TooLate));
        });
        lock.release();
        lock.acquire(None).unwrap();
    }
}

#[cfg(all(test, shuttle))]
mod tests {
    use super::*;
    use crate::sync::thread;

    /// Runs three threads. Each calls `take` twice, and owns a lock or turn during each call. A
    /// sleeper that is never woken would be a deadlock.
    fn by_turns(take: impl Fn(u64, &dyn Fn()) + Send + Sync + 'static) {
        let (take, inside) = (Arc::new(take), Arc::new(AtomicU64::new(0)));
        let threads = [1, 2, 3].map(|id| {
            let (take, inside) = (take.clone(), inside.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    take(id, &|| {
                        assert_eq!(inside.swap(id, Ordering::Relaxed), 0);
                        assert_eq!(inside.swap(0, Ordering::Relaxed), id);
                    });
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    fn explore(scene: impl Fn() + Send + Sync + Copy + 'static) {
        let schedules = std::env::var("CANDIDE_SCHEDULES")
            .ok()
            .and_then(|number| number.parse().ok())
            .unwrap_or(5_000);
        shuttle::check_random(scene, schedules);
        shuttle::check_pct(scene, schedules, 3);
    }

    #[test]
    fn shuttle_every_thread_that_waits_for_a_lock_gets_it() {
        explore(|| {
            let lock = Exclusive::default();
            by_turns(move |_, inside| {
                lock.acquire(None).unwrap();
                inside();
                lock.release();
            });
        });
    }

    #[test]
    fn shuttle_a_turn_has_at_most_one_owner() {
        explore(|| {
            let (turns, parking) = (Turns::new(), Parking::new());
            by_turns(move |id, inside| {
                if let Some(_turn) = turns.wait(&parking, 0, id) {
                    inside();
                }
            });
        });
    }
}
