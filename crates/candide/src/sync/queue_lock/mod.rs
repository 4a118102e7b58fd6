//! A fair lock for readers and a writer: a queue of requests, which can be cancelled.
//!
//! # Guarantee
//! A writer holds the lock alone. Requests are granted in the order in which they came to the
//! queue; neighbours that read hold the lock at the same time. Each request is granted, unless it
//! is cancelled first.
//!
//! # Words
//! The lock has three words, which are zero while it is free: the *tail* (the last request's node),
//! the number of *readers* that hold the lock, and the *next writer* (the node of a writer at the
//! head of the queue that waits for those readers). Requests are nodes of a list that is linked
//! both ways (`words.rs`). A node's front word contains whether the node has been granted the lock,
//! and the node before it. Its back word contains the node behind it, and the node's own state, for
//! its successor.
//!
//! ```text
//!              next writer                          tail
//!                   |                                 |
//!   readers: 2      v                                 v
//!                [ W1 ] <-- pred, succ --> [ R2 ] <--> [ W3 ]
//! ```
//!
//! # Invariants
//! * **QL1** A node is in at most one queue, and stands there once. The list is in the order of the
//!   exchanges of the tail.
//! * **QL2** A link from a node to its successor is used by one thread at a time: the thread that
//!   has *claimed* it. The link is claimed by an exchange of the node's back word (busy: by the
//!   node, to pass the lock on; granted: by the thread that grants, if both read; leaving: by the
//!   node, which leaves, unless it is granted the lock; SUCCESSOR_LEAVING: by the successor, which
//!   leaves). One word decides, so one claim comes first. At the head of the queue, the link is
//!   that from the next writer's word, and claimed by the exchange that takes the writer out.
//! * **QL3** A node that finds the link to its successor claimed by that successor waits. A node
//!   that finds the link to itself claimed waits until its front word changes. So a wait goes in
//!   one direction along each link, and no waits make a circle.
//! * **QL4** If a node and its successor read, and the node has been granted the lock, so will be
//!   the successor: by the thread that has granted the node the lock, if the two were linked then;
//!   else by the thread that makes them neighbours.
//! * **QL5** The number of readers is raised before a reader is granted the lock, and lowered when
//!   it is released. While there is a next writer, it is not raised: all other requests stand
//!   behind that writer.
//! * **QL6** A node is used again only when each session has been unpinned that was pinned as the
//!   node was given back. A session is pinned from before its first request in an attempt until all
//!   its requests have been released or cancelled. So a node that a thread has seen in a word of a
//!   lock belongs to the same request as long as the thread may look at it.
//!
//! # Waiting
//! A request that waits spins a short time on its own node, and then sleeps (`parking.rs`). Only
//! [`QueueLock::wait`] waits for holders. All other functions wait at most for steps of neighbours:
//! until a request that has drawn its place has linked itself, or until a leaving request has left.
//! A step of a neighbour is a few instructions, but the neighbour may wait for one of its own, and
//! its thread may not be running. So these functions are not wait-free, and `cancel` may go from
//! neighbour to neighbour.
//!
//! # Memory
//! Nodes belong to desks (`nodes.rs`). A session has 1,023 nodes, each of which comes back when all
//! sessions have been unpinned that were pinned at its release: after two epochs, or when a long
//! transaction ends. A session that takes more locks than that in this time continues without.
//!
//! # Source
//! [WK16], section 4 (MQL), and the full algorithm in its extended version, HPE-2016-58. The part
//! of readers and the next writer is the fair lock of [MS91]; a list that is linked both ways, so
//! that requests can leave it, is of [SS01]. What differs here:
//! * A thread that grants a reader the lock also grants it to the readers behind. There, each
//!   reader grants it to the next one as it notices that it was granted, so that an asynchronous
//!   request that is not polled keeps others waiting.
//! * A back word is 64 bits: class and number of a successor are stored by one exchange, and no
//!   state lies between. A node links itself to a leaving predecessor as to any other.
//! * All claims are made in the back word, so that one word decides between a grant and a
//!   cancellation. There, the front word is exchanged as well, and a request that is about to leave
//!   takes its predecessor out of it for a time.
//! * The lock is three words. So a try for writing is a request, and a cancellation if that is not
//!   granted. There, it is one exchange of a word that has all three. A try first looks whether it
//!   would fail, and then does not queue a node.
//! * Thread and slot are a node's number there, and slots are used again with the next transaction.
//!   Here a node waits for the epochs (QL6): if it were used again at once, a thread that has read
//!   its number and been interrupted could take it for the earlier request.

#![forbid(unsafe_code)]

mod acquire;
mod cancel;
mod grant;
mod hand_shake;
mod lock;
mod nodes;
mod release;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use lock::QueueLock;
pub(crate) use nodes::{Nodes, Supply};
pub(crate) use words::{Mode, NodeId};
