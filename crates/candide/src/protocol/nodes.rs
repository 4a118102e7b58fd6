//! The node set of protocols that trust a node's version: what vouches for the absence of the keys that an attempt has missed.

#![forbid(unsafe_code)]

use super::{Context, Missing, Protocol};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::sync::{Mutant, mutant};

/// The nodes that an attempt has gone through, each with the version it had then.
#[derive(Debug, Default)]
pub(super) struct NodeSet(Vec<NodeRead>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct NodeRead {
    node: NodeAt,
    version: u64,
    table: u16,
}

impl NodeSet {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    pub(super) fn observe(&mut self, missing: Missing<'_>) {
        self.0.push(NodeRead { node: missing.node, version: missing.version, table: missing.table });
    }

    /// The attempt itself has taken a node from one version to another; says whether it had observed the first. Then the node no longer
    /// tells when somebody else commits an insert of the key that has been linked; its record does.
    #[inline]
    pub(super) fn linked(&mut self, node: NodeAt, before: u64, after: u64) -> bool {
        let mut vouched = false;
        for read in &mut self.0 {
            if read.node.address() == node.address() && read.version == before {
                read.version = after;
                vouched = true;
            }
        }
        vouched
    }

    /// The attempt itself has divided a node.
    pub(super) fn divided(&mut self, change: &NodeChange) {
        if mutant(Mutant::SplitUntracked) {
            return;
        }
        change.replace(&mut self.0, |read| (&mut read.node, &mut read.version));
    }

    /// Returns the table of the first that does not vouch as before.
    #[inline(always)]
    pub(super) fn first_changed(&self) -> Option<u16> {
        self.0.iter().find(|read| read.node.version() != read.version).map(|read| read.table)
    }

    /// Whether all of them vouch as before.
    #[inline(always)]
    pub(super) fn validate<P: Protocol>(&self, context: &mut Context<'_, P>) -> Result<(), Abort> {
        match self.first_changed() {
            Some(table) if !mutant(Mutant::NoNodeValidation) => Err(context.phantom(table)),
            _ => Ok(()),
        }
    }
}
