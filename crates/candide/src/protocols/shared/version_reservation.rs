//! The version blocks that an attempt reserves before its commit, since the commit allocates
//! nothing.

#![forbid(unsafe_code)]

use super::version_blocks::VersionBlocks;
use crate::access::Intent;
use crate::engine::{BlockSize, Context, Parts, TableCore};
use crate::error::Abort;
use crate::record::CellAt;

/// The numbers of reserved blocks, by table and size.
#[derive(Debug, Default)]
pub(crate) struct VersionReservation(Vec<((u16, BlockSize), usize)>);

impl VersionReservation {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Implements [`Versions::make_room`](crate::engine::Versions::make_room): makes sure that
    /// blocks for all units of one more record are available, but does not reserve them. `size_for`
    /// returns the size of the block for a unit with a given number of words.
    pub(crate) fn offer<P: Parts>(
        &self,
        context: &mut Context<'_, P>,
        table: &TableCore,
        size_for: impl Fn(usize) -> BlockSize,
    ) -> Result<(), Abort>
    where
        P::SessionVersions: AsMut<VersionBlocks>,
    {
        let mut more = [0; 2];
        table.layout.unit_words().for_each(|words| more[size_for(words) as usize] += 1);
        [BlockSize::Short, BlockSize::Whole]
            .iter()
            .zip(more)
            .filter(|&(_, more)| more > 0)
            .try_for_each(|(&size, more)| {
                let kind = (table.number, size);
                let ready =
                    self.0.iter().find(|&&(of, _)| of == kind).map_or(0, |&(_, count)| count);
                context.prepare_versions(kind, ready + more, false).map_err(|_| Abort::MemoryLimit)
            })
    }

    /// Reserves blocks for all units of `rows` more rows of a table; returns their number.
    /// `size_for` returns the size of the block for a unit with a given number of words.
    pub(crate) fn add_rows<P: Parts>(
        &mut self,
        context: &mut Context<'_, P>,
        table: &TableCore,
        rows: usize,
        size_for: impl Fn(usize) -> BlockSize,
    ) -> Result<usize, Abort>
    where
        P::SessionVersions: AsMut<VersionBlocks>,
    {
        let mut units = 0;
        for words in table.layout.unit_words() {
            let place = self.place_of((table.number, size_for(words)));
            self.0[place].1 += rows;
            let (kind, count) = self.0[place];
            context.prepare_versions(kind, count, false).map_err(|_| Abort::MemoryLimit)?;
            units += rows;
        }
        Ok(units)
    }

    /// Returns the place of the number of reserved blocks of one kind.
    fn place_of(&mut self, kind: (u16, BlockSize)) -> usize {
        self.0.iter().position(|&(of, _)| of == kind).unwrap_or_else(|| {
            self.0.push((kind, 0));
            self.0.len() - 1
        })
    }

    /// Reserves one more block of `size`, for a write of the unit `at` with this intent. The write
    /// will fill `words` words of the block.
    pub(crate) fn add<P: Parts>(
        &mut self,
        context: &mut Context<'_, P>,
        at: CellAt,
        intent: Intent,
        (size, words): (BlockSize, usize),
    ) -> Result<(), Abort>
    where
        P::SessionVersions: AsMut<VersionBlocks>,
    {
        let kind = (at.table(), size);
        let place = self.place_of(kind);
        self.0[place].1 += 1;
        // A delete frees memory, so it must not be refused for lack of memory. Blocks for whole
        // rows have been prepared already (`make_room`).
        let beyond_limit = intent != Intent::Update;
        context
            .prepare_version(kind, self.0[place].1, words, beyond_limit)
            .map_err(|_| Abort::MemoryLimit)
    }
}
