//! The knobs, and the published configurations.

use std::str::FromStr;

use serde::Serialize;

use super::layout::{Joint, Layout, Narrow, Single, Values, Wide, WideInThirds, Word, describe};
use crate::Think;
use crate::workload::{require, require_range, require_share, require_theta, require_transactions};

/// The largest number of operations that a transaction may have.
pub const OPERATIONS_MAX: usize = 64;

/// The three mixes of STOv2. The paper omits two of these numbers, which are taken from its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// High contention: 16 operations, half of them writes, theta 0.99.
    A,
    /// Medium contention: 16 operations, one in twenty a write, theta 0.8.
    B,
    /// No contention: 2 uniform reads.
    C,
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "a" => Ok(Mode::A),
            "b" => Ok(Mode::B),
            "c" => Ok(Mode::C),
            _ => Err("expected a, b or c"),
        }
    }
}

/// The degree of contention in the workload with narrow columns. The settings come from TicToc, and
/// the study of timestamp granularity adopted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contention {
    /// 16 operations, half of them writes, theta 0.9.
    High,
    /// 16 operations, one in ten a write, theta 0.8.
    Medium,
    /// 2 uniform reads.
    ReadOnly,
}

impl FromStr for Contention {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "high" => Ok(Contention::High),
            "medium" => Ok(Contention::Medium),
            "read-only" => Ok(Contention::ReadOnly),
            _ => Err("expected high, medium or read-only"),
        }
    }
}

/// The values that writes write. The values determine what can be checked afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// A new random value for the column. Only the rows are counted afterwards.
    Counts,
    /// A new random value for the column. Every column must be alphanumeric afterwards.
    Values,
    /// An increment of a counter at the head of the column. The counters must add up to the
    /// committed writes: no update was lost, and none was made twice.
    Increment,
    /// A column filled with a tag that names the writer and the write. The final value of a column
    /// must be, as a whole, the last committed write of its writer to that column.
    Tag,
}

impl FromStr for Verify {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "counts" => Ok(Verify::Counts),
            "values" => Ok(Verify::Values),
            "increment" => Ok(Verify::Increment),
            "tag" => Ok(Verify::Tag),
            _ => Err("expected counts, values, increment or tag"),
        }
    }
}

/// The choice of the operations that write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Writes {
    /// Each operation writes with this probability.
    #[serde(rename = "write_probability")]
    Probability(f64),
    /// The first operations of each transaction write; the field is their number.
    #[serde(rename = "writes")]
    First(usize),
}

/// The way in which a write accesses its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Writes a column without reading it.
    Blind,
    /// Reads a column and writes it.
    Modify,
    /// Reads a column and writes another.
    ReadAnother,
}

/// The knobs.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Ycsb<L: Layout = Wide> {
    /// The name under which results are reported.
    #[serde(skip)]
    pub name: String,
    /// The layout of rows.
    #[serde(serialize_with = "describe")]
    pub layout: L,
    /// The number of rows in the table. Their keys start from 0.
    pub rows: u64,
    /// The number of operations per transaction.
    pub operations: usize,
    /// The choice of the operations that write.
    #[serde(flatten)]
    pub writes: Writes,
    /// The way in which a write accesses its row.
    pub access: Access,
    /// Whether a write that reads its row first reads it for update.
    pub for_update: bool,
    /// The share of transactions in which no operation writes, independent of [`Ycsb::writes`].
    pub read_only: f64,
    /// The skew of the keys: 0 is uniform. Otherwise smaller keys are drawn more often.
    pub theta: f64,
    /// Whether a transaction accesses its keys in ascending order; otherwise in the order drawn.
    pub sorted: bool,
    /// Whether the keys of a transaction are redrawn until they differ.
    pub distinct: bool,
    /// Whether the table keeps its keys in order.
    pub ordered: bool,
    /// The work after each operation. A read and the write that follows it are one operation.
    #[serde(rename = "think_ns")]
    pub think: Think,
    /// The number of transactions that are generated per thread beforehand and replayed in a cycle.
    pub transactions: usize,
    /// The values that are written, which determine what is checked afterwards.
    pub verify: Verify,
    /// The differences from the workload of the same name.
    #[serde(skip)]
    pub differences: &'static [&'static str],
}

impl<L: Layout> Ycsb<L> {
    /// Returns a workload of sixteen operations on ten million rows. Half of the operations are
    /// writes, which are blind.
    pub(crate) fn blind(name: String, layout: L) -> Self {
        Ycsb {
            name,
            layout,
            rows: 10_000_000,
            operations: 16,
            writes: Writes::Probability(0.5),
            access: Access::Blind,
            for_update: false,
            read_only: 0.0,
            theta: 0.99,
            sorted: true,
            distinct: true,
            ordered: false,
            think: Think::NONE,
            transactions: 200_000,
            verify: Verify::Counts,
            differences: &[],
        }
    }

    /// Returns this workload with two uniform reads instead of sixteen operations.
    fn two_reads(self) -> Self {
        Ycsb { operations: 2, writes: Writes::Probability(0.0), theta: 0.0, ..self }
    }

    pub(super) fn validate_knobs(&self) -> Result<(), String> {
        let rows_min = if self.distinct { self.operations as u64 } else { 1 };
        let rows_max = u64::from(u32::MAX);
        require_range("operations per transaction", 1..=OPERATIONS_MAX, self.operations)?;
        require((rows_min..=rows_max).contains(&self.rows), || {
            let least = format!("{rows_min} (a transaction's keys have to fit)");
            format!("rows must be from {least} to {rows_max}, not {}", self.rows)
        })?;
        match self.writes {
            Writes::Probability(probability) => {
                require_range("the write probability", 0.0..=1.0, probability)?
            }
            Writes::First(count) => require(count <= self.operations, || {
                format!("operations that write must be from 0 to {0}, not {count}", self.operations)
            })?,
        }
        require_share(self.read_only)?;
        require(self.access != Access::ReadAnother || L::Values::COUNT > 1, || {
            "there is no other column to read".to_string()
        })?;
        require_theta(self.theta)?;
        require_transactions(self.transactions)
    }
}

