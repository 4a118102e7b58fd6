//! The view of an attempt under an optimistic protocol, and the rule that keeps the view
//! consistent. By this rule [`Occ`](crate::Occ) is opaque.
//!
//! # Rule
//! The *base* of an attempt is an epoch, at first that of its pin. The *look-set* is the set of all
//! observations on which the closure depends: cells that it has read, and nodes that prove the
//! absence of keys. The set also contains cells of which the closure has learned only whether the
//! row exists (from an update, an insert or a delete). A *look* is a revalidation of the look-set.
//! * A read accepts a version without a look if the version's epoch is before the base and the cell
//!   has no INSTALL. It also accepts a version that the session has *met*: a version that the
//!   session has installed itself, or that was read in a move of the view, in this attempt or an
//!   earlier one. (A writer of the base's own epoch may have issued its fence after the reader's,
//!   so its versions need a look.)
//! * Any other version is accepted if the look-set is empty.
//! * Otherwise the view *moves forward* before the closure sees the version. The move loads the
//!   epoch, and issues a full fence if that epoch is not the base. Then it looks at the look-set
//!   and the new cell: each cell must have the same version and no INSTALL, and each node the same
//!   version. If all do, the loaded epoch becomes the base. A cell of which only the row's
//!   existence is known may have another version than before. The look reads the version of such a
//!   cell before and after it examines all other cells, and the two must be equal. So the look
//!   validates these cells as phase 3 of `occ` validates the reads of a transaction that has read
//!   them just before; the moment of the view lies between the two reads. (One read is not enough:
//!   during the look the row may be deleted and inserted again, by commits that change the new cell
//!   and cells that the look has passed.)
//! * A cell of which the closure has learned only that a number lies in a range may have another
//!   version, too. If a look finds another version there, the number is read again. If it is in the
//!   range, the version that it was read in takes the place of the one before, and the whole move
//!   is repeated: the epoch, the fence, and the look, at this cell as at any other. The version is
//!   in the look-set only while such a move runs and after it has succeeded (`ranges.rs`). So where
//!   the invariants below say that the attempt has read a version, they mean the version that is
//!   in the look-set: the closure has learned nothing that is not true in that version, too.
//! * If a look finds any other change, the attempt ends in a conflict.
//! * An absent key needs no epoch: its node is in the look-set.
//!
//! A staged write locks nothing, so while the closure runs, INSTALL is always another session's. A
//! cell that the attempt holds has LOCK without INSTALL, and passes the look.
//!
//! # Invariants
//! A writer is *in the view* of an attempt if its epoch is before the base, or if the attempt has
//! read one of its versions.
//! * **VW1** The view is the state after all commits of epochs before the base, and perhaps some
//!   later ones. A writer of an epoch before the base took all its locks, then passed the fence of
//!   its commit (E1), and then read the epoch. The reader loaded the base before a fence of its
//!   own: the fence of the pin (E10) or of the last move that changed the base (E20). The writer
//!   read an older epoch than the reader, so the writer's fence came first. So every read and look
//!   after the reader's fence sees INSTALL or the new version in each of the writer's cells.
//! * **VW2** A writer of the base's epoch or a later one is seen as a whole or not at all. When the
//!   first of the writer's versions is read, the view moves forward, or nothing was read before.
//!   The load of that version (E3) acquires everything that the writer did before it released the
//!   cell. So the look after that load finds INSTALL or the new version in each of the writer's
//!   cells that was read before. None of the writer's versions is of an epoch before the base, so
//!   whenever a further one is read later, the view moves forward again.
//! * **VW3** If a record is not found, either it was not linked at any time since the base, or it
//!   was unlinked. A deleted record is unlinked only when the epoch of its deletion is below the
//!   horizon, since the record's entry was queued no earlier (CL6), and no pin's epoch is below the
//!   horizon. An insert links its record before it locks, so the node's
//!   version has changed.
//! * **VW4** A met version v of a cell is the cell's version at the moment of the view: v was
//!   installed before that moment, since the session had already met v, and v is still there when
//!   it is read. All else that v's writer wrote is in the view, too: all the writer's locks were
//!   set when v was met, so every look or load since then has seen those locks or the writer's
//!   versions. A writer that replaces v locks the cell after the read of v, and installs nothing
//!   before that, so nothing that it writes is in the view. (A cell of a record that has been freed
//!   may be at the same address. Its versions are of later epochs than the record's death: no
//!   record is freed while a pin is as old as its death.)
//! * **VW5** The view is a beginning of the order of fences (E1): if the attempt has *acquired* a
//!   writer U, and V is U or a writer that issued its fence before U did, the attempt has read no
//!   version that V replaces. It acquires U when it loads a version that U released (E3), or by the
//!   fence of the pin or of a move if U's epoch is before the new base (E10, E20): so it has
//!   acquired every writer in the view. From its beginning it has acquired U if U had ended by
//!   then, if a transaction that had ended by then read from U, or if the session had met a version
//!   of U. (The end of U happens before the beginning; if only a clock orders the two, U's fence
//!   comes before the fence of the pin.) Each read and look after the acquisition sees V's INSTALL
//!   or new version: if V is U, since U set INSTALL in all its cells before it released any of
//!   them; otherwise since V's fence came before U's, which comes before the read or look (E1).
//!   What the attempt had read before the acquisition is examined by the look after it (VW2). If no
//!   look follows the load of a version, nothing was read before, or its epoch is before the base,
//!   or it had been met; in the last two cases the attempt had acquired U already, by the fence of
//!   the base, at its beginning or before an earlier look.
//!
//! # Cost
//! A version that a session meets costs one look, and up to seven more if numbers change within the
//! ranges that the attempt has observed. When the looks of an attempt have examined [`BEFORE_TICK`]
//! observations, the attempt requests a tick of the epoch, and after as many again another one.
//! After a tick, all versions committed until then are older than the base. Between two passes of
//! the advancer, eight ticks are allowed in the process. Without a tick, looks continue: an attempt
//! may examine eight times as many observations as it has made, and [`MOST`] more, which takes less
//! than the time between two passes. Then the attempt ends in a conflict, and the next attempt may
//! spend twice as much. In the end the token keeps writers away. (With a few hundred in place of
//! [`MOST`], a session that read back a hundred of its own rows had conflicts, and took ten times
//! as long. Without ticks for small numbers, TPC-C with one warehouse and two threads examined 360
//! to 860 observations in an attempt.)

