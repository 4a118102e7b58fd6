//! Deferred runtime pipelining: chains of commits over relaxed locks, for the policy `pipelined`.
//! `protocols/occ/pipeline` has the commit that uses them.
//!
//! # Chains
//! A commit locks what it writes in the order of *ranks*. A lock of a pipelined cell is *relaxed*
//! as soon as it is granted: the next commit may take it over, and is then the *successor* of the
//! former owner in this cell. All commits that have taken a cell over from one another are a
//! *chain*. LOCK and INSTALL in the TID word are set by the first member and cleared by the last,
//! so readers and other writers see one long commit.
//!
//! A member *evaluates* what it does to a cell when its predecessor there has *done* its part, and
//! *executes* (stores) it when nothing can fail any more. It then waits until all its predecessors
//! are *over*, chooses its version, and is over when it has left each of its chains.
//!
//! # Invariants
//! * **PL1** State and owner of a lock are one word (`chain.rs`), which its owner changes by
//!   exchanges. So the owner closes the cell, or a successor takes it over, but not both.
//! * **PL2** An attempt locks in the order of ranks, which are unique. Before it locks a cell, each
//!   of its predecessors is over, or has passed the rank of that cell: has locked all that it locks
//!   up to that rank, and so have its predecessors.
//! * **PL3** An attempt is over after all its predecessors.
//! * **PL4** An attempt executes an item after its predecessor there is done or over, and shows
//!   that it is done after that. An attempt that fails is done with all items when its predecessors
//!   are over.
//! * **PL5** A member that has executed an item leaves its version in the TID word before it is
//!   over: by publishing, or under LOCK and INSTALL if a successor has the cell. So when the
//!   predecessors of an attempt are over, the TID word has the version whose words are in the cell.
//!   ABSENT in the TID word follows what has been executed.
//! * **PL6** An attempt that held a cell or a lock when its commit began joins no chain. It locks
//!   TID words alone, with waits of bounded length.
//! * **PL7** Nothing fails after the first item is executed.
//!
//! # Why no attempt waits for ever
//! Only attempts in chains wait without a bound, and only for others in chains. Let T wait for U:
//! * for U to have passed a rank or to be over: U is a predecessor of T;
//! * for U to relax or to close a cell: U waits meanwhile for the TID word alone, with a bound;
//! * for the end of a chain that has a wish for its end: its members have locked the cell, and T
//!   has passed no rank above the cell's.
//!
//! T has locked some cell after U, which had passed its rank then. If U waited for T in turn,
//! directly or not, a chain of such edges would lead from a cell to a cell of a higher rank and
//! back (PL2). `tests/chains` explores all interleavings of a model.
//!
//! User code in a chain are steps and updaters alone. Transactions in these join no chain.
//!
//! # Source
//! [MA19], sections 4 and 5. There each session executes what others have deferred; here each
//! executes its own operations, and others wait. Conditions that can fail, and what the paper's
//! theorems demand in their place, are ours: nothing is executed before all that can fail is known.
//!
//! [MA19]: https://doi.org/10.1145/3302424.3303977

#![forbid(unsafe_code)]

mod locking;
mod order;

use super::chain::Member;
use super::desks::Desk;
use super::shared::Locker;
use crate::record::CellAt;
pub(crate) use locking::following;

/// An item of the write set, in the order of ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    rank: u64,
    pub(crate) at: CellAt,
    /// The number of the item in the write set.
    pub(crate) index: usize,
    pub(crate) hold: Hold,
    before: Option<Member>,
}

/// The lock of an item's cell that an attempt has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Nothing,
    /// The TID word, until the attempt ends.
    Alone,
    /// The second word, and with it the TID word, as a member of a chain.
    InChain,
}

/// The chains of an attempt that commits; empty at other times.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    links: Vec<Link>,
    /// The predecessors that may still run, each once. Their item does not matter.
    predecessors: Vec<Member>,
    /// The attempt: its desk and its number.
    desk: u16,
    attempt: u32,
    /// The rank that the desk shows as passed.
    passed: u64,
}

impl Pipeline {
    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    fn me(&self, number: usize) -> Member {
        Member { desk: self.desk, attempt: self.attempt, item: number as u16 }
    }

    fn own_desk<'a>(&self, locker: &Locker<'a>) -> &'a Desk {
        locker.locks.desks.desk(self.desk)
    }
}
