//! The locks that an attempt takes before phase 1 of its commit: cells that reads for update hold,
//! and locks by the policies of tables. This file is the only door of `occ` to the policies.
//!
//! Two flags in a cell's TID word make a reader ([`READER_ASKS`]) or a writer of the cell ask a
//! policy first. Without these flags a cell is read and written as in the other files of `occ`.
//! Locks by policy are hints (LK1): no proof needs them.

#![forbid(unsafe_code)]

use crate::access::steps::InChain;
use crate::access::{WriteItem, WriteSet, steps};
use crate::engine::own_thread::{self, Held};
use crate::engine::{Common as Base, Context, Protocol};
use crate::epoch::Epochs;
use crate::error::Abort;
use crate::locks::{
    CallWish, Grant, HeldCells, Link, LockBase, Locker, Mode, Pipeline, RANGE, RASK, RowLocks,
    SessionLocks, WASK, end_want, following, learn, lock_place, want_end, with_flags,
};
use crate::policy::Policy;
use crate::protocols::shared::cell_lock::{raise_install, release_cell};
use crate::protocols::shared::node_set::NodeSet;
use crate::record::{CellAt, Tid};
use crate::stats::{LockCount, LockCounters};
use crate::sync::{Duration, Ordering, Patience, Wait, Waited, Wish, patience as prolonged};
use std::sync::Arc;

pub(super) use crate::locks::{
    Early, FLAGS, FROZEN, Hold, SharedLocks, When, forget_frozen, init_lock, patience,
};

/// The flag of a TID word with which a read first calls [`EarlyLocks::before_read`].
pub(super) const READER_ASKS: u64 = RASK;
/// The flags that stay in a TID word when a commit replaces its version.
pub(super) const KEPT: u64 = FLAGS | FROZEN;
/// The flag of a TID word with which a commit first calls [`Early::before_lock`].
pub(super) const WRITER_ASKS: u64 = WASK;
/// The longest time that a commit waits for the holder of the token before it locks in a pipeline.
const TOKEN_WAIT_MAX: Duration = Duration::from_millis(100);

/// The protocol's part of a database.
#[derive(Debug)]
pub struct Shared {
    pub(super) epochs: Arc<Epochs>,
    pub(super) locks: Arc<SharedLocks>,
}

/// The locks that an attempt has taken before phase 1, and those that phase 1 has taken by policy;
/// none between attempts. Its functions do not name [`Occ`](super::Occ), whose attempts contain it:
/// they are generic over the protocol, so that this file and `mod.rs` do not need one another.
#[derive(Debug)]
pub(super) struct EarlyLocks {
    /// The cells that reads for update have locked.
    held: HeldCells,
    by_policy: RowLocks,
    own: SessionLocks,
    pipeline: Pipeline,
}

impl EarlyLocks {
    pub(super) fn new(clock: &Shared, counts: &Arc<LockCounters>) -> EarlyLocks {
        EarlyLocks {
            held: HeldCells::default(),
            by_policy: RowLocks::default(),
            own: SessionLocks::new(&clock.locks, counts),
            pipeline: Pipeline::default(),
        }
    }

    /// Returns whether the attempt has locked nothing, and no other session sees that it may lock.
    pub(super) fn is_unused(&self) -> bool {
        self.held.is_empty() && self.by_policy.is_unused()
    }

    /// Returns the cells that the attempt holds.
    pub(super) fn held_cells(&self) -> &HeldCells {
        &self.held
    }

