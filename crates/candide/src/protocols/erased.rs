//! A protocol that is chosen when a database is built. Each function of `Protocol` is called
//! through a table of functions.
//!
//! # Guarantee
//! The guarantee of the chosen protocol: `Erased` adds, drops and reorders nothing.
//!
//! # Use
//! With `Erased`, code that is generic over the protocol is compiled once for all protocols. A
//! single read takes some 60 instructions more than under the protocol itself, so measurements name
//! their protocol statically.
//!
//! # Source
//! None. `Protocol` is the right place for type erasure, since its functions take cells and words,
//! and know no row type.

#![forbid(unsafe_code)]

use super::list::DefaultProtocol;
use crate::access::{ChangeSink, Failure, Intent, WriteSet};
use crate::engine::{
    Absence, Applied, Backlog, Committed, Context, Due, GcOutcome, InPlace, Missing, Parts,
    Properties, Protocol, Seen, TableCore, Versions,
};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::record::CellAt;
use crate::schema::{Op, Words};
use crate::stats::LockCounters;
use crate::sync::Instant;
use crate::timestamps::Timestamps;
use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A protocol that is chosen at run time, by [`Builder::policy`](crate::Builder::policy) or by
/// [`AnyDatabase::choose`](crate::any::AnyDatabase). The default is `Occ`.
///
/// Transactions are serializable as under the chosen protocol, but slower, since `Erased` calls
/// functions through pointers. Databases of `Erased` have no [snapshots](crate::Snapshot).
///
/// ```
/// use candide::any::{Chosen, Erased};
/// use candide::{Database, Mvto, Record};
///
/// #[derive(Record, Clone, Copy)]
/// struct Counter { #[key] id: u64, count: u64 }
///
/// let db = Database::<Erased>::builder().policy(Chosen::of::<Mvto>(())).build()?;
/// let counters = db.table::<Counter>("counters")?;
/// db.run(|tx| counters.insert(tx, Counter { id: 1, count: 7 }))?;
/// assert_eq!(db.run(|tx| counters.read(tx, 1, Counter::COUNT)), Ok(7));
/// assert_eq!(db.properties().name, "mvto");
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug)]
pub struct Erased;

/// A function that makes a database's part of a protocol.
type Make = dyn Fn(Timestamps, &Arc<Epochs>) -> Box<dyn Base> + Send + Sync;

/// A protocol and its policy, for [`Erased`] to run. `"mvcc".parse::<Chosen>()` chooses by name.
#[derive(Clone)]
pub struct Chosen {
    properties: Properties,
    make: Arc<Make>,
}

impl Chosen {
    /// Chooses protocol `P`, with a policy of `P`.
    pub fn of<P: Protocol>(policy: P::Policy) -> Chosen {
        Chosen {
            properties: P::properties(&policy),
            make: Arc::new(move |timestamps, epochs| {
                Box::new(BaseOf::<P>(P::clock(&policy, timestamps, epochs)))
            }),
        }
    }

    /// Returns the properties of databases that run the chosen protocol.
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
        Chosen::of::<DefaultProtocol>(Default::default())
    }
}

impl Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chosen").field(&self.properties.name).finish()
    }
}

