//! Any protocol, chosen when a database is built: each function at the seam is called through a
//! table of functions.
//!
//! # Guarantee
//! That of the protocol chosen: this one adds nothing, drops nothing and reorders nothing.
//!
//! # Use
//! Code that is generic over the protocol is compiled once for all of them. A single read takes
//! some 60 instructions more than under the protocol itself, so what is measured names its protocol
//! statically.
//!
//! # Source
//! None; the seam is the right place to erase at, since it speaks of cells and words and knows no
//! row type.

#![forbid(unsafe_code)]

use super::list::DefaultProtocol;
use crate::access::{Intent, WriteSet};
use crate::engine::{
    Committed, Context, Due, Fate, GcOutcome, Missing, Properties, Protocol, Seen, TableCore,
    UndoEntry,
};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::CellAt;
use crate::schema::{Op, Words};
use crate::sync::Instant;
use crate::timestamps::Timestamps;
use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A protocol that is chosen at run time, by [`Builder::policy`](crate::api::Builder::policy);
/// the default protocol if none is.
///
/// Serializable as the chosen one is, and slower: what it calls is not known when it is compiled.
/// Its databases have no [snapshots](crate::Snapshot).
///
/// ```
/// use candide::{Abort, Chosen, Database, Erased, Mvto, Record};
///
/// #[derive(Record, Clone, Copy)]
/// struct Counter { #[key] id: u64, count: u64 }
///
/// let db = Database::<Erased>::builder().policy(Chosen::of::<Mvto>(())).build()?;
/// let counters = db.table::<Counter>("counters")?;
/// db.run(|tx| counters.insert(tx, Counter { id: 1, count: 7 }))?;
/// assert_eq!(db.run(|tx| counters.read(tx, &1, Counter::COUNT)), Ok::<_, Abort>(7));
/// assert_eq!(db.properties().name, "mvto");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Erased;

/// A function that makes what a database keeps for a protocol.
type Make = dyn Fn(Timestamps, &Arc<Epochs>) -> Box<dyn Base> + Send + Sync;

/// A protocol and its policy, as [`Erased`] runs them.
#[derive(Clone)]
pub struct Chosen {
    properties: Properties,
    make: Arc<Make>,
}

impl Chosen {
    /// Chooses protocol `P`, by a policy of its own.
    pub fn of<P: Protocol>(policy: P::Policy) -> Chosen {
        Chosen {
            properties: P::properties(&policy),
            make: Arc::new(move |timestamps, epochs| {
                Box::new(BaseOf::<P>(P::clock(&policy, timestamps, epochs)))
            }),
        }
    }

    /// Returns the properties of databases that run it.
    pub fn properties(&self) -> Properties {
        self.properties
    }
}

impl Default for Chosen {
    fn default() -> Chosen {
        #[cfg(test)]
        if let Some(chosen) = in_tests::chosen() {
            return chosen;
        }
        Chosen::of::<DefaultProtocol>(())
    }
}

impl Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chosen").field(&self.properties.name).finish()
    }
}

