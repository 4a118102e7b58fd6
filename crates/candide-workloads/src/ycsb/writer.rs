//! The values that transactions write, and the tally of committed writes.

use candide::schema::Field;
use candide::{Abort, Protocol, Row};
use fastrand::Rng;

use super::knobs::{Access, Verify, Writes, Ycsb};
use super::layout::{Layout, Value};
use super::operation::Operation;
use super::row::{Pool, UserRow};

/// One thread's source of values. Only a commit advances the source, so that every attempt of a
/// transaction writes the same values.
pub(crate) enum Writer<V> {
    /// Random values. The next value is number `next` of the pool.
    Values { pool: Pool<V>, next: usize },
    /// Increments, and the number of committed increments.
    Increments { committed: u64 },
    /// Tags.
    Tags { thread: usize, log: TagLog, torn: u64 },
}

impl<V: Value> Writer<V> {
    /// Creates the writer of thread number `thread`. The thread's log of tags moves from `tally`
    /// into the writer; [`Tally::absorb`] moves it back.
    pub(super) fn new<L: Layout>(
        knobs: &Ycsb<L>,
        thread: usize,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Self {
        match knobs.verify {
            Verify::Counts | Verify::Values => Writer::Values { pool: Pool::new(rng), next: 0 },
            Verify::Increment => Writer::Increments { committed: 0 },
            Verify::Tag => {
                let mut log = tally.take_log(thread);
                // A thread that never writes needs no log.
                if knobs.writes != Writes::First(0) {
                    log.last.resize(UserRow::<L>::slot(knobs.rows, 0), 0);
                }
                Writer::Tags { thread, log, torn: 0 }
            }
        }
    }

    /// Executes the write of `operation`, which is at place `position` of its transaction. If a
    /// read has to precede the write, the caller has made that read.
    #[inline]
    pub(super) fn write<L: Layout<Value = V>, P: Protocol>(
        &self,
        row: &Row<'_, UserRow<L>, P>,
        operation: Operation,
        access: Access,
        position: usize,
    ) -> Result<(), Abort>
    where
        V: Field,
    {
        let number = usize::from(operation.column);
        let column = UserRow::<L>::COLUMNS[number];
        match self {
            Writer::Values { pool, next } => row.update(column.set(*pool.get(next + position))),
            Writer::Increments { .. } => {
                let head = UserRow::<L>::HEADS[number];
                match access {
                    Access::Blind => row.update(head.add(1)),
                    Access::Modify | Access::ReadAnother => row.modify(head, |head| *head += 1),
                }
            }
            Writer::Tags { thread, log, .. } => {
                row.update(column.set(log.tag(*thread, position).fill::<L::Value>()))
            }
        }
    }

    /// Passes the value of the write at place `position` of its transaction to `write`, without a
    /// copy.
    ///
    /// # Panics
    /// If writes are increments.
    #[inline]
    pub(super) fn lend<T>(&self, position: usize, write: impl FnOnce(&V) -> T) -> T {
        match self {
            Writer::Values { pool, next } => write(pool.get(next + position)),
            Writer::Increments { .. } => unreachable!("the knobs are checked"),
            Writer::Tags { thread, log, .. } => write(&log.tag(*thread, position).fill()),
        }
    }

    /// Returns whether the bytes of a value that was read mix two writes. If values are not tags,
    /// this is not known, and the function returns `false`.
    #[inline]
    pub(super) fn is_torn(&self, bytes: &[u8]) -> bool {
        matches!(self, Writer::Tags { .. }) && Tag::of(bytes).is_none()
    }

    /// Adds a committed transaction with `torn_reads` torn reads to the writer's counts.
    #[inline]
    pub(crate) fn committed<L: Layout>(&mut self, operations: &[Operation], torn_reads: u64) {
        let writes = (0u64..).zip(operations).filter(|(_, operation)| operation.write);
        match self {
            Writer::Values { next, .. } => *next += operations.len(),
            Writer::Increments { committed } => *committed += writes.count() as u64,
            Writer::Tags { log, torn, .. } => {
                for (position, operation) in writes {
                    let slot = UserRow::<L>::slot(operation.key.into(), operation.column.into());
                    log.last[slot] = log.sequence + 1 + position;
                }
                log.sequence += operations.len() as u64;
                *torn += torn_reads;
            }
        }
    }
}

/// The writes committed since the table was filled.
#[derive(Default)]
pub(super) struct Tally {
    /// The number of committed increments.
    pub(super) increments: u64,
    /// The number of reads in committed transactions that saw a mix of two writes.
    pub(super) torn: u64,
    /// The tags of each thread.
    logs: Vec<TagLog>,
}

impl Tally {
    fn take_log(&mut self, thread: usize) -> TagLog {
        if self.logs.len() <= thread {
            self.logs.resize_with(thread + 1, TagLog::default);
        }
        std::mem::take(&mut self.logs[thread])
    }

