//! YCSB as papers on transactions use it: transactions of several point reads and writes of single
//! columns, with keys drawn from a Zipf distribution. A type, the [`Layout`], determines the width
//! of the columns, and the columns that share a timestamp. Everything else is a knob.
//!
//! | | layout | operations |
//! |---|---|---|
//! | [`Ycsb::published`], A, B and C of STOv2 (VLDB 2020) | [`Wide`] | 16 or 2, blind writes |
//! | the same, by [`Ycsb::in_thirds`] | [`WideInThirds`] | 16 or 2, blind writes |
//! | the same, by [`YcsbStrings::new`] | ten columns of `String` | 16 or 2, blind writes |
//! | [`Ycsb::granularity`], of the study of timestamp granularity (2018) | [`Narrow`] | 16 or 2, blind writes |
//! | [`Ycsb::hot`], of MOCC (VLDB 2016) | [`Joint`] | 10 on fifty rows, of which the first ones read and write |
//! | [`Ycsb::dbx1000`] | [`Joint`] | 16, few of them writes, which are blind |
//! | [`Ycsb::cicada`], [`Ycsb::silo`] | [`Single`] | 16 that read or modify; 1, with blind writes |
//! | [`Ycsb::index`], [`Ycsb::counter`], [`Ycsb::cc_bench`] | [`Word`] | 20; 1, always on the same row; 10 |

mod audit;
mod knobs;
mod layout;
mod operation;
mod row;
mod scan;
mod strings;
mod transaction;
mod writer;

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard};

use candide::{Database, Protocol, Session, Table, TableOptions};

use crate::hottest::if_hot;
use crate::replay::{Replay, Stopped};
use crate::{Consistency, Failure, Loaded, Loading, Size, Workload, rng};
pub use knobs::{Access, Contention, Mode, OPERATIONS_MAX, Verify, Writes, Ycsb};
pub use layout::{
    COLUMNS_MAX, Joint, JointInOrder, Layout, Narrow, Single, Value, Values, Wide, WideInThirds,
    Word,
};
pub(crate) use operation::Operation;
use row::Pool;
pub use row::UserRow;
pub(crate) use scan::scan_all;
pub use strings::{StringsRow, StringsTables, StringsWorker, YcsbStrings};
pub use transaction::YcsbWorker;
pub(crate) use transaction::{Attempt, Manner};
use writer::Tally;
pub(crate) use writer::Writer;

/// The random stream of the loader's values. Small stream numbers belong to the keys and the
/// threads.
const POOL_STREAM: u64 = u64::MAX - 1;

impl<L: Layout> Workload for Ycsb<L> {
    type Loaded<P: Protocol> = YcsbTables<P, L>;

    const KINDS: &'static [&'static str] = &["read-only", "read-write"];
    const TABLES: &'static [&'static str] = &["usertable"];

    fn name(&self) -> String {
        self.name.clone()
    }

    fn keys(&self) -> u64 {
        self.rows
    }

    fn size(&self) -> Size {
        let size = Size::of(self.rows, "rows", UserRow::<L>::BYTES);
        size.with_inputs::<Operation>(self.transactions.saturating_mul(self.operations))
    }

    fn unchecked(&self) -> Option<&'static str> {
        match self.verify {
            Verify::Counts => {
                Some("only the number of rows is checked: a lost update would go unnoticed")
            }
            Verify::Values => {
                Some("values are checked for their form only: a lost update would go unnoticed")
            }
            Verify::Increment | Verify::Tag => None,
        }
    }

    fn differences(&self) -> Vec<&'static str> {
        let written = match self.verify {
            Verify::Increment => Some(
                "a write increments the head of its column, so that lost updates show, instead of setting the column",
            ),
            Verify::Tag => Some(
                "a write sets its column to a tag that names it, instead of to characters drawn at random",
            ),
            Verify::Counts | Verify::Values => Some(
                "a write sets its column to one of 128 values made beforehand of characters drawn at random, which stay in the cache",
            ),
        };
        let think = self.think.difference();
        self.differences.iter().copied().chain(written).chain(think).collect()
    }

    fn hottest(&self) -> Option<&'static str> {
        if_hot("usertable[0]", self.rows, self.theta)
    }

    fn validate(&self) -> Result<(), String> {
        self.validate_knobs()
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<YcsbTables<P, L>, Failure> {
        self.load_as("usertable", db, loading)
    }
}

impl<L: Layout> Ycsb<L> {
    /// Creates and fills a table named `name`.
    pub(crate) fn load_as<P: Protocol>(
        &self,
        name: &str,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<YcsbTables<P, L>, Failure> {
        let options = TableOptions::default().capacity(self.rows as usize);
        let table = db.table_with(name, if self.ordered { options.ordered() } else { options })?;
        let seed = loading.seed;
        let pool = Pool::new(&mut rng::stream(seed, POOL_STREAM));
        loading.fill(db, self.rows, |tx, key| {
            let mut rng = rng::stream(seed, key);
            let columns = L::Values::from_fn(|_| self.verify.initial(pool.get(rng.usize(..))));
            table.insert(tx, UserRow { key, columns })
        })?;
        Ok(YcsbTables { table, knobs: self.clone(), seed, tally: Mutex::default() })
    }
}

/// The filled table.
pub struct YcsbTables<P: Protocol, L: Layout = Wide> {
    /// The only table.
    pub table: Table<UserRow<L>, P>,
    knobs: Ycsb<L>,
    seed: u64,
    tally: Mutex<Tally>,
}

impl<P: Protocol, L: Layout> YcsbTables<P, L> {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("no thread panics while holding the tally")
    }

    /// Returns the operations of thread number `thread`, and the writer of its values.
    pub(crate) fn inputs(
        &self,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> (Replay<Operation>, Writer<L::Value>) {
        let mut rng = rng::stream(self.seed, thread as u64);
        let operations = Operation::draw_all(&self.knobs, &mut rng, stopped);
        let writer = Writer::new(&self.knobs, thread, &mut rng, &mut self.tally());
        (Replay::new(operations, self.knobs.operations), writer)
    }

    /// Adds the writes of `writer` to the tally.
    pub(crate) fn absorb_writer(&self, writer: Writer<L::Value>) {
        self.tally().absorb(writer);
    }

    /// Checks the table, and returns the findings.
    pub(crate) fn audit(&self, session: &RefCell<Session<P>>) -> Result<Consistency, Failure> {
        audit::check(&self.table, session, &self.knobs, &self.tally())
    }
}

impl<P: Protocol, L: Layout> Loaded<P> for YcsbTables<P, L> {
    type Worker = YcsbWorker<P, L>;

    fn worker_unless(
        &self,
        session: Session<P>,
        thread: usize,
        stopped: Stopped<'_>,
    ) -> YcsbWorker<P, L> {
        let (operations, writer) = self.inputs(thread, stopped);
        YcsbWorker::new(session, self.table.clone(), operations, self.knobs.manner(), writer)
    }

    fn absorb(&self, worker: YcsbWorker<P, L>) {
        self.absorb_writer(worker.into_writer());
    }

    fn check(&self, session: Session<P>) -> Result<Consistency, Failure> {
        self.audit(&RefCell::new(session))
    }
}