    /// Asks the policy of a cell's table for the lock for reading.
    ///
    /// # Errors
    /// The conflict, if the attempt must abort by the policy.
    pub(super) fn before_read<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) -> Result<(), Abort> {
        self.ask(context, at, (Mode::Read, When::Now))
    }

    /// Asks the policy of a cell's table for the lock for writing, if the cell's flag is set.
    /// `reads` is the read set.
    ///
    /// # Errors
    /// The conflict, if the attempt must abort by the policy, or if the attempt has waited and the
    /// cell does not have the version that was read.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn before_write<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        at: CellAt,
        when: When,
    ) -> Result<(), Abort> {
        // Relaxed: without the lock, nothing but time is lost.
        if Tid(at.cell_word(0).load(Ordering::Relaxed)).has(WASK) {
            self.ask_to_write(context, reads, at, when)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn ask_to_write<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        at: CellAt,
        when: When,
    ) -> Result<(), Abort> {
        // Other writers are about to wait for this attempt.
        if let Err(yielded) = context.yield_to_token() {
            // The commit in a pipeline locks the row, and yields to the token before.
            let locks_later = when == When::Staging && is_pipelined(base(context), at);
            return if locks_later { Ok(()) } else { Err(yielded) };
        }
        self.ask(context, at, (Mode::Write, when))?;
        // A closure that continues with a row that has changed while the attempt waited would run
        // without success, unless it has read of the row only that a number is in a range.
        let is_read =
            |&&(read, seen): &&(CellAt, Tid)| read.address() == at.address() && !seen.has(RANGE);
        let seen = || reads.iter().rev().find(is_read);
        if self.by_policy.has_waited()
            && let Some(&(_, seen)) = seen()
            && !Tid(at.cell_word(0).load(Ordering::Relaxed)).same_version(seen)
        {
            return Err(context.conflict(Abort::ReadChanged, at));
        }
        Ok(())
    }

    fn ask<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        lock: (Mode, When),
    ) -> Result<(), Abort> {
        let EarlyLocks { held, by_policy, own, .. } = self;
        let grant = by_policy.ask(&mut locker(context, own), at, lock, held.has_cells());
        held.note_others(by_policy.holds_any());
        grant.map(drop).map_err(|abort| context.conflict(abort, at))
    }

    /// Begins a read for update of a cell. Returns whether the attempt already has the row's lock;
    /// if not, [`EarlyLocks::hold`] locks the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn before_read_for_update<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        at: CellAt,
    ) -> Result<bool, Abort> {
        if let Err(abort) = self.before_write(context, reads, at, When::Now) {
            if abort == Abort::Locked {
                self.held.want(context, at);
            }
            return Err(abort);
        }
        Ok(self.held.has(at) || self.by_policy.keeps_from_writers(base(context), at))
    }

    /// Locks a cell if its row exists (CL4). Returns the cell's word from before the lock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn hold<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) -> Result<Tid, Abort> {
        self.held.hold(context, at, || self.by_policy.renew_wish(at))
    }

    /// Locks a cell before the closure runs, as a read for update locks it. Returns whether the
    /// cell is held afterwards.
    #[inline]
    pub(super) fn hold_ahead<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        at: CellAt,
    ) -> Result<bool, Abort> {
        self.before_write(context, reads, at, When::Ahead)?;
        self.held.hold_once(context, at, || self.by_policy.renew_wish(at))
    }

    /// Takes the lock by policy of a cell before the closure runs, for writing or for reading.
    pub(super) fn lock_ahead<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort> {
        let mode = if writes { Mode::Write } else { Mode::Read };
        let grant = self.by_policy.lock_ahead(&mut locker(context, &mut self.own), at, mode);
        self.held.note_others(self.by_policy.holds_any());
        grant.map(drop)
    }

    /// Returns whether the commit may have to lock before phase 1, by
    /// [`EarlyLocks::begin_pipeline`] or [`EarlyLocks::lock_writes`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn locks_before_phase_1<P: Protocol<Clock = Shared>>(
        &self,
        context: &Context<'_, P>,
        writes: &WriteSet,
    ) -> bool {
        // Relaxed: a row that becomes locked later is met in phase 1.
        let asks = |item: &WriteItem| Tid(item.at.cell_word(0).load(Ordering::Relaxed)).has(WASK);
        context.clock.locks.policies.lock_before_phase_1() && writes.items().iter().any(asks)
    }

    /// Takes the locks of the write set by policy, under policies that wait in the order of
    /// addresses.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_writes<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        (reads, nodes): (&[(CellAt, Tid)], &NodeSet),
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        context.yield_to_token()?;
        let EarlyLocks { held, by_policy, own, .. } = self;
        let locker = &mut locker(context, own);
        let observed = (reads, !reads.is_empty() || !nodes.is_empty());
        let locked = by_policy.lock_writes(locker, observed, writes, held.has_cells());
        held.note_others(by_policy.holds_any());
        locked.map_err(|(abort, at)| context.conflict(abort, at))
    }

    /// Ends an attempt that has committed or not: learns from its conflict, under policies that do
    /// so, and releases all locks that the attempt still holds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn after<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        writes: &WriteSet,
        has_committed: bool,
    ) {
        if !has_committed
            && context.clock.locks.policies.learns()
            && context.local.conflict.is_some()
        {
            self.learn(context, reads, writes);
        }
        if !self.held.is_empty() {
            self.give_back(context, writes, has_committed);
        }
    }

    /// Returns where sessions sleep until the lock of a cell is released. Does the work of
    /// [`Protocol::lock_place`].
    pub(super) fn place<P: Protocol<Clock = Shared>>(
        &self,
        context: &Context<'_, P>,
        at: CellAt,
    ) -> Option<u64> {
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return None;
        }
        if tid.has(Tid::LOCK) && !own_thread::is_held_by_another(at, context.local.id) {
            if tid.has(WASK) {
                // Until `end_wait`.
                want_end(at);
            }
            return Some(at.address());
        }
        lock_place(base(context), self.own.desk(), at)
    }

    /// Returns whether a commit alone finds out whether the row of a cell exists.
    pub(super) fn finds_existence<P: Protocol<Clock = Shared>>(
        context: &Context<'_, P>,
        at: CellAt,
    ) -> bool {
        // Relaxed: an operation may follow the table's policy of before.
        Tid(at.cell_word(0).load(Ordering::Relaxed)).has(WASK)
            && at.cell_words() == 2
            && is_pipelined(base(context), at)
    }

    /// Ends a wait that [`EarlyLocks::place`] has begun.
    pub(super) fn end_wait<P: Protocol<Clock = Shared>>(context: &Context<'_, P>, at: CellAt) {
        end_want(context.engine, at);
    }

    #[cold]
    fn learn<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        reads: &[(CellAt, Tid)],
        writes: &WriteSet,
    ) {
        learn(&mut locker(context, &mut self.own), &self.by_policy, reads, writes);
    }

    #[cold]
    #[inline(never)]
    fn give_back<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        writes: &WriteSet,
        has_committed: bool,
    ) {
        self.held.give_back(context, release_held);
        if has_committed && context.clock.locks.policies.learns() {
            self.by_policy.note_preferences(base(context), writes);
        }
        self.by_policy.release_all(&mut locker(context, &mut self.own), writes.items());
    }
}

