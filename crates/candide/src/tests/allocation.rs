//! Tests that a commit neither allocates nor frees memory while it holds locks.
//!
//! The test binary's allocator counts a thread's calls between the points [`Point::Unlocked`] and
//! [`Point::Released`] of a commit. Only this file and the engine's lowest layers contain `unsafe`:
//! the trait of allocators requires it.

use super::indexed_rows::{Filed, Parcel};
use super::rows::Item;
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::memory::Cache;
use crate::objects::{TQueue, TVec};
use crate::schema::{Refused, Updater};
use crate::sync::{Point, with_hook};
use crate::{Abort, Column, Database, IndexOptions, Session, Table, Text, Tx, Whole};
use candide_derive::Record;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a counter of calls.
struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

thread_local! {
    /// The number of this thread's calls of the allocator while they are counted; `None` if they
    /// are not counted.
    static CALLS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Counts a call. This function neither allocates nor panics: the thread-local is constant and has
/// no destructor.
fn count() {
    if let Some(calls) = CALLS.get() {
        CALLS.set(Some(calls + 1));
    }
}

// SAFETY: every function passes its arguments on to the system's allocator and returns the
// allocator's result, under the same contract. The counting does not allocate.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps this function's contract, which is the same as that of the
        // called function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps this function's contract, which is the same as that of the
        // called function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps this function's contract, which is the same as that of the
        // called function.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps this function's contract, which is the same as that of the
        // called function.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The observations of a thread's commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    commits: usize,
    /// The number of calls of the allocator while something was locked.
    calls: usize,
}

/// Runs `body`, and counts the calls of the allocator in each commit of this thread, from before
/// the first lock to after the last. At the point `disturbed`, the test makes an allocation of its
/// own.
fn watch<T>(disturbed: Option<Point>, body: impl FnOnce() -> T) -> (T, Seen) {
    thread_local! {
        static SEEN: Cell<Seen> = const { Cell::new(Seen { commits: 0, calls: 0 }) };
    }
    SEEN.set(Seen::default());
    let hook = move |point| match point {
        Point::Unlocked => CALLS.set(Some(0)),
        Point::Released => {
            // A commit without writes has locked nothing.
            if let Some(calls) = CALLS.take() {
                let Seen { commits, calls: before } = SEEN.get();
                SEEN.set(Seen { commits: commits + 1, calls: before + calls });
            }
        }
        _ if Some(point) == disturbed => drop(std::hint::black_box(Box::new(0))),
        _ => {}
    };
    let value = with_hook(hook, body);
    (value, SEEN.get())
}

/// Doubles a count, unless it is odd.
#[derive(Debug, Clone, Copy)]
struct Double;

impl Updater<Parcel> for Double {
    type Target = Column<Parcel, i16>;

    fn target(&self) -> Self::Target {
        Parcel::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), Refused> {
        if *count % 2 != 0 {
            return Err(Refused);
        }
        *count *= 2;
        Ok(())
    }
}

/// Two tables with indexes.
struct Tables<P: Protocol> {
    db: Database<P>,
    parcels: Table<Parcel, P>,
    filed: Table<Filed, P>,
    vec: TVec<[u64; 3], P>,
}

impl<P: Protocol> Tables<P> {
    fn new(sorted: bool) -> Tables<P> {
        let db = Database::<P>::builder()
            .manual_epochs(1)
            .factors(sorted.then_some(Factor::SortedLocks))
            .build()
            .unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        let filed = db.table::<Filed>("filed").unwrap();
        let vec = TVec::new(&db).unwrap();
        parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
        db.run(|tx| parcels.insert_many(tx, (0..=200).map(|number| Parcel::new(1, number))))
            .unwrap();
        Tables { db, parcels, filed, vec }
    }

