//! The node set: the index nodes whose versions must be unchanged at commit. An unchanged node
//! version proves that keys are still absent (phantom protection).

#![forbid(unsafe_code)]

use crate::access::AddressMap;
use crate::engine::{Context, Missing, Protocol, Unwatched, Watch};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::sync::step;

/// The largest number of reads in a set that is searched linearly. Small in tests, so that the
/// chains of larger sets are tested.
const SCANNED_MAX: usize = if cfg!(test) { 2 } else { 64 };

/// The place of no read: the end of a chain.
const NONE: u32 = u32::MAX;

/// The nodes that an attempt has read, each with the version that it had at the read.
#[derive(Debug, Default)]
pub(crate) struct NodeSet {
    reads: Vec<NodeRead>,
    chains: Chains,
}

/// An index of the reads by node. The index is built once the set is large and the attempt links
/// records itself, since each link would otherwise search all reads.
#[derive(Debug, Default)]
struct Chains {
    /// The last read of each node, by the node's address.
    last: AddressMap<u32>,
    /// For each read, the place of the previous read of the same node, or [`NONE`]. Reads beyond
    /// the end of this list are in no chain yet.
    before: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct NodeRead {
    node: NodeAt,
    version: u64,
    table: u16,
}

impl Chains {
    /// Returns the places of a node's reads, beginning with the last read.
    fn of(&self, node: NodeAt) -> impl Iterator<Item = u32> {
        let last = self.last.get(&node.address()).copied();
        std::iter::successors(last, |&place| {
            Some(self.before[place as usize]).filter(|&before| before != NONE)
        })
    }

    /// Redirects the link to place `from` in a node's chain to place `to`. The link ends the chain
    /// if `to` is [`NONE`].
    fn redirect(&mut self, node: NodeAt, from: u32, to: u32) {
        let before = self.of(node).find(|&place| self.before[place as usize] == from);
        match before {
            Some(place) => self.before[place as usize] = to,
            None if to == NONE => drop(self.last.remove(&node.address())),
            None => drop(self.last.insert(node.address(), to)),
        }
    }
}

impl NodeSet {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        if !self.chains.before.is_empty() {
            self.clear_chains();
        }
    }

    #[cold]
    #[inline(never)]
    fn clear_chains(&mut self) {
        self.chains.before.clear();
        self.chains.last.clear();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.reads.len()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn observe(&mut self, missing: Missing<'_>) {
        self.reads.push(NodeRead {
            node: missing.node,
            version: missing.version,
            table: missing.table,
        });
    }

    /// Notes that the attempt itself has changed a node's version from `before` to `after`. Returns
    /// whether the attempt had observed `before`. If so, the caller has to observe the linked
    /// record: an insert of that record's key by another session no longer changes the node, only
    /// the record.
    #[inline]
    pub(crate) fn linked(&mut self, node: NodeAt, before: u64, after: u64) -> bool {
        if self.has_chains() {
            return self.linked_in_chain(node, before, after);
        }
        let mut vouched = false;
        for read in &mut self.reads {
            step();
            if read.node.address() == node.address() && read.version == before {
                read.version = after;
                vouched = true;
            }
        }
        vouched
    }

    #[inline(never)]
    fn linked_in_chain(&mut self, node: NodeAt, before: u64, after: u64) -> bool {
        self.enter_all();
        let mut vouched = false;
        for place in self.chains.of(node) {
            step();
            let read = &mut self.reads[place as usize];
            if read.version == before {
                read.version = after;
                vouched = true;
            }
        }
        vouched
    }

    /// Notes that the attempt itself has split a node.
    pub(crate) fn divided(&mut self, change: &NodeChange) {
        if !self.has_chains() {
            return change.replace(&mut self.reads, |read| (&mut read.node, &mut read.version));
        }
        self.enter_all();
        let mut observed = None;
        while let Some(place) = self.place_of(change.node, change.before) {
            observed = Some(self.remove(place));
        }
        if let Some(read) = observed {
            let successors = change.successors.iter().chain(&change.further);
            self.reads.extend(successors.map(|&(node, version)| NodeRead {
                node,
                version,
                ..read
            }));
        }
    }

    fn has_chains(&self) -> bool {
        self.reads.len() > SCANNED_MAX || !self.chains.before.is_empty()
    }

    /// Enters all reads into their chains. A read that equals the previous read of its node is
    /// dropped, so that chains are short.
    fn enter_all(&mut self) {
        let Chains { last, before } = &mut self.chains;
        for place in before.len()..self.reads.len() {
            let read = self.reads[place];
            let newest = last.get(&read.node.address()).copied();
            if newest.is_some_and(|newest| self.reads[newest as usize] == read) {
                continue;
            }
            last.insert(read.node.address(), before.len() as u32);
            self.reads[before.len()] = read;
            before.push(newest.unwrap_or(NONE));
        }
        self.reads.truncate(before.len());
    }

    fn place_of(&self, node: NodeAt, version: u64) -> Option<u32> {
        self.chains.of(node).find(|&place| self.reads[place as usize].version == version)
    }

    /// Removes the read at `place`. The last read of the list moves to that place.
    fn remove(&mut self, place: u32) -> NodeRead {
        let read = self.reads[place as usize];
        self.chains.redirect(read.node, place, self.chains.before[place as usize]);
        let last = self.reads.len() as u32 - 1;
        if place != last {
            self.chains.redirect(self.reads[last as usize].node, last, place);
        }
        self.chains.before.swap_remove(place as usize);
        self.reads.swap_remove(place as usize)
    }

    /// Returns the table of the first node whose version has changed; `None` if none has.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn first_changed(&self) -> Option<u16> {
        self.reads.iter().find(|read| read.node.version() != read.version).map(|read| read.table)
    }

    /// Watches the nodes.
    pub(crate) fn watch(&self, watch: &mut Watch<'_>) -> Result<(), Unwatched> {
        watch.add_nodes(self.reads.iter().map(|read| (read.table, read.node, read.version)))
    }

    /// Validates that no node's version has changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn validate<P: Protocol>(&self, context: &mut Context<'_, P>) -> Result<(), Abort> {
        match self.first_changed() {
            Some(table) => Err(context.phantom(table)),
            None => Ok(()),
        }
    }
}
