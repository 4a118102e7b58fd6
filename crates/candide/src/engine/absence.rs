//! The life of an absent row: a key without a record, a record without a row, and the index nodes
//! that show absence.

#![forbid(unsafe_code)]

use super::context::Context;
use super::garbage::{Due, GcOutcome};
use super::observation::Missing;
use super::parts::Parts;
use super::table_core::TableCore;
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::{CellAt, Tid};
use crate::sync::{AtomicU64, Ordering};

/// Absence of rows: how a protocol observes it, and how records come and go.
///
/// An insert links a record whose row is absent at first. The record of a deleted row stays until
/// no transaction can depend on the record; then the record is reaped. While a key has no record,
/// its index node shows that the key is absent.
pub trait Absence: Parts {
    /// Observes that the keys of `missing` have no record.
    #[doc(hidden)]
    fn absent(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort>;

    /// Notes that the attempt itself has linked a record, whose first unit is `first`. The link has
    /// raised the version of `node` from `before` to `after`. From now on, validation checks the
    /// absence of other keys in the node by the version `after`, and the absence of this record's
    /// key by the record.
    #[doc(hidden)]
    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt);

    /// Notes that the attempt itself has divided or moved a node. From now on, validation checks
    /// the absence of keys in that node by all of the node's successors.
    #[doc(hidden)]
    fn divided(attempt: &mut Self::Attempt, change: &NodeChange);

    /// Writes a cell of a record that is about to be linked. The cell's word is that of a row that
    /// is absent and has always been absent. Readers can find the record before
    /// [`Absence::inherit_from_node`] has run. So a protocol that overrides that function keeps the
    /// cells locked until then. `flags` are those of the table's policy.
    #[doc(hidden)]
    fn init_absent_cell(clock: &Self::Clock, at: CellAt, flags: u64);

    /// Lets a record inherit from the node in which it has just been linked. Called for every unit
    /// of the record, under the node's lock.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn inherit_from_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}

    /// Returns whether the record with the first unit `first` may be reaped before an attempt has
    /// ended that is running now.
    #[doc(hidden)]
    fn may_be_reaped(clock: &Self::Clock, first: CellAt) -> bool;

    /// Makes sure that the record with the first unit `first` stays in its index until the attempt
    /// has ended, so that later lookups of the attempt find its staged write. Called before a row
    /// is put into or inserted in a record that the operation has found in the index, if the record
    /// may be reaped. Returns `false` if the record is dead already.
    ///
    /// # Errors
    /// [`Abort::Locked`] if another session keeps the record locked.
    #[doc(hidden)]
    fn keep(context: &mut Context<'_, Self>, first: CellAt) -> Result<bool, Abort>;

    /// Returns whether a record was left absent, so that the caller must queue it for garbage
    /// collection. Called at the end of an attempt, for every record that the attempt has linked.
    #[doc(hidden)]
    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool;

    /// Processes a queue entry: tries to mark an absent record as dead, or collects old versions.
    /// `units` are all units of the record, in order. The horizon of epochs has passed the entry's
    /// epoch.
    #[doc(hidden)]
    fn reap(
        context: &mut Context<'_, Self>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome;

    /// Merges into the node the data of the unit `at` that must outlive its dead record. Called for
    /// every unit of the record, under the node's lock.
    #[doc(hidden)]
    fn merge_into_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}

    /// Returns the read timestamp of a node: the latest protocol time at which transactions may
    /// have seen the present contents of the node.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn node_rts(_clock: &Self::Clock, _node: NodeAt) -> u64 {
        0
    }

    /// Raises a node's read timestamp to `ts`. Returns whether the timestamp was lower.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn raise_node_rts(_clock: &Self::Clock, _node: NodeAt, _ts: u64) -> bool {
        false
    }

    /// Calls `each` with the words of every version of the unit `at` whose row is present, if the
    /// versions are in the unit or its chain. No other transaction runs, and the caller is pinned,
    /// or nothing is collected meanwhile.
    #[doc(hidden)]
    fn each_row(_clock: &Self::Clock, at: CellAt, each: &mut dyn FnMut(&[AtomicU64])) {
        if !Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT) {
            each(at.payload());
        }
    }

    /// Returns the read timestamp of a unit.
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn rts(_clock: &Self::Clock, _at: CellAt) -> u64 {
        0
    }
}
