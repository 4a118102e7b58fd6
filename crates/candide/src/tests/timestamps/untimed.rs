//! TicToc without timestamps for absence. Buckets and leaves have only versions, which are in
//! commit order.
//!
//! Such mixtures have been published as serializable. Such mixtures are not serializable, as this
//! protocol shows: each script of the neighbouring tests that TicToc prevents commits under this
//! protocol.

use crate::Abort;
use crate::access::{Intent, WriteSet};
use crate::engine::{
    Absence, Committed, Context, Deferred, Due, GcOutcome, Missing, NoVersions, Parts, Protocol,
    Seen, TableCore, Unwatched, Watch,
};
use crate::epoch::{Epoch, Epochs};
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::protocols::{TicToc, begin_in_time};
use crate::record::CellAt;
use crate::schema::{Op, Words};
use crate::stats::LockCounters;
use crate::timestamps::Timestamps;
use std::sync::Arc;

/// The protocol `TicToc` without inheritance: records and nodes inherit no timestamps from each
/// other.
#[derive(Debug)]
pub(super) struct Untimed;

type Attempt = <TicToc as Parts>::Attempt;

fn inner<'a>(context: &'a mut Context<'_, Untimed>) -> Context<'a, TicToc> {
    Context {
        engine: context.engine,
        clock: context.clock,
        local: context.local,
        versions: context.versions,
    }
}

impl Parts for Untimed {
    type Policy = ();
    type Clock = ();
    type Attempt = Attempt;
    type SessionVersions = ();
    type Backlog = ();
}

impl Protocol for Untimed {
    const NAME: &'static str = "tictoc-untimed";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = TicToc::CELL_WORDS;
    const NODE_WORDS: usize = TicToc::NODE_WORDS;
    type Versions = NoVersions;
    type InPlace = Deferred;

    fn clock(_policy: &(), _timestamps: Timestamps, _epochs: &Arc<Epochs>) {}

    fn attempt(_clock: &(), _counts: &Arc<LockCounters>) -> Attempt {
        Attempt::default()
    }

    fn begin(context: &mut Context<'_, Untimed>, attempt: &mut Attempt) {
        TicToc::begin(&mut inner(context), attempt);
    }

    fn read(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        TicToc::read(&mut inner(context), attempt, at, copy)
    }

    fn is_present(attempt: &Attempt, at: CellAt) -> bool {
        TicToc::is_present(attempt, at)
    }

    fn stage(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        TicToc::stage(&mut inner(context), attempt, writes, at, intent, op)
    }

    fn revalidate(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        TicToc::revalidate(&mut inner(context), attempt, writes)
    }

    fn commit(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        TicToc::commit(&mut inner(context), attempt, writes, turn)
    }

    fn watch(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        TicToc::watch(&mut inner(context), attempt, watch)
    }

    fn abort(context: &mut Context<'_, Untimed>, attempt: &mut Attempt, writes: &mut WriteSet) {
        TicToc::abort(&mut inner(context), attempt, writes);
    }
}

impl Absence for Untimed {
    fn absent(
        context: &mut Context<'_, Untimed>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        TicToc::absent(&mut inner(context), attempt, missing)
    }

    fn init_absent_cell(_clock: &(), at: CellAt, flags: u64) {
        TicToc::init_absent_cell(&(), at, flags);
    }

    /// Initializes the record as absent since time zero and as never read.
    fn inherit_from_node(_clock: &(), _node: NodeAt, at: CellAt) {
        begin_in_time(at, [0, 0]);
    }

    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        TicToc::linked(attempt, node, before, after, first);
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        TicToc::divided(attempt, change);
    }

    fn may_be_reaped(_clock: &(), first: CellAt) -> bool {
        TicToc::may_be_reaped(&(), first)
    }

    fn keep(context: &mut Context<'_, Untimed>, first: CellAt) -> Result<bool, Abort> {
        TicToc::keep(&mut inner(context), first)
    }

    fn enqueue_if_absent(_clock: &(), first: CellAt) -> bool {
        TicToc::enqueue_if_absent(&(), first)
    }

    fn reap(
        context: &mut Context<'_, Untimed>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        TicToc::reap(&mut inner(context), due, table, units, horizon)
    }
}
