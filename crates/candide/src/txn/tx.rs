//! The running transaction, as its closure sees it.

#![forbid(unsafe_code)]

use super::conflict::Conflict;
use super::state::State;
use crate::engine::{Engine, Protocol};
use crate::error::Abort;
use crate::protocols::DefaultProtocol;
use std::cell::RefCell;

/// A running transaction, the argument of the closure of [`Session::run`](crate::Session::run).
///
/// A `Tx` belongs to one attempt and one thread: it is neither `Send` nor `Sync`, so it cannot be
/// held across an `.await`. Every operation takes the `Tx` by shared reference. None of its
/// internals are borrowed while user code runs.
pub struct Tx<'s, P: Protocol = DefaultProtocol> {
    pub(crate) engine: &'s Engine<P>,
    pub(crate) state: &'s RefCell<State<P>>,
    effects: &'s Effects,
}

/// Calls to be made after a transaction has committed.
#[derive(Default)]
pub(crate) struct Effects(RefCell<Vec<Box<dyn FnOnce()>>>);

impl Effects {
    /// Runs all effects of a committed transaction.
    #[inline(always)]
    pub(crate) fn run_all(self) {
        let effects = self.0.into_inner();
        if !effects.is_empty() {
            effects.into_iter().for_each(|effect| effect());
        }
    }

    /// Returns the effects of an attempt that has not committed. The caller drops them.
    #[inline]
    pub(crate) fn discard(&self) -> impl Sized {
        self.0.take()
    }
}

impl<'s, P: Protocol> Tx<'s, P> {
    #[inline(always)]
    pub(crate) fn new(
        engine: &'s Engine<P>,
        state: &'s RefCell<State<P>>,
        effects: &'s Effects,
    ) -> Tx<'s, P> {
        Tx { engine, state, effects }
    }

    /// Returns the number of this attempt, counted from one.
    #[inline]
    pub fn attempt(&self) -> u32 {
        self.state.borrow().attempt_number
    }

    /// Returns the conflict of the previous attempt, so that a closure can adapt. For example, it
    /// can read a contended row [for update](crate::Table::get_for_update), or do its work in
    /// another order. `None` in the first attempt of each [`run`](crate::Session::run).
    #[inline]
    pub fn last_conflict(&self) -> Option<Conflict> {
        let state = self.state.borrow();
        // A later attempt is made only after a conflict, which was noted.
        let note = state.last_conflict.filter(|_| state.attempt_number > 1)?;
        drop(state);
        Some(Conflict::named(self.engine, note))
    }

    /// Validates that everything the attempt has read so far is consistent and still current. A
    /// closure calls this before a step that must not depend on inconsistent reads. Under an
    /// [opaque](crate::Protocol::OPAQUE) protocol reads are always consistent, so the call only
    /// checks that they are still current.
    ///
    /// ```
    /// # use candide::{Database, Record, TicToc};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Counter { #[key] id: u32, hits: u64 }
    /// let db = Database::<TicToc>::default();
    /// let counters = db.table::<Counter>("counters")?;
    /// db.run(|tx| (0..2).try_for_each(|id| counters.insert(tx, Counter { id, hits: 0 })))?;
    /// db.run(|tx| {
    ///     let hits = (counters.read(tx, &0, Counter::HITS)?, counters.read(tx, &1, Counter::HITS)?);
    ///     tx.validate()?;
    ///     assert_eq!(hits.0, hits.1, "transactions count both");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A conflict, if a row that was read has changed, or a row that is to be written has been
    /// inserted or deleted. Return it from the closure: the attempt is repeated.
    #[inline]
    pub fn validate(&self) -> Result<(), Abort> {
        self.state.borrow_mut().validate(self.engine)
    }

    /// Runs `effect` after this attempt has committed, outside the transaction, in the order of the
    /// calls. If the attempt does not commit, or an earlier effect panics, `effect` is dropped
    /// without running.
    #[inline]
    pub fn on_commit(&self, effect: impl FnOnce() + 'static) {
        self.effects.0.borrow_mut().push(Box::new(effect));
    }
}

impl<P: Protocol> std::fmt::Debug for Tx<'_, P> {
    #[inline]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("protocol", &self.engine.properties.name).finish_non_exhaustive()
    }
}
