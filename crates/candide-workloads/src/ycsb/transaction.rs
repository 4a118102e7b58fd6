//! The transaction, and the worker that repeats it.

use std::hint::black_box;

use candide::report::Stats;
use candide::{Abort, Protocol, RunOptions, Session, Table, Tx};

use super::knobs::{Access, Ycsb};
use super::layout::{Layout, Value, Wide};
use super::operation::Operation;
use super::row::UserRow;
use super::writer::Writer;
use crate::hottest::probe;
use crate::replay::Replay;
use crate::workload::run_as;
use crate::{Probe, Step, Think, Worker};

/// The worker that runs the transactions of one thread.
pub struct YcsbWorker<P: Protocol, L: Layout = Wide> {
    session: Session<P>,
    table: Table<UserRow<L>, P>,
    operations: Replay<Operation>,
    manner: Manner,
    writer: Writer<L::Value>,
}

impl<P: Protocol, L: Layout> YcsbWorker<P, L> {
    pub(super) fn new(
        session: Session<P>,
        table: Table<UserRow<L>, P>,
        operations: Replay<Operation>,
        manner: Manner,
        writer: Writer<L::Value>,
    ) -> Self {
        YcsbWorker { session, table, operations, manner, writer }
    }

    pub(super) fn into_writer(self) -> Writer<L::Value> {
        self.writer
    }
}

impl<P: Protocol, L: Layout> Worker for YcsbWorker<P, L> {
    fn step(&mut self) -> Result<Step, Abort> {
        let YcsbWorker { session, table, operations, manner, writer } = self;
        let operations = operations.next();
        let writes = operations.iter().any(|operation| operation.write);
        let options = if writes { RunOptions::new() } else { RunOptions::new().read_only() };
        let (torn, retries) =
            run_as(session, options, |tx| Attempt::new(tx, table, *manner, writer).run(operations));
        writer.committed::<L>(operations, torn?);
        Ok(Step { kind: usize::from(writes), committed: true, retries })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn hottest(&mut self) -> Option<Box<dyn Probe + '_>> {
        probe(&mut self.session, &self.table, 0)
    }
}

/// The way in which operations access their rows.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) access: Access,
    /// Whether the read of a read-modify-write is a read for update.
    pub(crate) for_update: bool,
    /// The work after each operation.
    pub(crate) think: Think,
}

impl<L: Layout> Ycsb<L> {
    /// Returns the way in which transactions access rows.
    pub(super) fn manner(&self) -> Manner {
        Manner { access: self.access, for_update: self.for_update, think: self.think }
    }
}

/// One attempt at the operations of a transaction on one table.
pub(crate) struct Attempt<'a, P: Protocol, L: Layout> {
    tx: &'a Tx<'a, P>,
    table: &'a Table<UserRow<L>, P>,
    manner: Manner,
    writer: &'a Writer<L::Value>,
    /// The number of operations done.
    position: usize,
    /// The number of reads that saw a mix of two writes.
    torn: u64,
}

impl<'a, P: Protocol, L: Layout> Attempt<'a, P, L> {
    pub(crate) fn new(
        tx: &'a Tx<'a, P>,
        table: &'a Table<UserRow<L>, P>,
        manner: Manner,
        writer: &'a Writer<L::Value>,
    ) -> Self {
        Attempt { tx, table, manner, writer, position: 0, torn: 0 }
    }

    /// Executes `operations` in batches whose cache misses overlap, the largest batches first.
    /// Returns the number of torn reads.
    pub(crate) fn run(mut self, operations: &[Operation]) -> Result<u64, Abort> {
        let rest = self.batches::<16>(operations)?;
        let rest = self.batches::<4>(rest)?;
        let rest = self.batches::<2>(rest)?;
        self.batches::<1>(rest)?;
        Ok(self.torn)
    }

    /// Executes batches of `N` operations while at least `N` are left. Returns the remaining
    /// operations.
    fn batches<'o, const N: usize>(
        &mut self,
        mut operations: &'o [Operation],
    ) -> Result<&'o [Operation], Abort> {
        while let Some((batch, rest)) = operations.split_first_chunk() {
            self.batch::<N>(batch)?;
            operations = rest;
        }
        Ok(operations)
    }

    /// Finds all rows of the batch and prefetches their columns, before it accesses the first
    /// column.
    fn batch<const N: usize>(&mut self, operations: &[Operation; N]) -> Result<(), Abort> {
        let keys = operations.map(|operation| u64::from(operation.key));
        let rows = self.table.find_many(self.tx, &keys)?;
        for (row, operation) in rows.iter().zip(operations) {
            row.prefetch(UserRow::<L>::COLUMNS[usize::from(operation.column)]);
        }
        let Manner { access, for_update, think } = self.manner;
        for (row, operation) in rows.iter().zip(operations) {
            let blind = operation.write && access == Access::Blind;
            if !blind {
                let column = if operation.write { operation.observed } else { operation.column };
                let column = UserRow::<L>::COLUMNS[usize::from(column)];
                let value = black_box(if operation.write && for_update {
                    row.read_for_update(column)?
                } else {
                    row.read(column)?
                });
                self.torn += u64::from(self.writer.is_torn(value.bytes()));
            }
            if operation.write {
                self.writer.write(row, *operation, access, self.position)?;
            }
            think.work();
            self.position += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use candide::{Database, Occ};

    use super::*;
    use crate::ycsb::Ycsb;
    use crate::{Loading, Workload};

    #[test]
    fn work_follows_each_operation_within_the_closure() {
        let time = Duration::from_micros(20);
        let think = Think::new(time).expect("in range");
        let knobs = Ycsb { transactions: 1, think, ..Ycsb::hot(5) };
        let db = Database::<Occ>::builder().build().expect("valid settings");
        let loading = Loading { threads: 1, seed: 1, progress: &|_| {}, stopped: &|| false };
        let tables = knobs.load(&db, &loading).expect("loads");
        let (mut operations, writer) = tables.inputs(0, &|| false);
        let operations = operations.next();
        assert_eq!(operations.len(), 10);
        for count in 1..=10 {
            let took = db.run(|tx| {
                let begun = Instant::now();
                Attempt::new(tx, &tables.table, knobs.manner(), &writer)
                    .run(&operations[..count])?;
                Ok(begun.elapsed())
            });
            let took = took.expect("no other transaction");
            assert!(took >= count as u32 * time, "{took:?} for {count} operations");
        }
    }
}
