//! The results of a figure, by its panels and lines.

use serde::Serialize;

use super::doubt::Doubt;
use super::number::range;
use super::sets::SetSizes;

/// A measured figure. The names of the fields are the interface to other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: &'static str,
    pub(crate) lines: Vec<MeasuredLine>,
    /// The verdicts on the claims about the lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) verdicts: Vec<Verdict>,
    /// The grades of the lines that are graded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) grades: Vec<Grade>,
    /// The quantities that are shown beside throughput.
    #[serde(skip)]
    pub(crate) shows: Shown,
    /// The deviations from the published figure.
    pub(crate) deviations: Vec<String>,
}

/// A measured line or bar.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredLine {
    /// The title of the line's panel.
    pub(crate) panel: &'static str,
    pub(crate) label: String,
    /// The transaction types that are counted; `None` if all types are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counted: Option<String>,
    /// The label of the line of the same panel with which this line is compared; `None` if it is
    /// not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    /// The claim of the paper's text about the line; `None` if the text has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Published>,
    /// One point for each number of threads that was run.
    pub(crate) points: Vec<Point>,
}

/// The results of a line with one number of threads.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) threads: usize,
    /// The median throughput of the rounds.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The median of the ratios to the line with which this line is compared. Each ratio is between
    /// results of the same round. `None` if there is no such line.
    pub(crate) of_base: Option<f64>,
    /// The ratios of the rounds, of which `of_base` is the median.
    #[serde(skip)]
    pub(crate) ratio_runs: Vec<f64>,
    /// The reason why `of_base` says nothing; `None` if it is not in doubt. A ratio in doubt is
    /// neither printed nor drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<Doubt>,
    /// The least share of a core that a thread had; `None` if the system does not report it.
    #[serde(skip)]
    pub(crate) core_share: Option<f64>,
    /// The share of attempts that were aborted.
    pub(crate) abort_ratio: f64,
    /// The sizes of read and write sets, over all rounds; `None` if they were not counted.
    #[serde(flatten)]
    pub(crate) sets: Option<SetSizes>,
    /// The size of the read set, relative to the line it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read_set_of_base: Option<f64>,
    /// The 99.9th percentile of the latencies of all types that are counted, over all rounds;
    /// `None` if the figure does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p999_us: Option<f64>,
    /// The percentiles 50, 90 and 99 of these latencies; `None` if the figure does not show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_us: Option<[f64; 3]>,
    /// The bytes that tables and indexes took after the last run; `None` as for the percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table_bytes: Option<u64>,
    /// The throughput as a multiple of that of the same program without transactions, on one
    /// thread; `None` if there is no such program, or as for the percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of_sequential: Option<f64>,
    /// The number of times that the system made a thread leave its core, on average in a round;
    /// `None` if the figure does not show the number, or the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) involuntary_switches: Option<f64>,
    /// The phases by name, each of all rounds together; empty if the workload has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) phases: Vec<PhaseResult>,
    /// The locks that were taken by policy in all rounds.
    #[serde(skip)]
    pub(crate) locks_taken: u64,
    /// The index of the full result in the list of results.
    pub(crate) result: usize,
    /// The index of the case, and the index of the number of threads within the case.
    #[serde(skip)]
    pub(crate) of: (usize, usize),
}

impl Point {
    /// Returns the ratio to the line with which this line is compared; `None` if there is none, or
    /// if it is in doubt.
    pub(crate) fn told_ratio(&self) -> Option<f64> {
        self.of_base.filter(|_| self.doubt.is_none())
    }

    /// Returns the throughput of the slowest and of the fastest round.
    pub(crate) fn range(&self) -> (f64, f64) {
        range(&self.tps_runs)
    }
}

