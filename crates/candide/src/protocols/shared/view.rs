//! The view of an attempt of an optimistic protocol, kept consistent: the rule by which
//! [`Occ`](crate::Occ) is opaque.
//!
//! # Rule
//! The *base* of an attempt is an epoch, at first that of its pin. The *look-set* is all that the
//! closure depends on: cells that it has read, nodes that vouch for absent keys, and cells of which
//! it knows only the existence (from an update, an insert, a delete).
//! * A version of an epoch before the base, in a cell without INSTALL, is taken as it is; so is one
//!   that the session has met: installed itself, or looked at in a move of this attempt or of one
//!   before it.
//! * At any other version the view moves on before the closure sees it: load the epoch; full fence,
//!   if the epoch is not the base; look at the look-set and the new cell (each has the same version
//!   and no INSTALL; each node the same version); then the epoch is the base. A row of which only
//!   the existence is known may have another version, but it must be the same before and after the
//!   look at all others. So a look is what phase 3 of `occ` is to a transaction that has read these
//!   rows just before, and the moment of the view is the one between. (One look is not enough:
//!   during it the row may be deleted and inserted again, by commits that change cells looked at
//!   before and the new cell.)
//! * If anything has changed, the attempt ends in a conflict.
//! * An absent key needs no epoch: its node is in the look-set.
//!
//! A staged write is no lock, so during execution there is no excuse for INSTALL. A cell that the
//! attempt holds has LOCK alone, and passes.
//!
//! # Invariants
//! * **VW1** The view is the state after all commits of epochs before the base, and perhaps some
//!   more: a writer of such an epoch had all its locks, then passed the fence of its commit (E1),
//!   then read the epoch. The base was loaded before a fence of the reader's: that of the pin (E10)
//!   or of the last move (E20). The writer read an older epoch than the reader, so its fence came
//!   first, and every look after the reader's fence sees INSTALL or the new version in each of its
//!   cells.
//! * **VW2** A writer of the base's epoch or a later one is seen as a whole or not at all: the view
//!   has moved on at its first version, whose load (E3) acquires what the writer did before it
//!   released the cell. So the look after that load finds INSTALL or the new version in each of the
//!   writer's cells seen before. Nothing that it wrote is of an epoch before the base, so its cells
//!   seen later move the view on again.
//! * **VW3** A record that is not found was never there since the base, or was unlinked: a deleted
//!   record is unlinked only when its epoch is below the horizon, which no pin's epoch is below;
//!   and an inserter has linked its record before its locks, so the node's version has changed.
//! * **VW4** A met version v of a cell is the cell's version at the moment of the view: it was
//!   installed before that, since the session met it before, and it is still there when it is read.
//!   The rest of what v's writer wrote is in the view: all its locks were set when v was met, so a
//!   look or a load since has seen them, or its versions. A writer that replaces v locks the cell
//!   after the read, and installs nothing before that, so nothing of it is in the view.
//!
//! # Cost
//! A version that a session meets costs one look. Looks may cost eight times what the attempt has
//! seen, and [`SPARE`] more, some 50 us. Beyond that, the attempt asks for one tick of the epoch,
//! which makes all that is committed by now older than the base; there is one such tick between two
//! passes of the advancer. Without it looks go on up to [`MOST`], less than the time between two
//! passes; then the attempt ends in a conflict, and the next one may spend twice as much. In the
//! end the token keeps writers away. (With a few hundred in place of [`SPARE`] and no second bound,
//! a session that read back a hundred rows of its own met conflicts, and took ten times as long.)

#![forbid(unsafe_code)]

use super::cell_lock::LOCK_ROUNDS_MAX;
use super::met::Met;
use super::node_set::NodeSet;
use crate::access::WriteItem;
use crate::engine::{Context, Protocol};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::record::{CellAt, Tid};
use crate::sync::{Mutant, Ordering, Point, Spin, full_fence, mutant, pass};
use std::sync::Arc;

/// The number of observations that revalidations may examine for each observation made.
const LOOKS_PER_OBSERVATION: usize = 8;
/// The number of observations that the revalidations of an attempt may examine beyond that, before
/// the attempt asks for a tick.
const SPARE: usize = 1 << 16;
/// The number that they may examine without a tick.
const MOST: usize = 1 << 19;

/// The moment of an attempt's view, and the part of its look-set that it has not read.
#[derive(Debug)]
pub(crate) struct View {
    /// The first version of the base's epoch; above all versions if the attempt need not be opaque.
    base: u64,
    /// Cells of which the closure knows whether their rows exist.
    known: Vec<KnownExistence>,
    /// The number of observations that revalidations have examined.
    spent: usize,
    /// The number that an attempt may examine beyond [`LOOKS_PER_OBSERVATION`].
    most: usize,
    /// Whether `most` was exceeded.
    is_spent: bool,
    met: Met,
    epochs: Arc<Epochs>,
}