/// The database's part of a protocol, with the protocol's functions that need no attempt.
pub trait Base: Any + Send + Sync + Debug {
    #[doc(hidden)]
    fn table_locks(&self) -> Option<Arc<dyn Any + Send + Sync>>;
    #[doc(hidden)]
    fn attempt(&self, counts: &Arc<LockCounters>) -> Box<dyn Running>;
    #[doc(hidden)]
    fn enter(&self, until: Option<Instant>) -> Result<(), Abort>;
    #[doc(hidden)]
    fn leave(&self);
    #[doc(hidden)]
    fn init_absent_cell(&self, at: CellAt, flags: u64);
    #[doc(hidden)]
    fn inherit_from_node(&self, node: NodeAt, at: CellAt);
    #[doc(hidden)]
    fn may_be_reaped(&self, first: CellAt) -> bool;
    #[doc(hidden)]
    fn keep(&self, context: &mut Context<'_, Erased>, first: CellAt) -> Result<bool, Abort>;
    #[doc(hidden)]
    fn enqueue_if_absent(&self, first: CellAt) -> bool;
    #[doc(hidden)]
    fn begin_ts_bound(&self) -> u64;
    #[doc(hidden)]
    fn cut(&self, epochs: &Epochs) -> u64;
    #[doc(hidden)]
    fn last_stamp(&self, epochs: &Epochs) -> u64;
    #[doc(hidden)]
    fn node_rts(&self, node: NodeAt) -> u64;
    #[doc(hidden)]
    fn raise_node_rts(&self, node: NodeAt, time: u64) -> bool;
    #[doc(hidden)]
    fn rts(&self, at: CellAt) -> u64;
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
    fn begin_walk(&self, context: &mut Context<'_, Erased>);
    #[doc(hidden)]
    fn collect(
        &self,
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    );
    #[doc(hidden)]
    fn open_snapshot(&self, since: Moment) -> u64;
    #[doc(hidden)]
    fn close_snapshot(&self, ts: u64, since: Moment);
    #[doc(hidden)]
    fn end_walk(&self, context: &mut Context<'_, Erased>);
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

/// The session's part of a protocol, with the protocol's functions that work on an attempt.
pub trait Running: Send {
    #[doc(hidden)]
    fn begin(&mut self, context: &mut Context<'_, Erased>);
    #[doc(hidden)]
    fn has_failed(&self) -> bool;
    #[doc(hidden)]
    fn has_changed(&self) -> bool;
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
    fn lock_ahead(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort>;
    #[doc(hidden)]
    fn lock_place(&self, context: &mut Context<'_, Erased>, at: CellAt) -> Option<u64>;
    #[doc(hidden)]
    fn is_present(&self, at: CellAt) -> bool;
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
    fn applied(&self) -> Applied;
    #[doc(hidden)]
    fn failure_since(&mut self, since: Applied) -> Result<(), Failure>;
    #[doc(hidden)]
    fn fail(&mut self, abort: Abort) -> bool;
    #[doc(hidden)]
    fn undo_to(&mut self, to: Applied);
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
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort>;
    #[doc(hidden)]
    fn changes(&self, writes: &WriteSet, sink: &mut dyn ChangeSink);
    #[doc(hidden)]
    fn seen_stamp(&self, base: &dyn Base, epochs: &Epochs) -> u64;
    #[doc(hidden)]
    fn read_set_size(&self) -> usize;
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

/// The [`SessionVersions`](crate::engine::Parts) of the chosen protocol; empty until that protocol
/// has asked for them.
#[derive(Debug, Default)]
pub struct ErasedSession(Option<Box<dyn Session>>);

/// The [`Backlog`](crate::engine::Backlog) of the chosen protocol; empty until that protocol has
/// asked for it.
#[derive(Debug, Default)]
pub struct ErasedBacklog(Option<Box<dyn Waiting>>);

/// The functions of a protocol that work on a session's data about old versions.
trait Session: Any + Send + Debug {
    fn leaves_some(&self) -> bool;
    fn leave_behind(
        &mut self,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize;
}

/// The functions of a protocol that work on its [`Backlog`](crate::engine::Backlog).
trait Waiting: Any + Send + Debug {
    fn is_empty(&self) -> bool;
    fn len(&self) -> usize;
    fn is_due(&self, horizon: Epoch) -> bool;
    fn has_to_collect(&self, horizon: Epoch) -> bool;
    fn take_over(&mut self, left: Box<dyn Waiting>) -> usize;
    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64));
    fn has_released(&self) -> bool;
    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>);
}

/// A session's data about old versions, under protocol `P`.
#[derive(Debug)]
struct SessionOf<P: Protocol>(P::SessionVersions);

/// A backlog of protocol `P`.
#[derive(Debug)]
struct WaitingOf<P: Protocol>(P::Backlog);

impl ErasedSession {
    /// Returns the session's data of `P`, the chosen protocol.
    fn of<P: Protocol>(&mut self) -> &mut P::SessionVersions {
        let make = || -> Box<dyn Session> { Box::new(SessionOf::<P>(Default::default())) };
        let session: &mut dyn Any = &mut **self.0.get_or_insert_with(make);
        &mut session.downcast_mut::<SessionOf<P>>().expect("a session runs one protocol").0
    }
}

impl ErasedBacklog {
    /// Returns the backlog of `P`, the chosen protocol.
    fn of<P: Protocol>(&mut self) -> &mut P::Backlog {
        let make = || -> Box<dyn Waiting> { Box::new(WaitingOf::<P>(Default::default())) };
        let backlog: &mut dyn Any = &mut **self.0.get_or_insert_with(make);
        &mut backlog.downcast_mut::<WaitingOf<P>>().expect("a session runs one protocol").0
    }
}

impl Backlog for ErasedBacklog {
    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|backlog| backlog.is_empty())
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |backlog| backlog.len())
    }

    fn is_due(&self, horizon: Epoch) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.is_due(horizon))
    }

    fn take_over(&mut self, left: ErasedBacklog) -> usize {
        match (&mut self.0, left.0) {
            (_, None) => 0,
            (Some(backlog), Some(left)) => backlog.take_over(left),
            (None, Some(left)) => {
                let count = left.len();
                self.0 = Some(left);
                count
            }
        }
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64)) {
        let backlog = self.0.as_mut().expect("a collection has asked for it");
        backlog.park(snapshot, at, queued);
    }