/// The results of all phases of one name.
#[derive(Debug, Serialize)]
pub(crate) struct PhaseResult {
    pub(crate) name: &'static str,
    /// The median throughput of the rounds.
    pub(crate) throughput_tps: f64,
    pub(crate) tps_runs: Vec<f64>,
    /// The share of attempts that were aborted.
    pub(crate) abort_ratio: f64,
    /// The share of the attempts in the first 5 ms of each phase that were aborted.
    pub(crate) abort_ratio_at_first: f64,
    /// The share of the later attempts that were aborted.
    pub(crate) abort_ratio_later: f64,
}

/// The quantities that a figure shows beside throughput and aborted attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Throughput,
    /// The sizes of read and write sets.
    SetSizes,
    /// The share of commits that OCC would have aborted.
    StaleCommits,
    /// The 99.9th percentile of latencies, and the number of times that threads were made to leave
    /// their cores.
    Tails,
    /// The percentiles 50, 90 and 99 of latencies, memory, and the throughput as a multiple of that
    /// of a sequential program.
    Commits,
}

impl Shown {
    /// Returns whether sizes of read and write sets must be counted by transaction type.
    pub fn counts_sets(self) -> bool {
        matches!(self, Shown::SetSizes | Shown::StaleCommits)
    }
}

/// A claim of the paper's text about a line. (The heights of bars are not in the text.)
#[derive(Debug, Clone, Default, Serialize)]
pub struct Published {
    /// The claim in words, with the number of threads to which it applies.
    pub text: &'static str,
    /// The smallest and the largest ratio to the line with which this line is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_base: Option<[f64; 2]>,
    /// The committed transactions per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_tps: Option<f64>,
    /// The share of attempts that were aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_ratio: Option<f64>,
    /// The size of the read set, relative to the line it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_set_of_base: Option<f64>,
    /// The share of commits that OCC would have aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occ_would_abort: Option<f64>,
}

impl Published {
    /// Returns a claim in words without numbers.
    pub fn words(text: &'static str) -> Option<Published> {
        Some(Published { text, ..Published::default() })
    }

    /// Returns a claim about the ratio to the base, which is between `from` and `to`.
    pub fn ratio(from: f64, to: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, of_base: Some([from, to]), ..Published::default() })
    }

    /// Returns a claim about the share of attempts that were aborted.
    pub fn aborted(ratio: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, abort_ratio: Some(ratio), ..Published::default() })
    }

    /// Returns a claim about the throughput and about the share of attempts that were aborted.
    pub fn measured(tps: f64, aborted: f64, text: &'static str) -> Option<Published> {
        let (throughput_tps, abort_ratio) = (Some(tps), Some(aborted));
        Some(Published { text, throughput_tps, abort_ratio, ..Published::default() })
    }

    /// Returns a published size of the read set, relative to the base.
    pub fn read_set(ratio: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, read_set_of_base: Some(ratio), ..Published::default() })
    }

    /// Returns a published share of commits that OCC would have aborted.
    pub fn would_abort(share: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, occ_would_abort: Some(share), ..Published::default() })
    }
}

/// The verdict on a claim. The names of the fields are the interface to other programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) claim: String,
    pub(crate) threads: usize,
    /// The value; `None` if there was nothing to compare with.
    pub(crate) measured: Option<f64>,
    /// Whether the claim holds here; `None` if that is in doubt.
    pub(crate) holds: Option<bool>,
    /// The reason why it is not told whether the claim holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<Doubt>,
    /// The value in words, or the reason for the doubt.
    #[serde(skip)]
    pub(crate) words: String,
}

impl Verdict {
    /// Returns whether the claim holds, in words.
    pub(crate) fn outcome(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "open",
        }
    }
}

/// The grade of a line. The names of the fields are the interface to other programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Grade {
    pub(crate) protocol: &'static str,
    pub(crate) choice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<&'static str>,
    /// The largest number of threads with which the line was compared.
    pub(crate) threads: usize,
    /// The ratio of the throughputs with that many threads.
    pub(crate) of_base: f64,
    /// The reason why the grade says nothing; `None` if it is not in doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<Doubt>,
    pub(crate) grade: &'static str,
}
