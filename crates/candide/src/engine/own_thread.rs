//! Locks that the transactions of a thread hold while their closures run. If such a closure runs a
//! transaction of another session, that inner transaction would wait for these locks without
//! success.
//!
//! Most transactions hold no locks while their closures run, so they note nothing here.

#![forbid(unsafe_code)]

use crate::record::CellAt;
use crate::sync::{MODELLED, process, process_unique};
use std::cell::RefCell;
use std::sync::Weak;

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    static NUMBER: u64 = process_unique();
}

/// Returns a number that no other thread of the process has; zero in a model, whose threads share
/// thread-local data, and when the thread is ending.
pub(crate) fn number() -> u64 {
    if MODELLED { 0 } else { NUMBER.try_with(|&number| number).unwrap_or(0) }
}

/// A lock, turn or token that a transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The token: the number of its database.
    Token(u64),
    /// A turn: the number of the database, and the number of the turn.
    Turn(u64, usize),
    /// A unit locked for update: the address of its cell, and the number of the session.
    Unit(u64, u64),
    /// A unit locked ahead: the previous attempt asked for this lock, and the closure of the
    /// current attempt has not yet asked for it. Holds the address of the unit's cell, the number
    /// of the session, and whether a transaction of another session has failed on the lock.
    Ahead(u64, u64, bool),
}

impl Held {
    pub(crate) fn unit(at: CellAt, session: u64) -> Held {
        Held::Unit(at.address(), session)
    }

    pub(crate) fn ahead(at: CellAt, session: u64) -> Held {
        Held::Ahead(at.address(), session, false)
    }

    /// Returns whether this is a lock on a unit. Locks on units are held for one attempt only.
    fn is_unit(&self) -> bool {
        matches!(self, Held::Unit(..) | Held::Ahead(..))
    }

    /// Notes that a transaction of this thread holds the lock, turn or token.
    pub(crate) fn note(self) {
        with(|held| held.push(self));
    }

    /// Removes the latest note that equals `self`.
    #[cold]
    pub(crate) fn forget(self) {
        with(|held| {
            if let Some(place) = held.iter().rposition(|&other| other == self) {
                held.remove(place);
            }
        });
    }

    /// Returns whether a transaction of this thread holds the lock, turn or token.
    #[cold]
    pub(crate) fn is_own_threads(self) -> bool {
        with(|held| held.contains(&self)).unwrap_or(false)
    }
}

/// Returns whether a transaction of this thread, but of another session than `session`, holds the
/// unit. If that unit was only locked ahead, also notes that a transaction has failed on the lock.
#[cold]
pub(crate) fn is_held_by_another(at: CellAt, session: u64) -> bool {
    let is_it = |cell: u64, of: u64| cell == at.address() && of != session;
    with(|held| {
        let was_asked = |held: &Held| matches!(*held, Held::Unit(cell, of) if is_it(cell, of));
        if held.iter().any(was_asked) {
            return true;
        }
        let refuses = held.iter_mut().find_map(|held| match held {
            Held::Ahead(cell, of, refuses) if is_it(*cell, *of) => Some(refuses),
            _ => None,
        });
        refuses.is_some_and(|refuses| {
            *refuses = true;
            true
        })
    })
    .unwrap_or(false)
}

/// Returns whether another transaction of this thread holds any unit than the one that has noted
/// the last `own` units. If all such units were only locked ahead, also notes that a transaction
/// has failed on these locks.
#[cold]
pub(crate) fn is_in_another_that_holds(own: u32) -> bool {
    with(|held| {
        let units = held.iter_mut().rev().filter(|held| held.is_unit());
        let mut others: Vec<&mut Held> = units.skip(own as usize).collect();
        if others.iter().all(|held| matches!(held, Held::Ahead(..))) {
            for held in &mut others {
                if let Held::Ahead(_, _, refuses) = held {
                    *refuses = true;
                }
            }
        }
        !others.is_empty()
    })
    .unwrap_or(false)
}

/// The locks of a database whose holders, with their threads, are shown in the database, and not
/// noted here.
pub(crate) trait ShownLocks: Send + Sync {
    /// Returns whether a running transaction of the thread with this [`number`] may hold one.
    fn may_be_held_by(&self, thread: u64) -> bool;
}

/// The locks of all databases of the process whose holders are shown.
static SHOWN: process::Mutex<Vec<Weak<dyn ShownLocks>>> = process::Mutex::new(Vec::new());

/// Adds the locks of a database.
#[cold]
pub(crate) fn add_shown_locks(locks: Weak<dyn ShownLocks>) {
    if MODELLED {
        return;
    }
    let mut shown = process::lock(&SHOWN);
    shown.retain(|locks| locks.strong_count() > 0);
    shown.push(locks);
}

/// Returns whether a running transaction of this thread may hold locks that are shown, in any
/// database. The caller's transaction holds none.
#[cold]
pub(crate) fn may_hold_shown_locks() -> bool {
    let thread = number();
    if thread == 0 {
        return false;
    }
    // Not under the lock: this may drop the last reference.
    let shown = process::lock(&SHOWN).clone();
    shown.iter().filter_map(Weak::upgrade).any(|locks| locks.may_be_held_by(thread))
}

/// Returns whether one of the last `count` noted units was locked ahead and a transaction of
/// another session has failed on that lock.
#[cold]
pub(crate) fn has_refused(count: u32) -> bool {
    with(|held| {
        let units = held.iter().rev().filter(|held| held.is_unit());
        units.take(count as usize).any(|held| matches!(held, Held::Ahead(_, _, true)))
    })
    .unwrap_or(false)
}

/// Forgets the last `count` noted units.
#[cold]
pub(crate) fn forget_units(mut count: u32) {
    with(|held| {
        while count > 0
            && let Some(last) = held.iter().rposition(Held::is_unit)
        {
            held.remove(last);
            count -= 1;
        }
    });
}

/// Calls `act` with the notes of this thread. Returns `None` without a call if the thread is
/// ending, or in a model, whose threads share thread-local data.
fn with<T>(act: impl FnOnce(&mut Vec<Held>) -> T) -> Option<T> {
    if MODELLED {
        return None;
    }
    HELD.try_with(|held| act(&mut held.borrow_mut())).ok()
}