    /// Writes `many` rows in each possible way.
    fn write(&self, tx: &Tx<'_, P>, many: u16) -> Result<(), Abort> {
        let Tables { parcels, filed, vec, .. } = self;
        for number in 0..many {
            parcels.insert(tx, Parcel::new(2, number))?;
            filed.insert(tx, Parcel::new(2, number).into())?;
            vec.push(tx, [number.into(); 3])?;
            parcels.update(
                tx,
                &(1, number),
                (Parcel::WEIGHT.add(1).at_least(0), Parcel::NOTE.max(3)),
            )?;
            parcels.update_with(tx, &(1, number), Double)?;
            parcels.modify(tx, &(1, 100 + number), Parcel::CODE, |code| *code += 100_000)?;
            parcels.read_for_update(tx, &(1, 50 + number), Whole)?;
            parcels.update(tx, &(1, 50 + number), Parcel::NOTE.set(1))?;
            parcels.delete(tx, &(1, 150 + number))?;
            parcels.insert(tx, Parcel::new(3, number))?;
            parcels.delete(tx, &(3, number))?;
        }
        Ok(())
    }

    /// Ends a transaction of `many` rows in each possible way, and returns the results. Each
    /// transaction runs in a new session, whose vectors are empty. So memory that is not reserved
    /// before the first lock shows as a call.
    fn endings(&self, many: u16) -> [Result<(), Abort>; 4] {
        let session = || -> Session<P> { self.db.session().unwrap() };
        let odd = session().run(|tx| {
            self.write(tx, many)?;
            self.parcels.update(tx, &(1, 0), Parcel::COUNT.set(1))?;
            self.parcels.update_with(tx, &(1, 0), Double)
        });
        let guarded = session().run(|tx| {
            self.write(tx, many)?;
            self.parcels.update(tx, &(1, 1), Parcel::WEIGHT.sub(1_000).at_least(0))
        });
        let mut other = session();
        let disturbed = session().with(crate::RunOptions::new().attempts_max(1)).run(|tx| {
            let note = self.parcels.read(tx, &(1, 200), Parcel::NOTE)?;
            self.write(tx, many)?;
            other.run(|tx| self.parcels.update(tx, &(1, 200), Parcel::NOTE.add(1)))?;
            self.parcels.update(tx, &(1, 200), Parcel::NOTE.set(note + 1))
        });
        let committed = session().run(|tx| self.write(tx, many));
        [odd, guarded, disturbed, committed]
    }
}

protocol_tests!(overlapping: a_commit_does_not_allocate_while_it_holds_locks);
fn a_commit_does_not_allocate_while_it_holds_locks<P: Protocol>() {
    for sorted in [false, true] {
        for many in [1, 5, 50] {
            let tables = Tables::<P>::new(sorted);
            let mut session = tables.db.session().unwrap();
            let (first, seen) = watch(None, || session.run(|tx| tables.write(tx, many)));
            assert_eq!((first, seen), (Ok(()), Seen { commits: 1, calls: 0 }), "{}", P::NAME);
            let tables = Tables::<P>::new(sorted);
            let (endings, seen) = watch(None, || tables.endings(many));
            let wanted =
                [Err(Abort::Guard), Err(Abort::Guard), Err(Abort::AttemptsExhausted), Ok(())];
            assert_eq!(endings, wanted);
            // Each transaction makes one commit, and so does the disturbing one. The disturbed
            // transaction may have failed before its commit.
            assert!(
                seen.calls == 0 && seen.commits >= 4,
                "{seen:?} under {} with {many} rows of each kind",
                P::NAME
            );
        }
    }
}

protocol_tests!(overlapping: allocations_between_locking_and_unlocking_are_seen_by_the_watch);
fn allocations_between_locking_and_unlocking_are_seen_by_the_watch<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    for point in [Point::Locked, Point::Validated] {
        let (put, seen) = watch(Some(point), || db.run(|tx| table.put(tx, Item::new(1, 1))));
        assert_eq!((put, seen), (Ok(()), Seen { commits: 1, calls: 2 }));
    }
    // Before its first lock and after its last, a commit may allocate.
    let (put, seen) = watch(Some(Point::Copied), || {
        db.run(|tx| {
            table.read(tx, 1, Item::COUNT)?;
            table.put(tx, Item::new(1, 2))
        })
    });
    assert_eq!((put, seen), (Ok(()), Seen { commits: 1, calls: 0 }));
}