/// Commits in a pipeline (`pipeline`).
impl EarlyLocks {
    /// Begins to commit in a pipeline, when no other session has the token. Returns `None`, and has
    /// done nothing, if the commit must not or need not. `has_late_rows` is whether it finds keys
    /// of rows: their records have no rank yet.
    #[cold]
    pub(super) fn begin_pipeline<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        writes: &WriteSet,
        has_late_rows: bool,
    ) -> Option<InChain> {
        if !writes.items().iter().any(|item| is_pipelined(base(context), item.at)) {
            return None;
        }
        let in_chain = self.begin_chains(context, writes, has_late_rows);
        in_chain.inspect_err(|&reason| self.count(reason)).ok()
    }

    /// Begins to commit in a pipeline. Otherwise returns the reason.
    fn begin_chains<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        writes: &WriteSet,
        has_late_rows: bool,
    ) -> Result<InChain, LockCount> {
        if self.held.has_cells() || self.by_policy.holds_any() {
            return Err(LockCount::UnchainedHolds); // PL6
        }
        if has_late_rows {
            return Err(LockCount::UnchainedLate);
        }
        let (engine, session) = (context.engine, context.local.id);
        let must_yield = engine.token.is_others(session) && !context.local.has_yielded;
        if must_yield && Held::Token(engine.id).is_own_threads() {
            // The commit without a pipeline is refused, since it would wait for its own thread.
            return Err(LockCount::UnchainedOthers);
        }
        let in_chain = steps::enter_chains().ok_or(LockCount::UnchainedOthers)?;
        let locker = &mut locker(context, &mut self.own);
        if !self.pipeline.begin(locker, &mut self.by_policy, writes) {
            // The desk may show the attempt.
            self.held.note_others(false);
            return Err(LockCount::UnchainedOthers);
        }
        if must_yield {
            await_token(context);
        }
        Ok(in_chain)
    }

    /// Waits before a link in a table until no other session has the token, for a limited time.
    /// Returns false, and has not waited, if the table's rows are not locked in chains, the attempt
    /// holds something, or the thread would wait for itself.
    #[cold]
    pub(super) fn waits_to_link<P: Protocol<Clock = Shared>>(
        &self,
        context: &mut Context<'_, P>,
        table: u16,
    ) -> bool {
        let holds_nothing = !self.held.has_cells() && !self.by_policy.holds_any();
        let waits = holds_nothing
            && base(context).locks.policies.of(table) == Policy::Pipelined
            && !Held::Token(context.engine.id).is_own_threads();
        if waits {
            await_token(context);
        }
        waits
    }

    /// Returns whether the commit of an attempt that has read nothing may compute the keys of rows
    /// of a table.
    pub(super) fn finds_keys_late<P: Protocol<Clock = Shared>>(
        &self,
        context: &Context<'_, P>,
        table: u16,
    ) -> bool {
        !self.held.has_cells()
            && !self.by_policy.holds_any()
            && !context.local.wanted.gives_up_locks()
            && base(context).locks.policies.of(table) == Policy::Pipelined
    }

    /// Returns the rank of a table.
    pub(super) fn rank_of<P: Protocol<Clock = Shared>>(
        &self,
        context: &Context<'_, P>,
        table: u16,
    ) -> u16 {
        base(context).locks.policies.rank_of(table)
    }

    /// Returns whether the ranks of the tables of all links are below `rank`.
    pub(super) fn are_below(&self, rank: u16) -> bool {
        self.pipeline.are_below(rank)
    }

    /// Keeps the attempt from showing that it has passed the rank of any row in a table of this
    /// rank or a higher one; `None` if there are no more links to come.
    pub(super) fn set_ceiling(&mut self, rank: Option<u16>) {
        self.pipeline.set_ceiling(rank);
    }

    /// Makes room for this number of links in all.
    pub(super) fn reserve_links(&mut self, links: usize) {
        self.pipeline.reserve(links);
    }

    /// Adds the links of items, of which the first has the number `from`.
    pub(super) fn add_links<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        items: &[WriteItem],
        from: usize,
    ) {
        self.pipeline.add_links(&locker(context, &mut self.own), items, from);
    }

    pub(super) fn links(&self) -> &[Link] {
        self.pipeline.links()
    }

    /// Waits at the gate of a link; see [`Pipeline::approach`].
    pub(super) fn approach<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        number: usize,
    ) -> bool {
        self.pipeline.approach(&locker(context, &mut self.own), number)
    }

    /// Locks the cell of a link; see [`Pipeline::take`].
    pub(super) fn take<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        number: usize,
        item: &mut WriteItem,
    ) -> Result<(), Abort> {
        self.pipeline.take(&mut locker(context, &mut self.own), number, item)
    }

    /// Notes that the TID word of a link's cell is locked, without a chain.
    pub(super) fn note_alone(&mut self, number: usize) {
        self.pipeline.note_alone(number);
    }

    /// Hands the lock of a link on; see [`Pipeline::hand_on`].
    pub(super) fn hand_on<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        number: usize,
    ) {
        self.pipeline.hand_on(&locker(context, &mut self.own), number);
    }

    /// Shows that the attempt has locked everything; see [`Pipeline::raise`].
    pub(super) fn end_locking<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
    ) {
        self.pipeline.raise(&locker(context, &mut self.own));
    }

    /// Waits until the predecessors are done with the items that the attempt has taken over.
    pub(super) fn await_done<P: Protocol<Clock = Shared>>(&mut self, context: &mut Context<'_, P>) {
        self.pipeline.await_done(&locker(context, &mut self.own));
    }

    /// Shows that the attempt is done with all items.
    pub(super) fn note_done<P: Protocol<Clock = Shared>>(&mut self, context: &mut Context<'_, P>) {
        self.pipeline.note_done(&locker(context, &mut self.own));
    }

    /// Waits until all predecessors are over.
    pub(super) fn await_predecessors<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
    ) {
        self.pipeline.await_predecessors(&locker(context, &mut self.own));
    }

    /// Begins to close the cell of a link; see [`Pipeline::begin_to_close`].
    pub(super) fn begin_to_close(&self, number: usize) -> bool {
        self.pipeline.begin_to_close(number)
    }

    /// Ends the chain of a link's cell.
    pub(super) fn end_chain<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        number: usize,
    ) {
        self.pipeline.end_chain(&locker(context, &mut self.own), number);
    }

    /// Returns the word with which a chain publishes its cell; see [`following`].
    pub(super) fn following<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        tid: Tid,
    ) -> Tid {
        following(&locker(context, &mut self.own), at, tid)
    }

    /// Releases the lock of a cell that the commit has taken by policy, if it has taken one.
    pub(super) fn release_unlisted<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
    ) {
        self.by_policy.release_unlisted(&mut locker(context, &mut self.own), at);
    }

    /// Ends a commit in a pipeline, which has left all its chains: it is over.
    pub(super) fn end_pipeline<P: Protocol<Clock = Shared>>(
        &mut self,
        context: &mut Context<'_, P>,
        items: &[WriteItem],
    ) {
        let locker = &mut locker(context, &mut self.own);
        self.by_policy.release_all(locker, items);
        self.pipeline.end(locker);
    }

    pub(super) fn count(&self, what: LockCount) {
        self.own.count(what);
    }

    /// Returns the wish that the chain of a cell ends. `tid` was the cell's TID word.
    pub(super) fn wish_for_end(engine: &Base, at: CellAt, tid: Tid) -> Option<CallWish<'_>> {
        tid.has(WASK).then(|| CallWish::of(engine, at))
    }

    /// Returns whether a row is permanent, in a table whose rows are locked in chains.
    pub(super) fn has_permanent<P: Protocol<Clock = Shared>>(
        context: &Context<'_, P>,
        at: CellAt,
    ) -> bool {
        let policies = &context.clock.locks.policies;
        policies.is_permanent(at.table()) && policies.at(at) == Policy::Pipelined
    }

    /// Returns whether the words of a unit never change, once its row is there.
    pub(super) fn is_frozen<P: Protocol<Clock = Shared>>(
        context: &Context<'_, P>,
        at: CellAt,
    ) -> bool {
        context.clock.locks.policies.is_frozen(at)
    }

    /// Returns whether a row of which a commit is about to be staged is locked in chains. `tid` was
    /// its TID word.
    #[cold]
    pub(super) fn is_pipelined<P: Protocol<Clock = Shared>>(
        context: &Context<'_, P>,
        at: CellAt,
        tid: Tid,
    ) -> bool {
        tid.has(WASK) && is_pipelined(base(context), at)
    }
}