    fn has_released(&self) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.has_released())
    }

    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        if let Some(backlog) = &mut self.0 {
            backlog.take_released(before, most, into);
        }
    }
}

impl<P: Protocol> Session for SessionOf<P> {
    fn leaves_some(&self) -> bool {
        P::Versions::leaves_some(&self.0)
    }

    fn leave_behind(
        &mut self,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        P::Versions::leave_behind(&mut self.0, epochs, backlog.of::<P>(), queued)
    }
}

impl<P: Protocol> Waiting for WaitingOf<P> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_due(&self, horizon: Epoch) -> bool {
        self.0.is_due(horizon)
    }

    fn has_to_collect(&self, horizon: Epoch) -> bool {
        P::Versions::has_to_collect(&self.0, horizon)
    }

    fn take_over(&mut self, left: Box<dyn Waiting>) -> usize {
        let left: Box<dyn Any> = left;
        let left = left.downcast::<WaitingOf<P>>().expect("a database runs one protocol");
        self.0.take_over(left.0)
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64)) {
        self.0.park(snapshot, at, queued);
    }

    fn has_released(&self) -> bool {
        self.0.has_released()
    }

    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        self.0.take_released(before, most, into);
    }
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

/// Returns the clock in `base` as the clock of `P`. The types match, since the database of `base`
/// has made the attempt.
fn clock<P: Protocol>(base: &dyn Base) -> &P::Clock {
    let base: &dyn Any = base;
    &base.downcast_ref::<BaseOf<P>>().expect("an attempt and its database are of one protocol").0
}

/// Returns the context for the inner protocol.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Erased>) -> Context<'a, P> {
    Context {
        engine: context.engine,
        clock: clock::<P>(&**context.clock),
        local: context.local,
        versions: context.versions.of::<P>(),
    }
}

impl<P: Protocol> Base for BaseOf<P> {
    fn table_locks(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        P::table_locks(&self.0)
    }

    fn attempt(&self, counts: &Arc<LockCounters>) -> Box<dyn Running> {
        Box::new(RunningOf::<P>(P::attempt(&self.0, counts)))
    }

    fn enter(&self, until: Option<Instant>) -> Result<(), Abort> {
        P::InPlace::enter(&self.0, until)
    }

    fn leave(&self) {
        P::InPlace::leave(&self.0);
    }

    fn init_absent_cell(&self, at: CellAt, flags: u64) {
        P::init_absent_cell(&self.0, at, flags);
    }

    fn inherit_from_node(&self, node: NodeAt, at: CellAt) {
        P::inherit_from_node(&self.0, node, at);
    }

    fn may_be_reaped(&self, first: CellAt) -> bool {
        P::may_be_reaped(&self.0, first)
    }

    fn keep(&self, context: &mut Context<'_, Erased>, first: CellAt) -> Result<bool, Abort> {
        P::keep(&mut inner(context), first)
    }

    fn enqueue_if_absent(&self, first: CellAt) -> bool {
        P::enqueue_if_absent(&self.0, first)
    }

    fn begin_ts_bound(&self) -> u64 {
        P::begin_ts_bound(&self.0)
    }

    fn cut(&self, epochs: &Epochs) -> u64 {
        P::cut(&self.0, epochs)
    }

    fn last_stamp(&self, epochs: &Epochs) -> u64 {
        P::last_stamp(&self.0, epochs)
    }

    fn node_rts(&self, node: NodeAt) -> u64 {
        P::node_rts(&self.0, node)
    }

    fn raise_node_rts(&self, node: NodeAt, time: u64) -> bool {
        P::raise_node_rts(&self.0, node, time)
    }