#![forbid(unsafe_code)]

use super::met::Met;
use crate::access::WriteItem;
use crate::engine::{Context, Protocol};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::locks::{LOCK_ROUNDS_MAX, is_in_chain};
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::read_set::{first_changed, has_changed};
use crate::record::{CellAt, Tid};
use crate::sync::{Ordering, Point, Spin, full_fence, pass};
use std::sync::Arc;

/// The number of observations that revalidations may examine for each observation made.
const LOOKS_PER_OBSERVATION: usize = 8;
/// The number of observations that the revalidations of an attempt examine before the attempt asks
/// for a tick.
const BEFORE_TICK: usize = 128;
/// The number of observations that the revalidations of an attempt may examine in addition to
/// [`LOOKS_PER_OBSERVATION`], if the attempt gets no tick.
const MOST: usize = 1 << 19;

/// The moment of an attempt's view, and the cells of its look-set that the attempt has not read.
#[derive(Debug)]
pub(super) struct View {
    /// The first version of the base's epoch; greater than all versions if the attempt need not be
    /// opaque.
    base: u64,
    /// Cells of which the closure has learned whether their rows exist.
    known: Vec<KnownExistence>,
    /// The number of observations that revalidations have examined.
    spent: usize,
    /// The number of observations examined since the attempt began, or since its last tick.
    since_tick: usize,
    /// The number of observations that an attempt may examine in addition to
    /// [`LOOKS_PER_OBSERVATION`], without a tick.
    most: usize,
    /// Whether `most` was exceeded.
    is_spent: bool,
    met: Met,
    epochs: Arc<Epochs>,
}

/// A cell of which the closure has learned whether its row exists.
#[derive(Debug)]
struct KnownExistence {
    at: CellAt,
    exists: bool,
    /// The cell's TID word before the look at all other cells.
    said: Tid,
}