impl Ycsb {
    /// Returns the mix `mode` as published, over ten million rows and without verification.
    pub fn published(mode: Mode) -> Self {
        let mix = Self::blind(format!("ycsb-{mode:?}").to_lowercase(), Wide);
        match mode {
            Mode::A => mix,
            Mode::B => Ycsb { writes: Writes::Probability(0.05), theta: 0.8, ..mix },
            Mode::C => mix.two_reads(),
        }
    }

    /// Returns the same workload with three timestamps to a row.
    pub fn in_thirds(self) -> Ycsb<WideInThirds> {
        Ycsb {
            name: self.name,
            layout: WideInThirds,
            rows: self.rows,
            operations: self.operations,
            writes: self.writes,
            access: self.access,
            for_update: self.for_update,
            read_only: self.read_only,
            theta: self.theta,
            sorted: self.sorted,
            distinct: self.distinct,
            ordered: self.ordered,
            think: self.think,
            transactions: self.transactions,
            verify: self.verify,
            differences: self.differences,
        }
    }
}

impl Ycsb<Single> {
    /// Returns the YCSB of Cicada (SIGMOD 2017): 16 operations. Half of them read a row of 100
    /// bytes, and the others modify one.
    pub fn cicada() -> Self {
        Ycsb {
            access: Access::Modify,
            sorted: false,
            differences: &["hot rows are neighbours, where Cicada scatters them"],
            ..Self::blind("kv-cicada".to_string(), Single)
        }
    }

    /// Returns the YCSB of Silo (SOSP 2013): one operation on an ordered table. One operation in
    /// five writes a row of 100 bytes without reading it.
    pub fn silo() -> Self {
        Ycsb {
            operations: 1,
            writes: Writes::Probability(0.2),
            theta: 0.0,
            ordered: true,
            ..Self::blind("kv-silo".to_string(), Single)
        }
    }
}

impl Ycsb<Word> {
    /// Returns the micro-benchmark of STO's indexes: 20 operations on words. In four of five
    /// transactions no operation writes; in the others, one in five operations writes.
    pub fn index() -> Self {
        Ycsb {
            operations: 20,
            writes: Writes::Probability(0.2),
            read_only: 0.8,
            theta: 0.8,
            differences: &["a value has one timestamp, where STO's has from one to eight"],
            ..Self::blind("kv-index".to_string(), Word)
        }
    }

    /// Returns Cicada's single counter, which every transaction reads and writes.
    pub fn counter() -> Self {
        Ycsb {
            rows: 1,
            operations: 1,
            writes: Writes::First(1),
            access: Access::Modify,
            theta: 0.0,
            differences: &["a row has 8 bytes, where Cicada's has 16"],
            ..Self::blind("kv-counter".to_string(), Word)
        }
    }

    /// Returns the YCSB of CCBench (VLDB 2020): ten operations on an ordered table, of which half
    /// write without reading. A transaction may draw a key more than once.
    pub fn cc_bench() -> Self {
        Ycsb {
            rows: 1_000_000,
            operations: 10,
            theta: 0.0,
            sorted: false,
            distinct: false,
            ordered: true,
            differences: &["a row has 8 bytes, where CCBench's has 4"],
            ..Self::blind("kv-ccbench".to_string(), Word)
        }
    }
}

impl Ycsb<Narrow> {
    /// Returns the workload of the study of timestamp granularity (Huang et al., 2018) as
    /// published, over ten million rows and without verification.
    pub fn granularity(contention: Contention) -> Self {
        let mix = |name: &str| Self {
            transactions: 1_000_000,
            ..Self::blind(format!("ycsb-narrow-{name}"), Narrow)
        };
        match contention {
            Contention::High => Ycsb { theta: 0.9, ..mix("high") },
            Contention::Medium => {
                Ycsb { writes: Writes::Probability(0.1), theta: 0.8, ..mix("medium") }
            }
            Contention::ReadOnly => mix("read-only").two_reads(),
        }
    }
}

impl Ycsb<Joint> {
    /// Returns the highly contended workload of MOCC (VLDB 2016) as published, without
    /// verification: ten operations on fifty rows. The first `modifications` operations read and
    /// write, and the others read.
    pub fn hot(modifications: usize) -> Self {
        Ycsb {
            rows: 50,
            operations: 10,
            writes: Writes::First(modifications),
            access: Access::ReadAnother,
            theta: 0.0,
            sorted: false,
            ..Self::blind(format!("ycsb-hot-{modifications}"), Joint)
        }
    }

    /// Returns the YCSB of DBx1000 (VLDB 2014): 16 operations, of which one in ten writes, with
    /// theta 0.6.
    pub fn dbx1000() -> Self {
        Ycsb {
            rows: 10 << 20,
            writes: Writes::Probability(0.1),
            theta: 0.6,
            sorted: false,
            differences: &[
                "keys that a transaction has drawn already are drawn anew, where DBx1000 makes do with fewer operations",
                "any column is written, where DBx1000 writes eight bytes of the first",
            ],
            ..Self::blind("kv-dbx1000".to_string(), Joint)
        }
    }
}