/// The functions of a protocol that need no attempt, with what a database keeps for it.
pub trait Base: Any + Send + Sync + Debug {
    #[doc(hidden)]
    fn attempt(&self) -> Box<dyn Running>;
    #[doc(hidden)]
    fn enter(&self, until: Option<Instant>) -> Result<(), Abort>;
    #[doc(hidden)]
    fn leave(&self);
    #[doc(hidden)]
    fn init_absent_cell(&self, at: CellAt);
    #[doc(hidden)]
    fn inherit_from_node(&self, node: NodeAt, at: CellAt);
    #[doc(hidden)]
    fn enqueue_if_absent(&self, first: CellAt) -> bool;
    #[doc(hidden)]
    fn time(&self) -> u64;
    #[doc(hidden)]
    fn node_seen_until(&self, node: NodeAt) -> u64;
    #[doc(hidden)]
    fn see_node_until(&self, node: NodeAt, time: u64) -> bool;
    #[doc(hidden)]
    fn seen_until(&self, at: CellAt) -> u64;
    #[doc(hidden)]
    fn unregister_snapshot(&self, time: u64, since: Moment);
    #[doc(hidden)]
    fn oldest_snapshot(&self) -> Option<(u64, Moment)>;
    #[doc(hidden)]
    fn prefetch(&self, at: CellAt, first: usize, count: usize);
    #[doc(hidden)]
    fn approach(&self, due: &[CellAt]);
    #[doc(hidden)]
    fn merge_into_node(&self, node: NodeAt, at: CellAt);
    #[doc(hidden)]
    fn begin_collecting(&self, context: &mut Context<'_, Erased>, until: u64);
    #[doc(hidden)]
    fn begin_burying(&self, context: &mut Context<'_, Erased>);
    #[doc(hidden)]
    fn look_at(
        &self,
        context: &mut Context<'_, Erased>,
        put: &UndoEntry,
        table: &TableCore,
    ) -> Fate;
    #[doc(hidden)]
    fn end_looking(&self, context: &mut Context<'_, Erased>);
    #[doc(hidden)]
    fn reap(
        &self,
        context: &mut Context<'_, Erased>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome;
    #[doc(hidden)]
    fn detach_for_snapshots(
        &self,
        context: &mut Context<'_, Erased>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool;
}

/// The functions of a protocol that work on an attempt, with what a session keeps for it.
pub trait Running: Send {
    #[doc(hidden)]
    fn begin(&mut self, context: &mut Context<'_, Erased>);
    #[doc(hidden)]
    fn has_failed(&self) -> bool;
    #[doc(hidden)]
    fn read(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;
    #[doc(hidden)]
    fn read_at_once(&mut self, at: CellAt, copy: &mut dyn FnMut(Words<'_>)) -> Option<Seen>;
    #[doc(hidden)]
    fn read_for_update(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;
    #[doc(hidden)]
    fn hold(&mut self, context: &mut Context<'_, Erased>, at: CellAt) -> Result<bool, Abort>;
    #[doc(hidden)]
    fn peek(&self, at: CellAt) -> bool;
    fn assumes(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort>;
    #[doc(hidden)]
    fn is_older(&self, at: CellAt) -> bool;
    #[doc(hidden)]
    fn chain_length(&self, base: &dyn Base, at: CellAt) -> Option<usize>;
    #[doc(hidden)]
    fn mark(&mut self) -> usize;
    #[doc(hidden)]
    fn read_at_mark(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        mark: usize,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort>;
    #[doc(hidden)]
    fn absent(
        &mut self,
        context: &mut Context<'_, Erased>,
        missing: Missing<'_>,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn make_room(&self, context: &mut Context<'_, Erased>, table: &TableCore) -> Result<(), Abort>;
    #[doc(hidden)]
    fn stage(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn stage_new(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
        cells: &[CellAt],
        operand: u32,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn revalidate(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &WriteSet,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn commit(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort>;
    #[doc(hidden)]
    fn abort(&mut self, context: &mut Context<'_, Erased>, writes: &mut WriteSet);
    #[doc(hidden)]
    fn validate_without_writes(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort>;
    #[doc(hidden)]
    fn linked(&mut self, node: NodeAt, before: u64, after: u64, first: CellAt);
    #[doc(hidden)]
    fn divided(&mut self, change: &NodeChange);
    #[doc(hidden)]
    fn reach(
        &mut self,
        context: &mut Context<'_, Erased>,
        time: u64,
        table: u16,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn register_snapshot(&self, base: &dyn Base, since: Moment) -> Option<u64>;
}

/// A database's part of protocol `P`.
struct BaseOf<P: Protocol>(P::Clock);

/// A session's part of protocol `P`.
struct RunningOf<P: Protocol>(P::Attempt);

impl<P: Protocol> Debug for BaseOf<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns a database's part, which is that of `P`, since the database has made the attempt.
fn clock<P: Protocol>(base: &dyn Base) -> &P::Clock {
    let base: &dyn Any = base;
    &base.downcast_ref::<BaseOf<P>>().expect("an attempt and its database are of one protocol").0
}

/// Returns the context for the protocol that does the work.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Erased>) -> Context<'a, P> {
    Context { engine: context.engine, clock: clock::<P>(&**context.clock), local: context.local }
}

impl<P: Protocol> Base for BaseOf<P> {
    fn attempt(&self) -> Box<dyn Running> {
        Box::new(RunningOf::<P>(P::attempt(&self.0)))
    }

    fn enter(&self, until: Option<Instant>) -> Result<(), Abort> {
        P::enter(&self.0, until)
    }

    fn leave(&self) {
        P::leave(&self.0);
    }

    fn init_absent_cell(&self, at: CellAt) {
        P::init_absent_cell(&self.0, at);
    }

    fn inherit_from_node(&self, node: NodeAt, at: CellAt) {
        P::inherit_from_node(&self.0, node, at);
    }

    fn enqueue_if_absent(&self, first: CellAt) -> bool {
        P::enqueue_if_absent(&self.0, first)
    }

    fn time(&self) -> u64 {
        P::time(&self.0)
    }

    fn node_seen_until(&self, node: NodeAt) -> u64 {
        P::node_seen_until(&self.0, node)
    }

    fn see_node_until(&self, node: NodeAt, time: u64) -> bool {
        P::see_node_until(&self.0, node, time)
    }

    fn seen_until(&self, at: CellAt) -> u64 {
        P::seen_until(&self.0, at)
    }

    fn unregister_snapshot(&self, time: u64, since: Moment) {
        P::unregister_snapshot(&self.0, time, since);
    }

    fn oldest_snapshot(&self) -> Option<(u64, Moment)> {
        P::oldest_snapshot(&self.0)
    }

    fn prefetch(&self, at: CellAt, first: usize, count: usize) {
        P::prefetch(&self.0, at, first, count);
    }

    fn approach(&self, due: &[CellAt]) {
        P::approach(&self.0, due.iter().copied());
    }

    fn merge_into_node(&self, node: NodeAt, at: CellAt) {
        P::merge_into_node(&self.0, node, at);
    }

    fn begin_collecting(&self, context: &mut Context<'_, Erased>, until: u64) {
        P::begin_collecting(&mut inner(context), until);
    }

    fn begin_burying(&self, context: &mut Context<'_, Erased>) {
        P::begin_burying(&mut inner(context));
    }

    fn look_at(
        &self,
        context: &mut Context<'_, Erased>,
        put: &UndoEntry,
        table: &TableCore,
    ) -> Fate {
        P::look_at(&mut inner(context), put, table)
    }

    fn end_looking(&self, context: &mut Context<'_, Erased>) {
        P::end_looking(&mut inner(context));
    }

    fn reap(
        &self,
        context: &mut Context<'_, Erased>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        P::reap(&mut inner(context), due, table, units, horizon)
    }

    fn detach_for_snapshots(
        &self,
        context: &mut Context<'_, Erased>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        P::detach_for_snapshots(&mut inner(context), due, table, units)
    }
}

impl<P: Protocol> Running for RunningOf<P> {
    fn begin(&mut self, context: &mut Context<'_, Erased>) {
        P::begin(&mut inner(context), &mut self.0);
    }

    fn has_failed(&self) -> bool {
        P::has_failed(&self.0)
    }

    fn read(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        P::read(&mut inner(context), &mut self.0, at, copy)
    }

    fn read_at_once(&mut self, at: CellAt, copy: &mut dyn FnMut(Words<'_>)) -> Option<Seen> {
        P::read_at_once(&mut self.0, at, copy)
    }

    fn read_for_update(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        P::read_for_update(&mut inner(context), &mut self.0, at, copy)
    }

    fn hold(&mut self, context: &mut Context<'_, Erased>, at: CellAt) -> Result<bool, Abort> {
        P::hold(&mut inner(context), &mut self.0, at)
    }

    fn peek(&self, at: CellAt) -> bool {
        P::peek(&self.0, at)
    }

    fn assumes(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        P::assumes(&mut inner(context), &mut self.0, at, exists)
    }

    fn is_older(&self, at: CellAt) -> bool {
        P::is_older(&self.0, at)
    }

    fn chain_length(&self, base: &dyn Base, at: CellAt) -> Option<usize> {
        P::chain_length(clock::<P>(base), &self.0, at)
    }

    fn mark(&mut self) -> usize {
        P::mark(&mut self.0)
    }

    fn read_at_mark(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        mark: usize,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        P::read_at_mark(&mut inner(context), &mut self.0, at, mark, copy)
    }

    fn absent(
        &mut self,
        context: &mut Context<'_, Erased>,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        P::absent(&mut inner(context), &mut self.0, missing)
    }

    fn make_room(&self, context: &mut Context<'_, Erased>, table: &TableCore) -> Result<(), Abort> {
        P::make_room(&mut inner(context), &self.0, table)
    }

    fn stage(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        P::stage(&mut inner(context), &mut self.0, writes, at, intent, op)
    }

    fn stage_new(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
        cells: &[CellAt],
        operand: u32,
    ) -> Result<(), Abort> {
        P::stage_new(&mut inner(context), &mut self.0, writes, cells.iter().copied(), operand)
    }

    fn revalidate(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        P::revalidate(&mut inner(context), &mut self.0, writes)
    }

    fn commit(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        P::commit(&mut inner(context), &mut self.0, writes)
    }

    fn abort(&mut self, context: &mut Context<'_, Erased>, writes: &mut WriteSet) {
        P::abort(&mut inner(context), &mut self.0, writes);
    }

    fn validate_without_writes(
        &mut self,
        context: &mut Context<'_, Erased>,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        P::validate_without_writes(&mut inner(context), &mut self.0, writes, images)
    }

    fn linked(&mut self, node: NodeAt, before: u64, after: u64, first: CellAt) {
        P::linked(&mut self.0, node, before, after, first);
    }

    fn divided(&mut self, change: &NodeChange) {
        P::divided(&mut self.0, change);
    }

    fn reach(
        &mut self,
        context: &mut Context<'_, Erased>,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        P::reach(&mut inner(context), &mut self.0, time, table)
    }

    fn register_snapshot(&self, base: &dyn Base, since: Moment) -> Option<u64> {
        P::register_snapshot(clock::<P>(base), &self.0, since)
    }
}

impl Protocol for Erased {
    const NAME: &'static str = "erased";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = 0;
    const NODE_WORDS: usize = 0;
    // Some protocols keep versions, and put records out of the way.
    const VERSION_WORDS: usize = 1;
    const KEEPS_DELETED_INDEX: bool = true;
    type Policy = Chosen;
    type Clock = Box<dyn Base>;
    type Attempt = Box<dyn Running>;

    fn properties(policy: &Chosen) -> Properties {
        policy.properties
    }

    fn clock(policy: &Chosen, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock {
        (policy.make)(timestamps, epochs)
    }

    fn attempt(clock: &Self::Clock) -> Self::Attempt {
        clock.attempt()
    }

    fn enter(clock: &Self::Clock, until: Option<Instant>) -> Result<(), Abort> {
        clock.enter(until)
    }

    fn leave(clock: &Self::Clock) {
        clock.leave();
    }

    fn begin(context: &mut Context<'_, Erased>, attempt: &mut Self::Attempt) {
        attempt.begin(context);
    }

    fn has_failed(attempt: &Self::Attempt) -> bool {
        attempt.has_failed()
    }

    fn read(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        attempt.read(context, at, &mut copy)
    }

    fn read_at_once(
        attempt: &mut Self::Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        attempt.read_at_once(at, &mut copy)
    }

    fn read_for_update(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        attempt.read_for_update(context, at, &mut copy)
    }

    fn hold(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.hold(context, at)
    }

    fn peek(attempt: &Self::Attempt, at: CellAt) -> bool {
        attempt.peek(at)
    }

    fn assumes(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        attempt.assumes(context, at, exists)
    }

    fn is_older(attempt: &Self::Attempt, at: CellAt) -> bool {
        attempt.is_older(at)
    }

    fn chain_length(clock: &Self::Clock, attempt: &Self::Attempt, at: CellAt) -> Option<usize> {
        attempt.chain_length(&**clock, at)
    }

    fn mark(attempt: &mut Self::Attempt) -> usize {
        attempt.mark()
    }

    fn read_at_mark(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        mark: usize,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        attempt.read_at_mark(context, at, mark, &mut copy)
    }

    fn absent(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        attempt.absent(context, missing)
    }

    fn make_room(
        context: &mut Context<'_, Erased>,
        attempt: &Self::Attempt,
        table: &TableCore,
    ) -> Result<(), Abort> {
        attempt.make_room(context, table)
    }

    fn stage(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        attempt.stage(context, writes, at, intent, op)
    }

    fn stage_new(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        cells: impl Iterator<Item = CellAt> + Clone,
        operand: u32,
    ) -> Result<(), Abort> {
        attempt.stage_new(context, writes, &cells.collect::<Vec<_>>(), operand)
    }

    fn revalidate(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        attempt.revalidate(context, writes)
    }

    fn commit(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        attempt.commit(context, writes)
    }

    fn abort(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) {
        attempt.abort(context, writes);
    }

    fn validate_without_writes(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        attempt.validate_without_writes(context, writes, images)
    }

    fn init_absent_cell(clock: &Self::Clock, at: CellAt) {
        clock.init_absent_cell(at);
    }

    fn inherit_from_node(clock: &Self::Clock, node: NodeAt, at: CellAt) {
        clock.inherit_from_node(node, at);
    }

    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        attempt.linked(node, before, after, first);
    }

    fn divided(attempt: &mut Self::Attempt, change: &NodeChange) {
        attempt.divided(change);
    }

    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool {
        clock.enqueue_if_absent(first)
    }

    fn time(clock: &Self::Clock) -> u64 {
        clock.time()
    }

    fn node_seen_until(clock: &Self::Clock, node: NodeAt) -> u64 {
        clock.node_seen_until(node)
    }

    fn see_node_until(clock: &Self::Clock, node: NodeAt, time: u64) -> bool {
        clock.see_node_until(node, time)
    }

    fn seen_until(clock: &Self::Clock, at: CellAt) -> u64 {
        clock.seen_until(at)
    }

    fn reach(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        attempt.reach(context, time, table)
    }

    fn register_snapshot(
        clock: &Self::Clock,
        attempt: &Self::Attempt,
        since: Moment,
    ) -> Option<u64> {
        attempt.register_snapshot(&**clock, since)
    }

    fn unregister_snapshot(clock: &Self::Clock, time: u64, since: Moment) {
        clock.unregister_snapshot(time, since);
    }

    fn oldest_snapshot(clock: &Self::Clock) -> Option<(u64, Moment)> {
        clock.oldest_snapshot()
    }

    fn begin_collecting(context: &mut Context<'_, Erased>, until: u64) {
        context.clock.begin_collecting(context, until);
    }

    fn begin_burying(context: &mut Context<'_, Erased>) {
        context.clock.begin_burying(context);
    }

    fn look_at(context: &mut Context<'_, Erased>, put: &UndoEntry, table: &TableCore) -> Fate {
        context.clock.look_at(context, put, table)
    }

    fn end_looking(context: &mut Context<'_, Erased>) {
        context.clock.end_looking(context);
    }

    fn prefetch(clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        clock.prefetch(at, first, count);
    }

    fn approach(clock: &Self::Clock, due: impl Iterator<Item = CellAt> + Clone) {
        clock.approach(&due.collect::<Vec<_>>());
    }

    fn reap(
        context: &mut Context<'_, Erased>,
        due: &mut Due,
        table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        context.clock.reap(context, due, table, units, horizon)
    }

    fn detach_for_snapshots(
        context: &mut Context<'_, Erased>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        context.clock.detach_for_snapshots(context, due, table, units)
    }

    fn merge_into_node(clock: &Self::Clock, node: NodeAt, at: CellAt) {
        clock.merge_into_node(node, at);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use in_tests::choosing;

/// Tests that are about something else, once more with every function called through the table.
#[cfg(test)]
mod in_tests {
    use super::Chosen;
    use std::cell::RefCell;

    thread_local! {
        static CHOSEN: RefCell<Option<Chosen>> = const { RefCell::new(None) };
    }

    pub(super) fn chosen() -> Option<Chosen> {
        CHOSEN.with_borrow(Clone::clone)
    }

    /// Runs `body`; databases of [`Erased`](super::Erased) that it builds on this thread run this
    /// protocol if not told otherwise.
    pub(crate) fn choosing<T>(chosen: Chosen, body: impl FnOnce() -> T) -> T {
        CHOSEN.set(Some(chosen));
        let result = body();
        CHOSEN.set(None);
        result
    }
}
