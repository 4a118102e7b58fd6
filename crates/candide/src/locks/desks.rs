//! Desks: the places where sessions show one another which locks they hold and want.
//!
//! A session that locks has a *desk*, whose number is part of the locks that the session holds. So
//! a session that meets a lock finds the holder's age, whether the holder itself waits, and can ask
//! the holder to abort. A desk belongs to one session at a time; a later session may get the same
//! desk. Only the session that has the desk writes it, except for the word `doomed`.

#![forbid(unsafe_code)]

use crate::engine::own_thread::{self, ShownLocks};
use crate::sync::{AtomicU64, AtomicUsize, MODELLED, Mutex, Ordering, full_fence, lock};
use crossbeam_utils::CachePadded;
use std::sync::{Arc, OnceLock, Weak};

/// The number of classes of desks. A desk belongs to the class of its number modulo this number.
pub(crate) const CLASSES: usize = 32;
/// The number of words with the bits of items.
const DONE_WORDS: usize = 2;
/// The number of items of an attempt that are handed on before the attempt is over.
pub(super) const ITEMS_MAX: usize = 64 * DONE_WORDS;
/// The number of groups of [`CLASSES`] desks. With more sessions than desks, the rest lock nothing.
const GROUPS: usize = if MODELLED { 1 } else { 512 };

/// A session's desk, alone on its cache line.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The number of the attempt; odd while the attempt may hold locks.
    attempt: AtomicU64,
    /// The attempt that another session has asked to abort.
    doomed: AtomicU64,
    /// The age of the transaction: the smaller, the older.
    age: AtomicU64,
    /// The ticket of a transaction that has written much; zero if it has drawn none.
    ticket: AtomicU64,
    /// The number of the thread that runs the attempt.
    thread: AtomicU64,
    /// The classes of the sessions for which this session waits, one bit each.
    waits_for: AtomicU64,
    /// The attempt has locked all that it locks up to this rank, and so have its predecessors,
    /// under the policy `pipelined`.
    passed: AtomicU64,
    /// The items that the attempt has executed, or will not execute, one bit each.
    done: [AtomicU64; DONE_WORDS],
}

impl Desk {
    /// Begins an attempt of a transaction with this age and ticket, on this thread.
    pub(crate) fn begin(&self, age: u64, ticket: u64, thread: u64) {
        self.age.store(age, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Relaxed);
        self.ticket.store(ticket, Ordering::Relaxed);
        // Release: a session that sees the attempt sees its age (E21).
        self.attempt.store(self.attempt.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Ends the attempt, which holds no lock any more.
    pub(crate) fn end(&self) {
        // Release: a successor in a chain sees all that the attempt has done (E31).
        self.attempt.store(self.attempt.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Returns the number of the present attempt.
    pub(crate) fn attempt(&self) -> u64 {
        self.attempt.load(Ordering::Acquire) // E21
    }

    pub(crate) fn is_in_attempt(&self) -> bool {
        self.attempt() % 2 == 1
    }

    pub(crate) fn age(&self) -> u64 {
        self.age.load(Ordering::Relaxed)
    }

    pub(crate) fn thread(&self) -> u64 {
        self.thread.load(Ordering::Relaxed)
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.ticket.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ticket(&self, ticket: u64) {
        self.ticket.store(ticket, Ordering::Relaxed);
    }

    /// Asks the session to abort `attempt`. Has no effect on a later attempt.
    pub(crate) fn doom(&self, attempt: u64) {
        self.doomed.fetch_max(attempt, Ordering::Relaxed);
    }

    /// Returns whether another session has asked to abort the present attempt.
    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Relaxed) == self.attempt.load(Ordering::Relaxed)
    }

    /// Begins to lock in the order of ranks. No other session has met the attempt in a chain.
    pub(super) fn begin_chains(&self) {
        self.passed.store(0, Ordering::Relaxed);
        self.done.iter().for_each(|done| done.store(0, Ordering::Relaxed));
    }

    /// Returns whether an attempt, named by the lower half of its number, is over.
    pub(super) fn is_over(&self, attempt: u32) -> bool {
        self.attempt() as u32 != attempt
    }

    /// Returns up to which rank the present attempt and its predecessors have locked.
    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Acquire) // E31
    }

    pub(super) fn show_passed(&self, rank: u64) {
        self.passed.store(rank, Ordering::Release); // E31
    }

    /// Returns whether the present attempt has executed an item, or will not execute it.
    pub(super) fn has_done(&self, item: usize) -> bool {
        self.done[item / 64].load(Ordering::Acquire) & 1 << (item % 64) != 0 // E31
    }

    /// Notes that all items have been executed, or will not be.
    pub(super) fn note_all_done(&self) {
        self.done.iter().for_each(|done| done.store(u64::MAX, Ordering::Release)); // E31
    }

    /// Returns the address at which sessions wait for changes of this desk.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Publishes the classes for which this session waits; zero if it does not wait.
    pub(crate) fn set_waits_for(&self, classes: u64) {
        self.waits_for.store(classes, Ordering::Relaxed);
    }
}

/// One desk of each class.
type Group = Box<[CachePadded<Desk>; CLASSES]>;

/// The desks of a database, made when a session first joins.
#[derive(Debug, Default)]
pub(crate) struct Desks(OnceLock<Arc<Made>>);

/// The desks of a database whose sessions lock.
#[derive(Debug)]
struct Made {
    /// Made one group at a time; desk 0 is never used.
    groups: Box<[OnceLock<Group>]>,
    free: Mutex<Free>,
    /// The last ticket drawn.
    tickets: CachePadded<AtomicU64>,
    /// The number of sessions that hold locks and sleep for another one.
    sleepers: CachePadded<AtomicUsize>,
    /// The number of cores that this process may use.
    cores: usize,
}

/// The desks that no session has.
#[derive(Debug)]
struct Free {
    numbers: Vec<u16>,
    /// The first number that was never used.
    next: u16,
}

impl Desks {
    pub(crate) fn new() -> Desks {
        Desks::default()
    }

