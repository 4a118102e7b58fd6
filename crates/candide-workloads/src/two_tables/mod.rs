//! Two workloads of MOCC (VLDB 2016) over two tables, of which a small one has a single row that
//! all transactions want, and a large one has a million that are only read.

mod long_scan;
mod shifting;

use std::cell::RefCell;

use candide::{Database, Protocol, Session};

use crate::ycsb::{Joint, Layout, Verify, Writes, Ycsb, YcsbTables};
use crate::{Consistency, Failure, Loading};
pub use long_scan::{LongScan, LongScanTables, LongScanWorker};
pub use shifting::{Shifting, ShiftingTables, ShiftingWorker};

/// The tables, filled.
pub struct TwoTables<P: Protocol, L: Layout> {
    /// One row, with a counter of committed writes at the head of each column.
    pub small: YcsbTables<P, Joint>,
    /// The rows that are never written.
    pub large: YcsbTables<P, L>,
}

impl<P: Protocol, L: Layout> TwoTables<P, L> {
    /// Creates and fills the tables: a large one with so many `rows`, of which transactions read
    /// `reads` that differ. So many `transactions` are drawn per thread.
    fn load(
        layout: L,
        rows: u64,
        reads: usize,
        transactions: usize,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self, Failure> {
        let small = Ycsb {
            rows: 1,
            operations: 1,
            transactions,
            verify: Verify::Increment,
            ..Ycsb::hot(1)
        };
        let large = Ycsb {
            rows,
            operations: reads,
            writes: Writes::First(0),
            theta: 0.0,
            sorted: false,
            transactions,
            // Columns full of tags tell whether they are as they were.
            verify: Verify::Tag,
            ..Ycsb::blind("large".to_string(), layout)
        };
        Ok(TwoTables {
            small: small.load_as("small", db, loading)?,
            large: large.load_as("large", db, loading)?,
        })
    }

    /// Checks that the small table counts what was committed, and the large one is as it was
    /// loaded.
    fn check(&self, session: &RefCell<Session<P>>) -> Result<Consistency, Failure> {
        let mut consistency = Consistency::default();
        for (name, found) in
            [("small", self.small.audit(session)?), ("large", self.large.audit(session)?)]
        {
            let failed =
                found.failed.iter().map(|failure| format!("{name} table: {failure}")).collect();
            consistency.merge(Consistency { failed, ..found });
        }
        Ok(consistency)
    }
}