/// A cell of which the closure knows whether its row exists.
#[derive(Debug)]
struct KnownExistence {
    at: CellAt,
    exists: bool,
    /// The cell's word before all others were looked at.
    said: Tid,
}

/// The number of times that a revalidation starts anew because other sessions write rows of the
/// look-set meanwhile.
const LOOKS_AT_ONCE: u32 = 8;

/// The reason for which a view cannot move on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stuck {
    /// A cell that has been read has changed.
    Cell(CellAt),
    /// The new cell has changed since it was looked at.
    New(CellAt),
    /// A row whose existence is known is being written, or has been too often.
    Locked(CellAt),
    /// The row has been deleted or inserted.
    Existence(CellAt),
    Node {
        table: u16,
    },
    /// Looks have cost too much.
    Spent,
}

impl View {
    /// Makes a session's view.
    pub(crate) fn new(epochs: &Arc<Epochs>) -> View {
        View {
            base: u64::MAX,
            known: Vec::new(),
            spent: 0,
            most: MOST,
            is_spent: false,
            met: Met::default(),
            epochs: epochs.clone(),
        }
    }

    /// Begins an attempt, which is pinned.
    #[inline(always)]
    pub(crate) fn begin<P: Protocol>(&mut self, context: &Context<'_, P>) {
        self.known.clear();
        self.spent = 0;
        if self.is_spent {
            (self.most, self.is_spent) = (self.most.saturating_mul(2), false);
        }
        if context.engine.properties.opaque {
            self.base = Tid::first_of(context.local.slot.own_epoch()).0;
        }
    }

    /// Returns whether the view is one moment's, so that there is nothing left to validate of an
    /// attempt that has written nothing.
    #[inline(always)]
    pub(crate) fn is_opaque(&self) -> bool {
        self.base != u64::MAX
    }

    /// Returns whether the view is of a moment after an epoch that has passed.
    #[inline(always)]
    pub(crate) fn is_later_than(&self, epoch: Epoch) -> bool {
        self.base > Tid::first_of(epoch).0
    }

    /// Returns whether a version belongs to the view as it is (VW1). At any other one the view
    /// moves on (VW2), unless the session has met it (VW4).
    #[inline(always)]
    pub(crate) fn has(&self, tid: Tid) -> bool {
        tid.0 < self.base || mutant(Mutant::ViewUnmoved)
    }

    /// Allocates the memory for noting a commit's versions, before it locks.
    #[inline]
    pub(crate) fn reserve(&mut self) {
        if self.is_opaque() {
            self.met.reserve();
        }
    }

    /// Notes that the session has installed a version of these items.
    #[inline(always)]
    pub(crate) fn meet_installed(&mut self, items: &[WriteItem], version: Tid) {
        if self.is_opaque() {
            debug_assert!(
                version.0 >= self.base || mutant(Mutant::EpochBeforeLock),
                "VW1: a commit is of the base's epoch or a later one"
            );
            for item in
                items.iter().filter(|item| !item.untouched || mutant(Mutant::MetUninstalled))
            {
                let absent = if item.present { 0 } else { Tid::ABSENT };
                self.met.note(item.at, Tid(version.0 | absent));
            }
        }
    }

    /// Returns whether the view must agree with an answer about a row's existence.
    #[inline(always)]
    pub(crate) fn answers_for_existence(&self) -> bool {
        self.is_opaque() && !mutant(Mutant::PeekUnchecked)
    }

    /// Notes that the closure learns whether a row exists.
    #[inline(always)]
    pub(crate) fn note_existence(&mut self, at: CellAt, exists: bool) {
        if self.is_opaque() && !mutant(Mutant::ToldUnlooked) {
            self.known.push(KnownExistence { at, exists, said: Tid(0) });
        }
    }

