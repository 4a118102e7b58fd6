//! The context of a protocol's functions: the database and the session that it works for.

#![forbid(unsafe_code)]

use super::common::{Common, Engine};
use super::conflict_note::ConflictNote;
use super::contract::Protocol;
use super::garbage::Retired;
use super::own_thread;
use super::table_core::{BlockSize, TableCore};
use super::worker::Local;
use crate::access::WriteSet;
use crate::error::Abort;
use crate::index::NodeAt;
use crate::memory::{Block, Cache, OutOfMemory};
use crate::record::{CellAt, RecordAt};
use crate::sync::{Mutant, Point, mutant, pass};

/// The context of a protocol's function: its database and its session.
pub struct Context<'a, P: Protocol> {
    pub(crate) engine: &'a Common,
    pub(crate) clock: &'a P::Clock,
    pub(crate) local: &'a mut Local,
}

impl<'a, P: Protocol> Context<'a, P> {
    #[inline(always)]
    pub(crate) fn new(engine: &'a Engine<P>, local: &'a mut Local) -> Context<'a, P> {
        Context { engine: &engine.common, clock: &engine.clock, local }
    }

    /// Notes which row a conflict was about, and passes its cause on.
    #[cold]
    pub(crate) fn conflict(&mut self, cause: Abort, at: CellAt) -> Abort {
        let (table, unit, key) = (Some(at.table()), Some(at.unit() as u8), at.key_prefix());
        let is_own_threads =
            cause == Abort::Locked && own_thread::is_held_by_another(at, self.local.id);
        self.local.conflict = Some(ConflictNote { cause, table, unit, key, is_own_threads });
        cause
    }

    /// Has the next attempt lock a unit before it begins.
    #[cold]
    pub(crate) fn want(&mut self, at: CellAt) {
        self.local.wanted.add(self.engine, at);
    }

    /// Notes that a conflict was about an absent key of a table.
    #[cold]
    pub(crate) fn phantom(&mut self, table: u16) -> Abort {
        self.local.conflict =
            Some(ConflictNote { table: Some(table), ..ConflictNote::nowhere(Abort::Phantom) });
        Abort::Phantom
    }

    /// Refuses to start a writing commit while another session has the token (unless it has had it
    /// for too long).
    #[inline]
    pub(crate) fn yield_to_token(&self) -> Result<(), Abort> {
        let must_yield = self.engine.token.is_others(self.local.id) && !self.local.has_yielded;
        if must_yield && !mutant(Mutant::TokenIgnored) { Err(Abort::Yielded) } else { Ok(()) }
    }

    /// Makes room for what a commit may leave behind, so that nothing is allocated while locks are
    /// held.
    #[inline]
    pub(crate) fn reserve_for(&mut self, writes: &WriteSet) {
        self.local.reap_queue.reserve(writes.items().len());
    }

    /// Unlinks a record from its index; it is freed once no reader can hold it.
    pub(crate) fn unlink(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        self.take_out(record, table, merge_into_node);
        self.local.retired.push(Retired::Record { table: table.number, record });
    }

    fn take_out(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        let key = record.key_words(table.layout.key_words());
        table.index.unlink(record, key.as_slice(), &mut self.local.retired_parts, merge_into_node);
        self.local.count_linked(table, false);
        self.local.retire_parts(table.number);
    }

    /// Takes a record out of its index and puts it into the table's index of deleted records, if
    /// that has room for it and `kill` makes it dead. Says whether there is nothing more to be done
    /// about that: if it has not been made dead, it may be another time.
    pub(crate) fn detach_for_snapshots(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        kill: impl FnOnce(&mut Self) -> bool,
        merge_into_node: impl FnOnce(NodeAt),
    ) -> bool {
        let Some(deleted_index) = &table.deleted_index else { return true };
        let key = record.key_words(table.layout.key_words());
        let is_late = mutant(Mutant::StowedLate);
        if !is_late && !deleted_index.enter(record, key.as_slice(), &mut self.local.caches) {
            return true;
        }
        pass(Point::Stowing);
        if !kill(self) {
            deleted_index.leave(record, key.as_slice(), &mut self.local.retired_parts);
            self.local.retire_parts(table.number);
            return false;
        }
        self.take_out(record, table, merge_into_node);
        if is_late {
            pass(Point::Stowing);
            deleted_index.enter(record, key.as_slice(), &mut self.local.caches);
        }
        true
    }

    /// Takes a record out of the index of deleted records; it is freed once no reader can hold it.
    pub(crate) fn clear_out(&mut self, record: RecordAt, table: &TableCore) {
        let deleted_index = table.deleted_index.as_ref().expect("it has been put there");
        let key = record.key_words(table.layout.key_words());
        deleted_index.leave(record, key.as_slice(), &mut self.local.retired_parts);
        self.local.retire_parts(table.number);
        self.local.retired.push(Retired::Record { table: table.number, record });
    }
}

impl<P: Protocol> Context<'_, P> {
    /// Makes sure that [`Context::version_block`] can be called so often for a table and a size,
    /// past the memory limit if need be.
    #[inline]
    pub(crate) fn prepare_versions(
        &mut self,
        (table, size): (u16, BlockSize),
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let is_ready =
            self.local.version_cache(table, size).is_some_and(|cache| cache.ready() >= count);
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

    /// As [`Context::prepare_versions`], for a caller that has the table. (The collector has locked
    /// the list of tables, and may not lock it again.)
    pub(crate) fn prepare_versions_of(
        &mut self,
        table: &TableCore,
        size: BlockSize,
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let (slab, number) = (table.version_slab(size), usize::from(table.number));
        let slabs = &mut self.local.version_slabs;
        if slabs.len() <= number {
            slabs.resize(number + 1, [None; 2]);
        }
        slabs[number][size as usize] = Some(slab.id());
        Cache::of(&mut self.local.caches, slab).make_ready(slab, count, beyond_limit)
    }

    /// Frees a block that [`Context::version_block`] gave and no other session can reach.
    pub(crate) fn free_version_block(&mut self, table: &TableCore, size: BlockSize, block: Block) {
        let slab = table.version_slab(size);
        Cache::of(&mut self.local.caches, slab).free(slab, block);
    }

    /// The same when [`Context::version_block`] will be called for the `number`th time; brings so
    /// many words of that block nearer.
    #[inline]
    pub(crate) fn prepare_version(
        &mut self,
        (table, size): (u16, BlockSize),
        number: usize,
        words: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        match self.local.version_cache(table, size).filter(|cache| cache.ready() >= number) {
            Some(cache) => {
                cache.prefetch_ready(number, words);
                Ok(())
            }
            None => self.fetch_version_blocks((table, size), number, beyond_limit),
        }
    }

    /// A block for a version of a table's unit, one of those made ready. Allocates nothing.
    #[inline]
    pub(crate) fn version_block(&mut self, table: u16, size: BlockSize) -> Block {
        self.local.version_cache(table, size).expect("it has been made ready").take_ready()
    }
}