    fn rts(&self, at: CellAt) -> u64 {
        P::rts(&self.0, at)
    }

    fn unregister_snapshot(&self, time: u64, since: Moment) {
        P::Versions::unregister_snapshot(&self.0, time, since);
    }

    fn oldest_snapshot(&self) -> Option<(u64, Moment)> {
        P::Versions::oldest_snapshot(&self.0)
    }

    fn prefetch(&self, at: CellAt, first: usize, count: usize) {
        P::prefetch(&self.0, at, first, count);
    }

    fn approach(&self, due: &[CellAt]) {
        P::Versions::approach(&self.0, due.iter().copied());
    }

    fn merge_into_node(&self, node: NodeAt, at: CellAt) {
        P::merge_into_node(&self.0, node, at);
    }

    fn begin_walk(&self, context: &mut Context<'_, Erased>) {
        P::Versions::begin_walk(&mut inner(context));
    }

    fn collect(
        &self,
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        let backlog = backlog.of::<P>();
        P::Versions::collect(&mut inner(context), backlog, tables, horizon, budget);
    }

    fn open_snapshot(&self, since: Moment) -> u64 {
        P::Versions::open_snapshot(&self.0, since)
    }

    fn close_snapshot(&self, ts: u64, since: Moment) {
        P::Versions::close_snapshot(&self.0, ts, since);
    }

    fn end_walk(&self, context: &mut Context<'_, Erased>) {
        P::Versions::end_walk(&mut inner(context));
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
        P::Versions::detach_for_snapshots(&mut inner(context), due, table, units)
    }
}

impl<P: Protocol> Running for RunningOf<P> {
    fn begin(&mut self, context: &mut Context<'_, Erased>) {
        P::begin(&mut inner(context), &mut self.0);
    }

    fn has_failed(&self) -> bool {
        P::InPlace::has_failed(&self.0)
    }

