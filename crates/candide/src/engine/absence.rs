//! The life of an absent row: a key without a record, a record without a row, and the nodes between
//! them.

#![forbid(unsafe_code)]

use super::context::Context;
use super::garbage::{Due, GcOutcome};
use super::observation::Missing;
use super::parts::Parts;
use super::table_core::TableCore;
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::CellAt;

/// The absence of rows: how a protocol observes it, and what it does when records are linked and
/// reaped.
///
/// An insert links a record whose row is absent; the record of a deleted row stays until no
/// transaction can depend on it, and is reaped then. While a key has no record, a transaction
/// observes its absence by the index node that would hold it.
pub trait Absence: Parts {
    /// Observes that keys have no record.
    #[doc(hidden)]
    fn absent(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort>;

    /// Notes that the attempt itself has linked a record with this first unit, which took `node`
    /// from one version to another: From now on the node's new version proves the absence of other
    /// keys, and the record proves the absence of this key.
    #[doc(hidden)]
    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt);

    /// Notes that the attempt itself has divided or moved a node: the absence of keys there rests
    /// on all of its successors now.
    #[doc(hidden)]
    fn divided(attempt: &mut Self::Attempt, change: &NodeChange);

    /// Writes the cells of a record that is about to be linked: the row is absent, and always was.
    /// The record can be found before [`Absence::inherit_from_node`] has run; a protocol whose
    /// records inherit something keeps them locked until then.
    #[doc(hidden)]
    fn init_absent_cell(clock: &Self::Clock, at: CellAt);

    /// Lets a record inherit from the node it has just been linked in. Called for every unit under
    /// the node's lock.
    #[doc(hidden)]
    #[inline(always)]
    fn inherit_from_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}

    /// Returns whether a record was left absent, so that the caller has to queue it for garbage
    /// collection. Called when an attempt ends, for every record that it has linked.
    #[doc(hidden)]
    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool;

    /// Processes a queued entry: tries to make an absent record dead, or collects old versions.
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

    /// Merges into the node what must outlive a dead record. Called for every unit under the node's
    /// lock.
    #[doc(hidden)]
    fn merge_into_node(_clock: &Self::Clock, _node: NodeAt, _at: CellAt) {}

    /// Returns the read timestamp of a node: the latest time, in the protocol's timestamps, at
    /// which transactions may have seen the node's present content.
    #[doc(hidden)]
    #[inline(always)]
    fn node_rts(_clock: &Self::Clock, _node: NodeAt) -> u64 {
        0
    }

    /// Raises a node's read timestamp to `ts`. Returns whether it was lower.
    #[doc(hidden)]
    #[inline(always)]
    fn raise_node_rts(_clock: &Self::Clock, _node: NodeAt, _ts: u64) -> bool {
        false
    }

    /// Returns the read timestamp of a unit.
    #[doc(hidden)]
    #[inline(always)]
    fn rts(_clock: &Self::Clock, _at: CellAt) -> u64 {
        0
    }
}