/// Waits until no other session has the token, for a limited time, once in a transaction.
fn await_token<P: Protocol<Clock = Shared>>(context: &mut Context<'_, P>) {
    let engine = context.engine;
    let patience = Patience::Lasting(prolonged(TOKEN_WAIT_MAX));
    let mut wait = Wait::new(&engine.parking, engine.token.address(), Wish::Look, patience);
    while engine.token.is_others(context.local.id) && wait.wait() == Waited::Again {}
    context.local.has_yielded = engine.token.is_others(context.local.id);
}

fn is_pipelined(base: LockBase<'_>, at: CellAt) -> bool {
    base.locks.policies.at(at) == Policy::Pipelined
}

/// Returns the attempt's database, for functions of the policies.
fn base<'a, P: Protocol<Clock = Shared>>(context: &Context<'a, P>) -> LockBase<'a> {
    LockBase { engine: context.engine, locks: &context.clock.locks }
}

/// Returns the attempt's session, for functions of the policies.
fn locker<'a, P: Protocol<Clock = Shared>>(
    context: &'a mut Context<'_, P>,
    own: &'a mut SessionLocks,
) -> Locker<'a> {
    let LockBase { engine, locks } = base(context);
    Locker { engine, locks, local: context.local, own }
}

impl<P: Protocol<Clock = Shared>> Early<P> for EarlyLocks {
    const ASKS: u64 = WASK;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn held(&mut self) -> &mut HeldCells {
        &mut self.held
    }

