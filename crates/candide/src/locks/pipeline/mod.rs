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
//!   of its predecessors is over, or has *passed* the rank of that cell: has locked all that it
//!   locks up to that rank, and so have its predecessors. An attempt shows no rank as passed that
//!   one of its predecessors has not, or that is not below those of rows which it has yet to find.
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
//! An attempt waits without a bound in four places, each time for another attempt in a chain:
//! * **gate**: until a predecessor has passed a rank (`await_gate`);
//! * **lock**: until the last member of a chain relaxes its lock; or, if the end of the chain is
//!   wanted, until that member closes it (`join`);
//! * **done**: until the predecessor in a cell has executed (`await_done`);
//! * **over**: until a predecessor is over (`await_predecessors`).
//!
//! Let p(T) be the rank that T shows as passed. It only rises.
//! 1. If U is a predecessor of T that is not over, then p(T) <= p(U): T raises p(T) so far only
//!    (PL2), and U had passed the rank of the cell that T took over from it.
//! 2. No attempt is its own predecessor, directly or not. Otherwise let the last link of the circle
//!    be T's take-over of a cell of rank r from U. Just before, p(T) < r, since T locks in the
//!    order of ranks; r <= p(U), since U has relaxed the cell; and p(U) <= p(T) by 1, along the
//!    other links of the circle.
//! 3. At a gate, and for done and over, T waits for a predecessor U, so p(T) <= p(U) by 1. For the
//!    lock of a cell of rank r, T waits for a U that has locked the cell, so p(T) < r <= p(U).
//!    (Between its lock and its note of r, U waits for the TID word alone, with a bound.) So p
//!    falls nowhere along a circle of waits, hence rises nowhere: the circle has no wait for a
//!    lock. Then each attempt in it waits for a predecessor, which 2 excludes.
//!
//! Waits for a row that is locked without a chain, or left free for a wish, have a bound, and so
//! has the wait for the token, which comes before a link and before the first lock. `tests/chains`
//! explores all interleavings of a model.
//!
//! User code in a chain are steps and updaters alone. A step cannot begin a transaction. An updater
//! can: that transaction joins no chain.
//!
//! # Other sessions
//! A session that waits for the end of a chain sets WANT, asleep or not. The chain then takes no
//! further member, and the free cell is left for a short time to those that wait. So a reader waits
//! for the members of the moment, not for those that would come. In the paper it carries out what
//! they have deferred; here it cannot, since steps belong to their sessions.
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
    /// The largest rank that the desk may show as passed: the attempt finds rows of higher ranks
    /// later. It has no further rows if this is `u64::MAX`.
    ceiling: u64,
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