    fn has_changed(&self) -> bool {
        P::InPlace::has_changed(&self.0)
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

    fn lock_ahead(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort> {
        P::lock_ahead(&mut inner(context), &mut self.0, at, writes)
    }

    fn lock_place(&self, context: &mut Context<'_, Erased>, at: CellAt) -> Option<u64> {
        P::lock_place(&mut inner(context), &self.0, at)
    }

    fn is_present(&self, at: CellAt) -> bool {
        P::is_present(&self.0, at)
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
        P::Versions::is_older(&self.0, at)
    }

    fn chain_length(&self, base: &dyn Base, at: CellAt) -> Option<usize> {
        match P::Versions::WORDS {
            0 => P::is_present(&self.0, at).then_some(1),
            _ => P::Versions::chain_length(clock::<P>(base), &self.0, at),
        }
    }

    fn mark(&mut self) -> usize {
        P::InPlace::mark(&mut self.0)
    }

    fn applied(&self) -> Applied {
        P::InPlace::applied(&self.0)
    }

    fn failure_since(&mut self, since: Applied) -> Result<(), Failure> {
        P::InPlace::failure_since(&mut self.0, since)
    }

    fn fail(&mut self, abort: Abort) -> bool {
        P::InPlace::fail(&mut self.0, abort)
    }

    fn undo_to(&mut self, to: Applied) {
        P::InPlace::undo_to(&mut self.0, to);
    }

    fn read_at_mark(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        mark: usize,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        match P::InPlace::APPLIES_AT_ONCE {
            true => P::InPlace::read_at_mark(&mut inner(context), &mut self.0, at, mark, copy),
            false => P::read(&mut inner(context), &mut self.0, at, copy),
        }
    }

    fn absent(
        &mut self,
        context: &mut Context<'_, Erased>,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        P::absent(&mut inner(context), &mut self.0, missing)
    }

    fn make_room(&self, context: &mut Context<'_, Erased>, table: &TableCore) -> Result<(), Abort> {
        P::Versions::make_room(&mut inner(context), &self.0, table)
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
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        P::commit(&mut inner(context), &mut self.0, writes, turn)
    }

    fn changes(&self, writes: &WriteSet, mut sink: &mut dyn ChangeSink) {
        P::changes(&self.0, writes, &mut sink);
    }

    fn seen_stamp(&self, base: &dyn Base, epochs: &Epochs) -> u64 {
        P::seen_stamp(clock::<P>(base), epochs, &self.0)
    }

    fn read_set_size(&self) -> usize {
        P::read_set_size(&self.0)
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
        P::Versions::register_snapshot(clock::<P>(base), &self.0, since)
    }
}

impl Parts for Erased {
    type Policy = Chosen;
    type Clock = Box<dyn Base>;
    type Attempt = Box<dyn Running>;
    type SessionVersions = ErasedSession;
    type Backlog = ErasedBacklog;
}

impl Protocol for Erased {
    const NAME: &'static str = "erased";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = 0;
    const NODE_WORDS: usize = 0;
    type Versions = Self;
    type InPlace = Self;

    fn properties(policy: &Chosen) -> Properties {
        policy.properties
    }

    fn clock(policy: &Chosen, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock {
        (policy.make)(timestamps, epochs)
    }

    fn table_locks(clock: &Self::Clock) -> Option<Arc<dyn Any + Send + Sync>> {
        clock.table_locks()
    }

    fn attempt(clock: &Self::Clock, counts: &Arc<LockCounters>) -> Self::Attempt {
        clock.attempt(counts)
    }

    fn begin(context: &mut Context<'_, Erased>, attempt: &mut Self::Attempt) {
        attempt.begin(context);
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

    fn lock_ahead(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort> {
        attempt.lock_ahead(context, at, writes)
    }

    fn lock_place(
        context: &mut Context<'_, Erased>,
        attempt: &Self::Attempt,
        at: CellAt,
    ) -> Option<u64> {
        attempt.lock_place(context, at)
    }

    fn is_present(attempt: &Self::Attempt, at: CellAt) -> bool {
        attempt.is_present(at)
    }

    fn assumes(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        attempt.assumes(context, at, exists)
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
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        attempt.commit(context, writes, turn)
    }

    fn changes(attempt: &Self::Attempt, writes: &WriteSet, sink: &mut impl ChangeSink) {
        attempt.changes(writes, sink);
    }

    fn cut(clock: &Self::Clock, epochs: &Epochs) -> u64 {
        clock.cut(epochs)
    }

    fn last_stamp(clock: &Self::Clock, epochs: &Epochs) -> u64 {
        clock.last_stamp(epochs)
    }

    fn seen_stamp(clock: &Self::Clock, epochs: &Epochs, attempt: &Self::Attempt) -> u64 {
        attempt.seen_stamp(&**clock, epochs)
    }

    fn read_set_size(attempt: &Self::Attempt) -> usize {
        attempt.read_set_size()
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

    fn begin_ts_bound(clock: &Self::Clock) -> u64 {
        clock.begin_ts_bound()
    }

    fn reach(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        time: u64,
        table: u16,
    ) -> Result<(), Abort> {
        attempt.reach(context, time, table)
    }

    fn prefetch(clock: &Self::Clock, at: CellAt, first: usize, count: usize) {
        clock.prefetch(at, first, count);
    }
}

impl Absence for Erased {
    fn absent(
        context: &mut Context<'_, Erased>,
        attempt: &mut Self::Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        attempt.absent(context, missing)
    }

    fn init_absent_cell(clock: &Self::Clock, at: CellAt, flags: u64) {
        clock.init_absent_cell(at, flags);
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

    fn may_be_reaped(clock: &Self::Clock, first: CellAt) -> bool {
        clock.may_be_reaped(first)
    }

    fn keep(context: &mut Context<'_, Erased>, first: CellAt) -> Result<bool, Abort> {
        context.clock.keep(context, first)
    }

    fn enqueue_if_absent(clock: &Self::Clock, first: CellAt) -> bool {
        clock.enqueue_if_absent(first)
    }

    fn node_rts(clock: &Self::Clock, node: NodeAt) -> u64 {
        clock.node_rts(node)
    }

    fn raise_node_rts(clock: &Self::Clock, node: NodeAt, time: u64) -> bool {
        clock.raise_node_rts(node, time)
    }

    fn rts(clock: &Self::Clock, at: CellAt) -> u64 {
        clock.rts(at)
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

    fn merge_into_node(clock: &Self::Clock, node: NodeAt, at: CellAt) {
        clock.merge_into_node(node, at);
    }
}

impl InPlace<Erased> for Erased {
    // True because some protocols apply writes at once.
    const APPLIES_AT_ONCE: bool = true;

    fn enter(clock: &Box<dyn Base>, until: Option<Instant>) -> Result<(), Abort> {
        clock.enter(until)
    }

    fn leave(clock: &Box<dyn Base>) {
        clock.leave();
    }

    fn has_failed(attempt: &Box<dyn Running>) -> bool {
        attempt.has_failed()
    }

    fn has_changed(attempt: &Box<dyn Running>) -> bool {
        attempt.has_changed()
    }

    fn mark(attempt: &mut Box<dyn Running>) -> usize {
        attempt.mark()
    }

    fn applied(attempt: &Box<dyn Running>) -> Applied {
        attempt.applied()
    }

    fn failure_since(attempt: &mut Box<dyn Running>, since: Applied) -> Result<(), Failure> {
        attempt.failure_since(since)
    }

    fn fail(attempt: &mut Box<dyn Running>, abort: Abort) -> bool {
        attempt.fail(abort)
    }

    fn undo_to(attempt: &mut Box<dyn Running>, to: Applied) {
        attempt.undo_to(to);
    }

    fn read_at_mark(
        context: &mut Context<'_, Erased>,
        attempt: &mut Box<dyn Running>,
        at: CellAt,
        mark: usize,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        attempt.read_at_mark(context, at, mark, &mut copy)
    }
}

impl Versions<Erased> for Erased {
    // Set because some protocols keep versions and move records to the index of deleted records.
    const WORDS: usize = 1;
    const KEEPS_DELETED_INDEX: bool = true;

    fn is_older(attempt: &Box<dyn Running>, at: CellAt) -> bool {
        attempt.is_older(at)
    }

    fn chain_length(
        clock: &Box<dyn Base>,
        attempt: &Box<dyn Running>,
        at: CellAt,
    ) -> Option<usize> {
        attempt.chain_length(&**clock, at)
    }

    fn make_room(
        context: &mut Context<'_, Erased>,
        attempt: &Box<dyn Running>,
        table: &TableCore,
    ) -> Result<(), Abort> {
        attempt.make_room(context, table)
    }

    fn register_snapshot(
        clock: &Box<dyn Base>,
        attempt: &Box<dyn Running>,
        since: Moment,
    ) -> Option<u64> {
        attempt.register_snapshot(&**clock, since)
    }

    fn unregister_snapshot(clock: &Box<dyn Base>, time: u64, since: Moment) {
        clock.unregister_snapshot(time, since);
    }

    fn oldest_snapshot(clock: &Box<dyn Base>) -> Option<(u64, Moment)> {
        clock.oldest_snapshot()
    }

    fn begin_walk(context: &mut Context<'_, Erased>) {
        context.clock.begin_walk(context);
    }

    fn end_walk(context: &mut Context<'_, Erased>) {
        context.clock.end_walk(context);
    }

    fn approach(clock: &Box<dyn Base>, due: impl Iterator<Item = CellAt> + Clone) {
        clock.approach(&due.collect::<Vec<_>>());
    }

    fn detach_for_snapshots(
        context: &mut Context<'_, Erased>,
        due: &Due,
        table: &TableCore,
        units: &[CellAt],
    ) -> bool {
        context.clock.detach_for_snapshots(context, due, table, units)
    }

    fn open_snapshot(clock: &Box<dyn Base>, since: Moment) -> u64 {
        clock.open_snapshot(since)
    }

    fn close_snapshot(clock: &Box<dyn Base>, ts: u64, since: Moment) {
        clock.close_snapshot(ts, since);
    }

    fn leaves_some(session: &ErasedSession) -> bool {
        session.0.as_ref().is_some_and(|session| session.leaves_some())
    }

    fn leave_behind(
        session: &mut ErasedSession,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        session.0.as_mut().map_or(0, |session| session.leave_behind(epochs, backlog, queued))
    }

    fn has_to_collect(backlog: &ErasedBacklog, horizon: Epoch) -> bool {
        backlog.0.as_ref().is_some_and(|backlog| backlog.has_to_collect(horizon))
    }

    fn collect(
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        context.clock.collect(context, backlog, tables, horizon, budget);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use in_tests::choosing;

/// Support for repeating other tests with every function called through the table.
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

    /// Runs `body`. Databases of [`Erased`](super::Erased) that `body` builds on this thread run
    /// the protocol `chosen`, unless `body` sets another policy.
    pub(crate) fn choosing<T>(chosen: Chosen, body: impl FnOnce() -> T) -> T {
        CHOSEN.set(Some(chosen));
        let result = body();
        CHOSEN.set(None);
        result
    }
}
