//! The locks that the transactions of a thread hold while their closures run, for which another
//! session's transaction in such a closure would wait in vain.
//!
//! Most transactions hold nothing while their closures run; for them nothing is noted.

#![forbid(unsafe_code)]

use crate::record::CellAt;
use crate::sync::MODELLED;
use std::cell::RefCell;

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// A lock, turn or token that a transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The token of the database with this number.
    Token(u64),
    /// The turn with the second number of the database with the first one.
    Turn(u64, usize),
    /// The unit whose cell has this address, for update, by the session with this number.
    Unit(u64, u64),
    /// A unit locked ahead, by cell and session, because the attempt before asked for it, and not
    /// asked for yet by this closure; and whether it has refused another session's transaction.
    Ahead(u64, u64, bool),
}

impl Held {
    pub(crate) fn unit(at: CellAt, session: u64) -> Held {
        Held::Unit(at.address(), session)
    }

    pub(crate) fn ahead(at: CellAt, session: u64) -> Held {
        Held::Ahead(at.address(), session, false)
    }

    /// Returns whether it is held for one attempt only.
    fn is_unit(&self) -> bool {
        matches!(self, Held::Unit(..) | Held::Ahead(..))
    }

    /// Notes that a transaction of this thread holds it.
    pub(crate) fn note(self) {
        with(|held| held.push(self));
    }

    /// Removes the latest note of it.
    #[cold]
    pub(crate) fn forget(self) {
        with(|held| {
            if let Some(place) = held.iter().rposition(|&other| other == self) {
                held.remove(place);
            }
        });
    }

    /// Returns whether a transaction of this thread holds it.
    #[cold]
    pub(crate) fn is_own_threads(self) -> bool {
        with(|held| held.contains(&self)).unwrap_or(false)
    }
}

/// Returns whether a transaction of this thread, but of another session than this one, holds a
/// unit. Notes it if that was locked ahead and the closure has not asked for it.
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

/// Returns whether one of the units that were noted last, `count` of them, was locked ahead and has
/// refused another session's transaction.
#[cold]
pub(crate) fn has_refused(count: u32) -> bool {
    with(|held| {
        let units = held.iter().rev().filter(|held| held.is_unit());
        units.take(count as usize).any(|held| matches!(held, Held::Ahead(_, _, true)))
    })
    .unwrap_or(false)
}

/// Forgets the units that were noted last, `count` of them.
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

/// Calls `act` with the notes of this thread, unless it is ending, or is a model's thread, since
/// those share thread-local data.
fn with<T>(act: impl FnOnce(&mut Vec<Held>) -> T) -> Option<T> {
    if MODELLED {
        return None;
    }
    HELD.try_with(|held| act(&mut held.borrow_mut())).ok()
}