protocol_tests!(overlapping: many_rows_of_a_commit_do_not_let_an_index_grow_under_locks);
/// Each transaction appends so many rows that the index grows, once or several times. Some of them
/// come when a growth has begun that is not over.
fn many_rows_of_a_commit_do_not_let_an_index_grow_under_locks<P: Protocol>() {
    for counts in [&[500][..], &[5_000, 70], &[60, 7, 1, 30, 2, 300, 3, 900, 40]] {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let vec = TVec::<[u64; 3], P>::new(&db).unwrap();
        let mut session = db.session().unwrap();
        for &count in counts {
            let push = |session: &mut Session<P>| {
                session.run(|tx| (0..count).try_for_each(|number| vec.push(tx, [number; 3])))
            };
            let (pushed, seen) = watch(None, || push(&mut session));
            assert_eq!(
                (pushed, seen),
                (Ok(()), Seen { commits: 1, calls: 0 }),
                "{}: {count} of {counts:?}",
                P::NAME
            );
        }
    }
}

/// Returns the number of calls of the allocator that `act` makes.
fn calls_of(act: impl FnOnce()) -> usize {
    CALLS.set(Some(0));
    act();
    CALLS.take().expect("only this function takes it")
}

protocol_tests!(overlapping: a_steady_push_allocates_nothing);
fn a_steady_push_allocates_nothing<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let (queue, vec) = (TQueue::<u64, P>::new(&db).unwrap(), TVec::<u64, P>::new(&db).unwrap());
    let mut session = db.session().unwrap();
    let mut push = |number| {
        let pushed = session.run(|tx| {
            queue.push(tx, number)?;
            vec.push(tx, number)
        });
        assert_eq!(pushed, Ok(()), "{}", P::NAME);
    };
    // No index grows in the next hundred rows; a list that becomes longer than ever does.
    (0..700).for_each(&mut push);
    let steady = (0..100).filter(|&number| calls_of(|| push(number)) == 0).count();
    assert!(steady >= 90, "{}: {steady}", P::NAME);
}

#[derive(Debug, Clone, Record)]
#[record(crate = crate)]
struct Note {
    #[key]
    id: u64,
    text: String,
}

#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate)]
struct Card {
    #[key]
    id: u64,
    text: Text<104>,
}

protocol_tests!(overlapping: a_steady_set_of_a_text_takes_one_block_of_the_session);
/// It calls the allocator no more often than a set of a text of a fixed bound.
fn a_steady_set_of_a_text_takes_one_block_of_the_session<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let notes = db.table::<Note>("notes").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| notes.insert(tx, Note { id: 1, text: "short".to_owned() })).unwrap();
    let cards = db.table::<Card>("cards").unwrap();
    session.run(|tx| cards.insert(tx, Card { id: 1, text: Text::default() })).unwrap();
    let texts = ["a", "b"].map(|character| character.repeat(100));
    let long = db.inner.engine.long_memory().unwrap();
    let mut set = |number: usize| {
        let mut taken = [0; 2];
        let calls = calls_of(|| {
            let done = session.run(|tx| {
                let free = || {
                    let caches = &tx.state.borrow().worker.local.caches;
                    caches.iter().flatten().map(Cache::ready).sum::<usize>()
                };
                let before = (long.in_use(), free());
                notes.update(tx, 1, Note::TEXT.set(&texts[number % 2]))?;
                taken = [(long.in_use() - before.0) as usize, before.1.saturating_sub(free())];
                Ok(())
            });
            assert_eq!(done, Ok(()), "{}", P::NAME);
        });
        db.inner.engine.epochs.pass();
        (taken, calls)
    };
    (0..200).for_each(|number| _ = set(number));
    let seen: Vec<_> = (0..100).map(set).collect();
    let fixed = texts.each_ref().map(|text| text.parse::<Text<104>>().unwrap());
    let mut set_card = |number: usize| {
        let set = Card::TEXT.set(fixed[number % 2]);
        let calls = calls_of(|| session.run(|tx| cards.update(tx, 1, set)).unwrap());
        db.inner.engine.epochs.pass();
        calls
    };
    (0..200).for_each(|number| _ = set_card(number));
    let most = (0..100).map(set_card).min().unwrap();
    // The queue of replaced values, which snapshots may see, allocates.
    let most = if P::NAME == "mvcc" { 4 } else { most };
    let steady = seen.iter().filter(|(taken, calls)| *taken == [1, 1] && *calls <= most).count();
    assert!(steady >= 90, "{}: {steady}, {most} for a card, {:?}", P::NAME, &seen[..4]);
}
