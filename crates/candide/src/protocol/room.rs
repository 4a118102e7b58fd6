//! Room for versions: the blocks that an attempt has made ready before its commit, which allocates nothing.

#![forbid(unsafe_code)]

use super::{Context, Protocol};
use crate::access::Intent;
use crate::error::Abort;
use crate::record::CellAt;

/// By table: how many blocks.
#[derive(Debug, Default)]
pub(super) struct Room(Vec<(u16, usize)>);

impl Room {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// For [`Protocol::make_room`]: makes sure that so many more can be had, without counting on it.
    pub(super) fn offer<P: Protocol>(
        &self,
        context: &mut Context<'_, P>,
        table: u16,
        more: usize,
    ) -> Result<(), Abort> {
        let ready = self.0.iter().find(|&&(of, _)| of == table).map_or(0, |&(_, count)| count);
        context.prepare_versions(table, ready + more, false).map_err(|_| Abort::MemoryLimit)
    }

    /// Makes one more ready, for a write of this intent.
    pub(super) fn add<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        intent: Intent,
    ) -> Result<(), Abort> {
        let table = at.table();
        let place = self.0.iter().position(|&(of, _)| of == table).unwrap_or_else(|| {
            self.0.push((table, 0));
            self.0.len() - 1
        });
        self.0[place].1 += 1;
        // A delete makes room, and must not be refused for want of it; room for whole rows has been made (`make_room`).
        let beyond_limit = intent != Intent::Update;
        let words = if intent == Intent::Delete { 0 } else { P::VERSION_WORDS + at.payload_words() };
        context.prepare_version(table, self.0[place].1, words, beyond_limit).map_err(|_| Abort::MemoryLimit)
    }
}