    fn before_lock(&mut self, context: &mut Context<'_, P>, at: CellAt) -> Result<(), Abort> {
        let EarlyLocks { held, by_policy, own, .. } = self;
        let lock = (Mode::Write, When::Commit);
        let grant = by_policy.ask(&mut locker(context, own), at, lock, held.has_cells());
        held.note_others(grant == Ok(Grant::Held));
        grant.map(drop)
    }

    fn wait_again(&self, at: CellAt) {
        self.by_policy.renew_wish(at);
    }

    fn release_in_panic(
        &mut self,
        context: &mut Context<'_, P>,
        items: &[WriteItem],
        release: impl FnMut(&mut Context<'_, P>, CellAt, Tid),
    ) {
        self.held.give_back(context, release);
        self.by_policy.release_all(&mut locker(context, &mut self.own), items);
    }
}

/// Sets INSTALL in a held cell, and returns the cell's new TID word.
pub(super) fn install_held(at: CellAt, tid: Tid) -> Tid {
    // Relaxed: the fence is still to come (E1).
    raise_install(tid, |owned| at.cell_word(0).store(owned, Ordering::Relaxed))
}

/// Releases a cell that the attempt holds and has not written.
fn release_held<P: Protocol<Clock = Shared>>(context: &mut Context<'_, P>, at: CellAt, tid: Tid) {
    let tid = with_flags(base(context), at, tid);
    release_cell(context, at, tid);
}