/// The largest number of rounds of one revalidation. Another round follows if other sessions have
/// meanwhile written rows whose existence alone the attempt has read.
const LOOKS_AT_ONCE: u32 = 8;

/// The reason why a view cannot move forward.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stuck {
    /// A cell that has been read has changed.
    Cell(CellAt),
    /// The new cell has changed since it was read.
    New(CellAt),
    /// A row of which only the existence is known is being written, or was written too often.
    Locked(CellAt),
    /// A row of which only the existence is known has been deleted or inserted.
    Existence(CellAt),
    Node {
        table: u16,
    },
    /// Looks have examined more observations than allowed.
    Spent,
}

impl View {
    /// Creates a session's view.
    pub(super) fn new(epochs: &Arc<Epochs>) -> View {
        View {
            base: u64::MAX,
            known: Vec::new(),
            spent: 0,
            since_tick: 0,
            most: MOST,
            is_spent: false,
            met: Met::default(),
            epochs: epochs.clone(),
        }
    }

    /// Begins an attempt. Its session is pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin<P: Protocol>(&mut self, context: &Context<'_, P>) {
        self.known.clear();
        (self.spent, self.since_tick) = (0, 0);
        if self.is_spent {
            (self.most, self.is_spent) = (self.most.saturating_mul(2), false);
        }
        if context.engine.properties.opaque {
            self.base = Tid::first_of(context.local.slot.own_epoch()).0;
        }
    }

    /// Returns whether the attempt's view is of one moment. If so, an attempt that has written
    /// nothing needs no validation.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_opaque(&self) -> bool {
        self.base != u64::MAX
    }

    /// Returns whether the view is of a moment after the end of `epoch`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_later_than(&self, epoch: Epoch) -> bool {
        self.base > Tid::first_of(epoch).0
    }

    /// Returns whether a version belongs to the view without a move (VW1). At any other version the
    /// view moves forward (VW2), unless the session has met the version (VW4).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn has(&self, tid: Tid) -> bool {
        tid.0 < self.base
    }

    /// Allocates the memory for noting a commit's versions. Called before the commit locks.
    #[inline]
    pub(super) fn reserve(&mut self) {
        if self.is_opaque() {
            self.met.reserve();
        }
    }

    /// Makes room for notes about the existence of as many rows.
    pub(super) fn reserve_links(&mut self, rows: usize) {
        if self.is_opaque() {
            self.known.reserve(rows);
        }
    }

    /// Notes that the session has installed `version` in the units of `items`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn meet_installed(&mut self, items: &[WriteItem], version: Tid) {
        if self.is_opaque() {
            debug_assert!(
                version.0 >= self.base,
                "VW1: a commit is of the base's epoch or a later one"
            );
            for item in items.iter().filter(|item| !item.untouched) {
                let absent = if item.present { 0 } else { Tid::ABSENT };
                self.met.note(item.at, Tid(version.0 | absent));
            }
        }
    }

    /// Returns whether an answer about a row's existence must belong to the view.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn answers_for_existence(&self) -> bool {
        self.is_opaque()
    }

    /// Notes that the closure learns whether a row exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_existence(&mut self, at: CellAt, exists: bool) {
        if self.is_opaque() {
            self.known.push(KnownExistence { at, exists, said: Tid(0) });
        }
    }

    /// Moves the view forward to the current epoch. `new` is a cell that has just been read, with
    /// the version read. Does nothing if the session has met that version.
    ///
    /// # Errors
    /// The cell or node that has changed since it was observed.
    #[inline]
    pub(super) fn move_on(
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
        if observed == 1
            && let Some((at, tid)) = new
        {
            self.met.note(at, tid);
            return Ok(()); // VW2: nothing was read before
        }
        self.spent += observed;
        self.since_tick += observed;
        if self.since_tick > BEFORE_TICK {
            self.tick(observed)?;
        }
        pass(Point::Moving);
        let epoch = self.epochs.now();
        let base = Tid::first_of(epoch).0;
        if base != self.base {
            full_fence(); // E20
        }
        self.look(reads, nodes, new)?; // VW2, VW5
        pass(Point::Looked);
        debug_assert!(self.base <= base && self.is_opaque(), "VW1: the view only moves on");
        self.base = base;
        if let Some((at, tid)) = new {
            self.met.note(at, tid);
        }
        Ok(())
    }

    /// Requests a new epoch, so that later reads of what was committed until now need no look.
    ///
    /// # Errors
    /// [`Stuck::Spent`] if there is none, and looks have examined more than the attempt may.
    /// `observed` is the number of observations to be examined next.
    #[cold]
    #[inline(never)]
    fn tick(&mut self, observed: usize) -> Result<(), Stuck> {
        if self.epochs.tick_between_passes() {
            self.since_tick = 0;
        } else if self.spent.saturating_sub(LOOKS_PER_OBSERVATION * observed) > self.most {
            self.is_spent = true;
            return Err(Stuck::Spent);
        }
        Ok(())
    }

    /// Checks that there is a moment at which the whole look-set is as it was observed.
    fn look(
        &mut self,
        reads: &[(CellAt, Tid)],
        nodes: &NodeSet,
        new: Option<(CellAt, Tid)>,
    ) -> Result<(), Stuck> {
        let mut looks = 0;
        loop {
            self.ask_known()?;
            if let Some(at) = first_changed(reads, is_own) {
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

    /// Returns the first cell of `known` that has changed since [`View::ask_known`] last loaded its
    /// word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn first_unsettled(&self) -> Option<CellAt> {
        let changed =
            |known: &&KnownExistence| has_changed(known.at, known.said, || is_own(known.at));
        self.known.iter().find(changed).map(|known| known.at)
    }

    /// Loads the TID words of the cells whose rows are known only to exist or not.
    fn ask_known(&mut self) -> Result<(), Stuck> {
        let mut spin = Spin::default();
        for known in &mut self.known {
            // Acquire: if a commit has inserted the row again, the revalidation sees the commit's
            // changes in all cells that are examined after this one (E3).
            let ask = || Tid(known.at.cell_word(0).load(Ordering::Acquire));
            known.said = ask();
            pass(Point::Asked);
            while known.said.has(Tid::INSTALL) {
                if is_in_chain(known.at) {
                    let at = known.at;
                    return self.forget_known(at);
                }
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

    /// Forgets whether the row of a cell in a chain exists. The commit finds out; until then the
    /// operations on the row have told the closure nothing. Continues with [`View::ask_known`].
    #[cold]
    fn forget_known(&mut self, at: CellAt) -> Result<(), Stuck> {
        self.known.retain(|known| known.at.address() != at.address());
        self.ask_known()
    }

    /// Ends an attempt that has committed. Resets `most` for the next transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn end(&mut self) {
        (self.most, self.is_spent) = (MOST, false);
    }
}

/// Returns whether INSTALL in a cell is the attempt's own: never while its closure runs.
fn is_own(_at: CellAt) -> bool {
    false
}

/// Returns the table of the first node whose version has changed; `None` if none has.
#[cfg_attr(not(debug_assertions), inline(always))]
fn changed_node(nodes: &NodeSet) -> Option<u16> {
    nodes.first_changed()
}

/// Returns the cell that makes the view move forward, if the cell has changed since it was read.
#[cfg_attr(not(debug_assertions), inline(always))]
fn changed_cell((at, seen): (CellAt, Tid)) -> Option<CellAt> {
    has_changed(at, seen, || is_own(at)).then_some(at)
}

/// Notes the conflict that keeps a view from moving forward, and returns it.
#[cold]
pub(super) fn conflict<P: Protocol>(context: &mut Context<'_, P>, stuck: Stuck) -> Abort {
    match stuck {
        Stuck::Cell(at) | Stuck::New(at) => context.conflict(Abort::ReadChanged, at),
        Stuck::Locked(at) => context.conflict(Abort::Locked, at),
        Stuck::Existence(at) => context.conflict(Abort::ExistenceChanged, at),
        Stuck::Node { table } => context.phantom(table),
        Stuck::Spent => Abort::ReadChanged,
    }
}
