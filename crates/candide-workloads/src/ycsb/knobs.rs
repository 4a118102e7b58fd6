//! The knobs, and the configurations that were published.

use std::str::FromStr;

use serde::Serialize;

use super::layout::{Joint, Layout, Narrow, Single, Values, Wide, Word, describe};
use crate::workload::{require, require_theta, require_transactions};

/// The most operations a transaction may have.
pub const OPERATIONS_MAX: usize = 64;

/// The three mixes of STOv2. The paper leaves two of the numbers out; they are those of its code.
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

/// How much transactions of the workload with narrow columns conflict, as they were set for TicToc
/// and taken up for the study of timestamp granularity.
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

/// What the writes write, and with it what can be checked afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// A fresh random value for the column. Only the rows are counted afterwards.
    Counts,
    /// A fresh random value for the column. Every column must be alphanumeric afterwards.
    Values,
    /// One more in a counter at the head of the column. The counters must add up to the committed
    /// writes: no update was lost, none was made twice.
    Increment,
    /// A column filled with a tag that names the writer and the write. What survives must be its
    /// writer's last committed write to that column, whole.
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

/// Which operations write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Writes {
    /// Each with this probability.
    #[serde(rename = "write_probability")]
    Probability(f64),
    /// This number of operations of each transaction, the first ones.
    #[serde(rename = "writes")]
    First(usize),
}

/// What a write does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Writes a column unseen.
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
    /// The name to report results under.
    #[serde(skip)]
    pub name: String,
    /// What rows look like.
    #[serde(serialize_with = "describe")]
    pub layout: L,
    /// Rows in the table, with keys from 0.
    pub rows: u64,
    /// Operations per transaction.
    pub operations: usize,
    /// Which of them write.
    #[serde(flatten)]
    pub writes: Writes,
    /// What a write does.
    pub access: Access,
    /// The share of transactions in which no operation writes, whatever [`Ycsb::writes`] says.
    pub read_only: f64,
    /// The skew of the keys: 0 is uniform, and the smaller the key the more often it is drawn.
    pub theta: f64,
    /// Whether a transaction goes through its keys in ascending order, or as they were drawn.
    pub sorted: bool,
    /// Whether the keys of a transaction are redrawn until they differ.
    pub distinct: bool,
    /// Whether the table keeps its keys in order.
    pub ordered: bool,
    /// Transactions generated per thread beforehand and replayed over and over.
    pub transactions: usize,
    /// What is written, and what is checked.
    pub verify: Verify,
    /// In what it differs from what it is named after.
    #[serde(skip)]
    pub differences: &'static [&'static str],
}

impl<L: Layout> Ycsb<L> {
    /// Sixteen blind operations on ten million rows, half of them writes.
    pub(crate) fn blind(name: String, layout: L) -> Self {
        Ycsb {
            name,
            layout,
            rows: 10_000_000,
            operations: 16,
            writes: Writes::Probability(0.5),
            access: Access::Blind,
            read_only: 0.0,
            theta: 0.99,
            sorted: true,
            distinct: true,
            ordered: false,
            transactions: 200_000,
            verify: Verify::Counts,
            differences: &[],
        }
    }

    /// Two uniform reads, where the other mixes have sixteen operations.
    fn two_reads(self) -> Self {
        Ycsb { operations: 2, writes: Writes::Probability(0.0), theta: 0.0, ..self }
    }

    pub(super) fn validate_knobs(&self) -> Result<(), String> {
        let rows_min = if self.distinct { self.operations as u64 } else { 1 };
        let rows_max = u64::from(u32::MAX);
        require((1..=OPERATIONS_MAX).contains(&self.operations), || {
            format!(
                "operations per transaction must be from 1 to {OPERATIONS_MAX}, not {}",
                self.operations
            )
        })?;
        require((rows_min..=rows_max).contains(&self.rows), || {
            let least = format!("{rows_min} (a transaction's keys have to fit)");
            format!("rows must be from {least} to {rows_max}, not {}", self.rows)
        })?;
        match self.writes {
            Writes::Probability(probability) => {
                require((0.0..=1.0).contains(&probability), || {
                    format!("the write probability must be from 0 to 1, not {probability}")
                })?
            }
            Writes::First(count) => require(count <= self.operations, || {
                format!("of {0} operations from 0 to {0} can write, not {count}", self.operations)
            })?,
        }
        require((0.0..=1.0).contains(&self.read_only), || {
            format!(
                "the share of read-only transactions must be from 0 to 1, not {}",
                self.read_only
            )
        })?;
        require(self.access != Access::ReadAnother || L::Values::COUNT > 1, || {
            "there is no other column to read".to_string()
        })?;
        require_theta(self.theta)?;
        require_transactions(self.transactions)
    }
}

impl Ycsb {
    /// `mode` as it was published, over ten million rows and without verification.
    pub fn published(mode: Mode) -> Self {
        let mix = Self::blind(format!("ycsb-{mode:?}").to_lowercase(), Wide);
        match mode {
            Mode::A => mix,
            Mode::B => Ycsb { writes: Writes::Probability(0.05), theta: 0.8, ..mix },
            Mode::C => mix.two_reads(),
        }
    }
}

impl Ycsb<Single> {
    /// The YCSB of Cicada (SIGMOD 2017): 16 operations, half of which read a row of 100 bytes and
    /// the others modify one.
    pub fn cicada() -> Self {
        Ycsb {
            access: Access::Modify,
            sorted: false,
            differences: &["hot rows are neighbours, where Cicada scatters them"],
            ..Self::blind("kv-cicada".to_string(), Single)
        }
    }

    /// The YCSB of Silo (SOSP 2013): one operation on an ordered table, of which one in five puts a
    /// row of 100 bytes unseen.
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
    /// The micro-benchmark of STO's indexes: 20 operations on words, of which one in five writes,
    /// but in four of five transactions none does.
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

    /// Cicada's single counter, which every transaction reads and writes.
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

    /// The YCSB of CCBench (VLDB 2020): ten operations on an ordered table, half of which write
    /// unseen; a transaction may draw a key more than once.
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
    /// The study of timestamp granularity (Huang et al., 2018) as it was published, over ten
    /// million rows and without verification.
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
    /// The highly contended workload of MOCC (VLDB 2016) as it was published: ten operations on
    /// fifty rows, of which the first `modifications` read and write and the others read. Without
    /// verification.
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

    /// The YCSB of DBx1000 (VLDB 2014): 16 operations, one in ten a write, theta 0.6.
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