    /// Returns the parts. A session that locks has joined, so the parts exist.
    fn made(&self) -> &Made {
        self.0.get().expect("a session has joined")
    }

    fn make() -> Arc<Made> {
        let made = Arc::new(Made {
            groups: (0..GROUPS).map(|_| OnceLock::new()).collect(),
            free: Mutex::new(Free { numbers: Vec::new(), next: 1 }),
            tickets: CachePadded::new(AtomicU64::new(0)),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            cores: match MODELLED {
                true => 2,
                false => std::thread::available_parallelism().map_or(1, usize::from),
            },
        });
        let weak: Weak<Made> = Arc::downgrade(&made);
        own_thread::add_shown_locks(weak);
        made
    }

    /// Returns the number of a desk for a session. Returns `None` if all desks are taken; or if a
    /// group of desks would have to be made, unless `can_allocate`.
    #[cold]
    pub(crate) fn join(&self, can_allocate: bool) -> Option<u16> {
        if self.0.get().is_none() && !can_allocate {
            return None;
        }
        let made = self.0.get_or_init(Desks::make);
        let mut free = lock(&made.free);
        if let Some(number) = free.numbers.pop() {
            return Some(number);
        }
        let number = free.next;
        let group = made.groups.get(usize::from(number) / CLASSES)?;
        if group.get().is_none() && !can_allocate {
            return None;
        }
        group.get_or_init(|| Box::new(std::array::from_fn(|_| CachePadded::default())));
        free.next += 1;
        Some(number)
    }

    /// Gives back a desk, whose session holds no lock.
    pub(crate) fn leave(&self, number: u16) {
        debug_assert!(!self.desk(number).is_in_attempt(), "the session's attempts have ended");
        lock(&self.made().free).numbers.push(number);
    }

    /// Returns the desk with a number that [`Desks::join`] has returned.
    pub(crate) fn desk(&self, number: u16) -> &Desk {
        let group = self.made().groups[usize::from(number) / CLASSES]
            .get()
            .expect("`join` has made the desk's group");
        &group[usize::from(number) % CLASSES]
    }

    /// Returns the desks of the classes in `classes`; none before a session has joined.
    pub(crate) fn in_classes(&self, classes: u64) -> impl Iterator<Item = (u16, &Desk)> {
        let groups = self.0.get().map_or(&[][..], |made| &made.groups);
        let groups = groups.iter().map_while(OnceLock::get).enumerate();
        groups.flat_map(move |(group, desks)| {
            let is_in = move |class: &usize| classes & 1 << class != 0;
            let number = move |class| (group * CLASSES + class) as u16;
            (0..CLASSES).filter(is_in).map(move |class| (number(class), &*desks[class]))
        })
    }