    /// Moves on to the current epoch, and to `new`, a cell that has just been looked at and its
    /// version, unless that was met.
    ///
    /// # Errors
    /// The cell or node that has changed since it was observed.
    #[inline(never)]
    pub(crate) fn move_on(
        &mut self,
        reads: &[(CellAt, Tid)],
        nodes: &NodeSet,
        new: Option<(CellAt, Tid)>,
    ) -> Result<(), Stuck> {
        debug_assert!(
            new.is_none_or(|(_, tid)| self.base <= tid.0),
            "VW2: the view moves on at a version of the base's epoch or a later one"
        );
        if new.is_some_and(|(at, tid)| self.met.has(at, tid)) {
            return Ok(()); // VW4
        }
        let observed = reads.len() + nodes.len() + self.known.len() + 1;
        self.spent += observed;
        let beyond = self.spent.saturating_sub(LOOKS_PER_OBSERVATION * observed);
        if beyond > SPARE && !self.epochs.tick_between_passes() && beyond > self.most {
            self.is_spent = true;
            return Err(Stuck::Spent);
        }
        pass(Point::Moving);
        let epoch = self.epochs.now();
        let mut base = Tid::first_of(epoch).0;
        if base != self.base {
            full_fence(); // E20
        }
        if !mutant(Mutant::MovedUnlooked) {
            self.look(reads, nodes, new)?;
        }
        pass(Point::Looked);
        if mutant(Mutant::EpochAfterLook) {
            base = Tid::first_of(self.epochs.now()).0;
        }
        debug_assert!(self.base <= base && self.is_opaque(), "VW1: the view only moves on");
        self.base = base;
        if let Some((at, tid)) = new {
            self.met.note(at, tid);
        }
        Ok(())
    }

    /// Checks that the look-set is, at one moment, as it was observed.
    fn look(
        &mut self,
        reads: &[(CellAt, Tid)],
        nodes: &NodeSet,
        new: Option<(CellAt, Tid)>,
    ) -> Result<(), Stuck> {
        let mut looks = 0;
        loop {
            self.ask_known()?;
            if let Some(&(at, _)) = reads.iter().find(|&&read| !is_same(read)) {
                return Err(Stuck::Cell(at));
            }
            if let Some(table) = changed_node(nodes) {
                return Err(Stuck::Node { table });
            }
            if let Some(at) = new.and_then(changed_cell) {
                return Err(Stuck::New(at));
            }
            let Some(other) = self.first_unsettled() else { return Ok(()) };
            looks += 1;
            if looks == LOOKS_AT_ONCE {
                return Err(Stuck::Locked(other));
            }
        }
    }

    /// Returns the first cell that has changed since the closure learned from it only whether a row
    /// exists.
    #[inline(always)]
    fn first_unsettled(&self) -> Option<CellAt> {
        let changed =
            |known: &&KnownExistence| !is_same((known.at, known.said)) && !mutant(Mutant::ToldOnce);
        self.known.iter().find(changed).map(|known| known.at)
    }

    /// Loads the words of the cells of which only the existence is known.
    fn ask_known(&mut self) -> Result<(), Stuck> {
        let mut spin = Spin::default();
        for known in &mut self.known {
            // Acquire: if a commit has inserted the row again, the revalidation sees the commit's
            // changes of the cells that it examines after this one (E3).
            let ask = || Tid(known.at.cell_word(0).load(Ordering::Acquire));
            known.said = ask();
            pass(Point::Asked);
            while known.said.has(Tid::INSTALL) {
                if known.said.has(Tid::DEAD) || !spin.wait_at_most(LOCK_ROUNDS_MAX) {
                    return Err(Stuck::Locked(known.at));
                }
                known.said = ask();
            }
            if known.said.has(Tid::ABSENT) == known.exists {
                return Err(Stuck::Existence(known.at));
            }
        }
        Ok(())
    }

    /// Ends an attempt with a commit: the next transaction has the whole allowance again.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        (self.most, self.is_spent) = (MOST, false);
    }
}

/// Returns whether a cell has the version that was observed, and no commit to it is under way.
#[inline(always)]
fn is_same((at, seen): (CellAt, Tid)) -> bool {
    let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
    tid.0 == seen.0
        || tid.same_version(seen) && (!tid.has(Tid::INSTALL) || mutant(Mutant::InstallUnlooked))
}

/// Returns the table of the first node whose version has changed.
#[inline(always)]
fn changed_node(nodes: &NodeSet) -> Option<u16> {
    nodes.first_changed().filter(|_| !mutant(Mutant::NodesUnlooked))
}

/// Returns the cell that makes the view move forward, if the cell has changed since it was read.
#[inline(always)]
fn changed_cell(new: (CellAt, Tid)) -> Option<CellAt> {
    (!is_same(new) && !mutant(Mutant::NewUnlooked)).then_some(new.0)
}

/// Notes a conflict for what keeps a view from moving on.
#[cold]
pub(crate) fn conflict<P: Protocol>(context: &mut Context<'_, P>, stuck: Stuck) -> Abort {
    match stuck {
        Stuck::Cell(at) | Stuck::New(at) => context.conflict(Abort::ReadChanged, at),
        Stuck::Locked(at) => context.conflict(Abort::Locked, at),
        Stuck::Existence(at) => context.conflict(Abort::ExistenceChanged, at),
        Stuck::Node { table } => context.phantom(table),
        Stuck::Spent => Abort::ReadChanged,
    }
}
