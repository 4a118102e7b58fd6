//! Two workloads of MOCC (VLDB 2016) over two tables. The small table has a single row that all
//! transactions access. The large table has a million rows that are only read.

mod long_scan;
mod shifting;

use std::cell::RefCell;

use candide::{Database, Protocol, Session};

use crate::ycsb::{Joint, Layout, Verify, Writes, Ycsb, YcsbTables};
use crate::{Consistency, Failure, Loading};
pub use long_scan::{LongScan, LongScanTables, LongScanWorker};
pub use shifting::{Shifting, ShiftingTables, ShiftingWorker};

/// The names of the tables.
const TABLES: [&str; 2] = ["small", "large"];

/// The filled tables.
pub struct TwoTables<P: Protocol, L: Layout> {
    /// One row, with a counter of committed writes at the head of each column.
    pub small: YcsbTables<P, Joint>,
    /// The rows that are never written.
    pub large: YcsbTables<P, L>,
}

impl<P: Protocol, L: Layout> TwoTables<P, L> {
    /// Creates and fills the tables. The large table has `rows` rows, of which a transaction reads
    /// `reads` different ones. Each thread draws `transactions` transactions.
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
            // Columns hold tags, so that the check finds any change of a column.
            verify: Verify::Tag,
            ..Ycsb::blind("large".to_string(), layout)
        };
        let [small_name, large_name] = TABLES;
        Ok(TwoTables {
            small: small.load_as(small_name, db, loading)?,
            large: large.load_as(large_name, db, loading)?,
        })
    }

    /// Checks that the counters of the small table match the committed writes, and that the large
    /// table is unchanged since loading.
    fn check(&self, session: &RefCell<Session<P>>) -> Result<Consistency, Failure> {
        let mut consistency = Consistency::default();
        let found = [self.small.audit(session)?, self.large.audit(session)?];
        for (name, found) in TABLES.into_iter().zip(found) {
            let failed =
                found.failed.iter().map(|failure| format!("{name} table: {failure}")).collect();
            consistency.merge(Consistency { failed, ..found });
        }
        Ok(consistency)
    }
}