    pub(super) fn absorb<V>(&mut self, writer: Writer<V>) {
        match writer {
            Writer::Values { .. } => {}
            Writer::Increments { committed } => self.increments += committed,
            Writer::Tags { thread, log, torn } => {
                self.logs[thread] = log;
                self.torn += torn;
            }
        }
    }

    /// Returns whether `bytes` may be the final value of a column. The value must be filled with
    /// one tag. The tag is the last one that its writer committed in this column, or the initial
    /// tag if no write to the column was committed.
    pub(super) fn explains(&self, slot: usize, bytes: &[u8]) -> bool {
        match Tag::of(bytes) {
            None => false,
            Some(Tag::INITIAL) => self.logs.iter().all(|log| log.last(slot) == 0),
            Some(tag) => {
                self.logs.get(tag.thread()).is_some_and(|log| log.last(slot) == tag.sequence())
            }
        }
    }
}

/// The tags that one thread has committed. A thread's commits are ordered, so only the last of its
/// writes to a column can survive.
#[derive(Default)]
pub(crate) struct TagLog {
    /// The last sequence number used. Numbers continue from run to run.
    sequence: u64,
    /// The sequence number of the thread's last committed write, for each column of each row; 0 if
    /// there was none.
    last: Vec<u64>,
}

impl TagLog {
    /// Returns the tag of the write at place `position` of the next transaction.
    fn tag(&self, thread: usize, position: usize) -> Tag {
        Tag::new(thread, self.sequence + 1 + position as u64)
    }

    fn last(&self, slot: usize) -> u64 {
        self.last.get(slot).copied().unwrap_or(0)
    }
}

impl<L: Layout> UserRow<L> {
    /// Returns the place of a column in a [`TagLog`].
    pub(super) fn slot(key: u64, column: usize) -> usize {
        key as usize * Self::COUNT + column
    }
}

/// The writer and the order of a write, in eight bytes of seven bits, which are characters: the
/// thread in the upper two bytes, and the thread's sequence number in the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    /// The tag that the loader writes. No thread uses this tag, as sequence numbers begin with 1.
    pub(super) const INITIAL: Tag = Tag(0);
    const SEQUENCE_BITS: u32 = 42;
    const BYTE_BITS: u32 = 7;

    fn new(thread: usize, sequence: u64) -> Self {
        Tag((thread as u64) << Self::SEQUENCE_BITS | sequence)
    }

    fn thread(self) -> usize {
        (self.0 >> Self::SEQUENCE_BITS) as usize
    }

    fn sequence(self) -> u64 {
        self.0 & ((1 << Self::SEQUENCE_BITS) - 1)
    }

    /// Returns a column filled with the tag.
    pub(super) fn fill<V: Value>(self) -> V {
        let bytes = self.bytes();
        V::from_fn(|index| bytes[index % bytes.len()])
    }

    fn bytes(self) -> [u8; 8] {
        std::array::from_fn(|index| (self.0 >> (index as u32 * Self::BYTE_BITS)) as u8 & 0x7f)
    }

    /// Returns the tag that fills `value`; `None` if `value` is a mix of tags.
    fn of(value: &[u8]) -> Option<Tag> {
        let head: &[u8; 8] = value.first_chunk()?;
        let tag = head.iter().rev().fold(0, |tag, &byte| tag << Self::BYTE_BITS | u64::from(byte));
        let fills = value.chunks(head.len()).all(|chunk| *chunk == head[..chunk.len()]);
        (fills && head.is_ascii()).then_some(Tag(tag))
    }
}