    /// Returns the classes of all sessions for which the sessions of `classes` wait, directly or
    /// not, and `classes` themselves. The caller has published its own classes with
    /// [`Desk::set_waits_for`] before. So of several sessions that wait for one another in a
    /// circle, the one whose fence comes last sees the whole circle.
    pub(crate) fn all_awaited(&self, classes: u64) -> u64 {
        full_fence(); // E22
        let mut all = classes;
        let mut fresh = classes;
        while fresh != 0 {
            let waits = self
                .in_classes(fresh)
                .fold(0, |waits, (_, desk)| waits | desk.waits_for.load(Ordering::Relaxed));
            fresh = waits & !all;
            all |= waits;
        }
        all
    }

    /// Returns the number of cores that this process may use; 1 before a session has joined.
    pub(crate) fn cores(&self) -> usize {
        self.0.get().map_or(1, |made| made.cores)
    }

    /// Notes that a session that holds locks is about to sleep, unless as many such sessions sleep
    /// as there are cores. With more of them, nearly every hot row would be locked by a thread that
    /// does not run. Returns whether the session may sleep. Each success is paired with
    /// [`Desks::end_sleep`].
    pub(crate) fn begin_sleep(&self) -> bool {
        let made = self.made();
        let may = made.sleepers.fetch_add(1, Ordering::Relaxed) < made.cores;
        if !may {
            self.end_sleep();
        }
        may
    }

    pub(crate) fn end_sleep(&self) {
        self.made().sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Draws a ticket, which is larger than all earlier tickets.
    pub(crate) fn draw_ticket(&self) -> u64 {
        self.made().tickets.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl ShownLocks for Made {
    fn may_be_held_by(&self, thread: u64) -> bool {
        let is_its = |desk: &CachePadded<Desk>| desk.is_in_attempt() && desk.thread() == thread;
        self.groups.iter().map_while(OnceLock::get).any(|group| group.iter().any(is_its))
    }
}

/// Returns the bit of the class of desk `number`.
pub(crate) fn class_of(number: u16) -> u64 {
    1 << (usize::from(number) % CLASSES)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn desks_are_used_again_and_end_with_their_groups() {
        let desks = Desks::new();
        assert_eq!(desks.join(false), None, "a group would have to be made");
        assert_eq!([(); 3].map(|()| desks.join(true)), [Some(1), Some(2), Some(3)]);
        desks.leave(2);
        assert_eq!([(); 2].map(|()| desks.join(false)), [Some(2), Some(4)]);
        let rest = (GROUPS * CLASSES - 5) as u16;
        assert!((0..rest).all(|number| desks.join(true) == Some(number + 5)));
        assert_eq!(desks.join(true), None);
        desks.leave(77);
        assert_eq!((desks.join(false), desks.join(true)), (Some(77), None));
    }

    #[test]
    fn a_request_to_abort_ends_with_the_attempt() {
        let desks = Desks::new();
        let number = desks.join(true).unwrap();
        let desk = desks.desk(number);
        desk.begin(5, 0, 0);
        let first = desk.attempt();
        assert!(desk.is_in_attempt() && desk.age() == 5 && !desk.is_doomed());
        desk.doom(first);
        assert!(desk.is_doomed());
        desk.end();
        assert!(!desk.is_in_attempt());
        desk.begin(5, 0, 0);
        assert!(!desk.is_doomed(), "the request was for the earlier attempt");
        desk.doom(first);
        assert!(!desk.is_doomed(), "the request came after the attempt");
        desk.end();
        desks.leave(number);
    }

    #[test]
    fn a_deadlock_is_found_exactly_in_a_cycle_of_waits() {
        let desks = Desks::new();
        let [first, second, third, fourth] = [(); 4].map(|()| desks.join(true).unwrap());
        let wait = |from, to| desks.desk(from).set_waits_for(class_of(to));
        wait(first, second);
        wait(second, third);
        let all = class_of(second) | class_of(third);
        assert_eq!(desks.all_awaited(class_of(second)), all);
        wait(third, first);
        assert_eq!(desks.all_awaited(class_of(second)), all | class_of(first));
        assert_eq!(desks.all_awaited(class_of(fourth)), class_of(fourth));
        let numbers: Vec<_> = desks.in_classes(all).map(|(number, _)| number).collect();
        assert_eq!(numbers, [second, third]);
    }
}
