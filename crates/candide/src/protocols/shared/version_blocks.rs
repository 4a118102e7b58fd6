//! Blocks for versions, from the caches of a session.

#![forbid(unsafe_code)]

use crate::engine::{BlockSize, Context, Parts, TableCore};
use crate::memory::{Block, Cache, OutOfMemory, SlabId};

/// The slabs from which a session takes blocks for versions.
#[derive(Debug, Default)]
pub struct VersionBlocks {
    /// The slabs, by table and size; `None` until the session needs a block of that table and size.
    slabs: Vec<[Option<SlabId>; 2]>,
}

impl<P: Parts> Context<'_, P>
where
    P::SessionVersions: AsMut<VersionBlocks>,
{
    /// Returns the session's cache of blocks of `size` for versions of `table`; `None` if the
    /// session has never asked for such a block.
    #[inline]
    fn version_cache(&mut self, table: u16, size: BlockSize) -> Option<&mut Cache> {
        let slab = self.versions.as_mut().slabs.get(usize::from(table))?[size as usize];
        self.local.caches.get_mut(slab?.0 as usize)?.as_mut()
    }

    /// Makes sure that [`Context::version_block`] can be called `count` times for a table and a
    /// size. With `beyond_limit`, the memory limit is exceeded if necessary.
    #[inline]
    pub(crate) fn prepare_versions(
        &mut self,
        (table, size): (u16, BlockSize),
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let is_ready = self.version_cache(table, size).is_some_and(|cache| cache.ready() >= count);
        if is_ready {
            Ok(())
        } else {
            self.fetch_version_blocks((table, size), count, beyond_limit)
        }
    }

    #[cold]
    fn fetch_version_blocks(
        &mut self,
        (number, size): (u16, BlockSize),
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        self.prepare_versions_of(&self.engine.table(number), size, count, beyond_limit)
    }

    /// Does the same as [`Context::prepare_versions`], for a caller that has the table. (The
    /// collector has locked the list of tables, and must not lock that list again.)
    pub(crate) fn prepare_versions_of(
        &mut self,
        table: &TableCore,
        size: BlockSize,
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let (slab, number) = (table.version_slab(size), usize::from(table.number));
        let VersionBlocks { slabs } = self.versions.as_mut();
        if slabs.len() <= number {
            slabs.resize(number + 1, [None; 2]);
        }
        slabs[number][size as usize] = Some(slab.id());
        Cache::of(&mut self.local.caches, slab).make_ready(slab, count, beyond_limit)
    }

    /// Frees a block that [`Context::version_block`] returned. No other session can reach the
    /// block.
    #[inline]
    pub(crate) fn free_version_block(&mut self, table: &TableCore, size: BlockSize, block: Block) {
        let slab = table.version_slab(size);
        Cache::of(&mut self.local.caches, slab).free(slab, block);
    }

    /// Makes sure that [`Context::version_block`] can be called `number` times. Prefetches the
    /// first `words` words of the block that the last of these calls will return.
    #[inline]
    pub(crate) fn prepare_version(
        &mut self,
        (table, size): (u16, BlockSize),
        number: usize,
        words: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        match self.version_cache(table, size).filter(|cache| cache.ready() >= number) {
            Some(cache) => {
                cache.prefetch_ready(number, words);
                Ok(())
            }
            None => self.fetch_version_blocks((table, size), number, beyond_limit),
        }
    }

    /// Returns a block of `size` for a version of a unit of `table`. The block has been made ready
    /// before; nothing is allocated.
    #[inline]
    pub(crate) fn version_block(&mut self, table: u16, size: BlockSize) -> Block {
        self.version_cache(table, size).expect("the block was reserved before").take_ready()
    }
}
