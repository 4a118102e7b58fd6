//! The plan of a figure: what it measures and shows.

use serde::Serialize;

use crate::any_workload::{AnyWorkload, Variant};
use crate::registry::Choice;

/// A figure before it is measured.
pub struct Outline {
    /// Its name on the command line.
    pub name: &'static str,
    /// The title, in one line.
    pub title: &'static str,
    /// The paper, and the figure's number there.
    pub source: &'static str,
    /// The machine and the method of the published measurement.
    pub measured: &'static str,
    /// What it shows beside throughput.
    pub shows: Shown,
    /// The cases that are run.
    pub cases: Vec<Case>,
    /// The lines that are shown.
    pub lines: Vec<Line>,
    /// The deviations from the published figure.
    pub deviations: Vec<String>,
}

/// What a figure shows beside throughput and aborted attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Throughput,
    /// The sizes of read and write sets.
    SetSizes,
    /// The share of commits that OCC would have aborted.
    StaleCommits,
}

/// A workload and variant that is run.
pub struct Case {
    /// The workload.
    pub workload: Box<dyn AnyWorkload>,
    /// The setting of its database.
    pub variant: Variant,
    /// With how many threads it is run.
    pub threads: Vec<usize>,
}

/// A line of a diagram, or a bar.
pub struct Line {
    /// The part of the figure.
    pub panel: &'static str,
    /// Its name.
    pub label: String,
    /// The cases whose results make it up.
    pub cases: Vec<usize>,
    /// The transaction types that are counted; all, if empty.
    pub counted: &'static [&'static str],
    /// The line it is compared with.
    pub base: Option<usize>,
    /// The claim of the paper's text about the line; `None` if the text has none.
    pub published: Option<Published>,
}

/// A claim of the paper's text about a line. (Heights of bars can only be measured in the drawing.)
#[derive(Debug, Clone, Default, Serialize)]
pub struct Published {
    /// In words, with the number of threads that it is about.
    pub text: &'static str,
    /// Of the line it is compared with, from and to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_base: Option<[f64; 2]>,
    /// Transactions per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_tps: Option<f64>,
    /// Aborted attempts out of all.
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
    /// Makes it of words without a number.
    pub fn words(text: &'static str) -> Option<Published> {
        Some(Published { text, ..Published::default() })
    }

    /// Makes it of a ratio to the base.
    pub fn ratio(from: f64, to: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, of_base: Some([from, to]), ..Published::default() })
    }

    /// Makes it of the part of attempts that were aborted.
    pub fn aborted(ratio: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, abort_ratio: Some(ratio), ..Published::default() })
    }

    /// Makes it of the size of the read set, relative to the base.
    pub fn read_set(ratio: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, read_set_of_base: Some(ratio), ..Published::default() })
    }

    /// Makes it of the share of commits that OCC would have aborted.
    pub fn would_abort(share: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, occ_would_abort: Some(share), ..Published::default() })
    }
}

/// A part of a figure: one workload, which may depend on the number of threads.
pub struct Panel<'a> {
    /// Its heading.
    pub title: &'static str,
    /// The numbers of threads.
    pub threads: &'a [usize],
    /// The workload that it runs.
    pub workload: Workload<'a>,
}

/// The workload of a panel.
pub enum Workload<'a> {
    /// One workload for all numbers of threads.
    Fixed(&'a dyn Fn() -> Box<dyn AnyWorkload>),
    /// One for each number of threads.
    PerThreads(&'a dyn Fn(usize) -> Box<dyn AnyWorkload>),
}

impl Outline {
    /// Adds a line of all transactions of the panel's workload, run in this way. Returns its
    /// number.
    pub fn line(
        &mut self,
        panel: &Panel<'_>,
        label: impl Into<String>,
        variant: &Variant,
        base: Option<usize>,
        published: Option<Published>,
    ) -> usize {
        let mut add = |workload, threads: &[usize]| {
            self.cases.push(Case { workload, variant: variant.clone(), threads: threads.to_vec() });
            self.cases.len() - 1
        };
        let cases = match panel.workload {
            Workload::Fixed(make) => vec![add(make(), panel.threads)],
            Workload::PerThreads(make) => {
                panel.threads.iter().map(|&threads| add(make(threads), &[threads])).collect()
            }
        };
        self.lines.push(Line {
            panel: panel.title,
            label: label.into(),
            cases,
            counted: &[],
            base,
            published,
        });
        self.lines.len() - 1
    }

    /// Adds a line of the same cases as line `of`, in which some transaction types are counted
    /// (all, if `counted` is empty). Returns its number.
    pub fn line_again(
        &mut self,
        of: usize,
        panel: &'static str,
        counted: &'static [&'static str],
        base: Option<usize>,
        published: Option<Published>,
    ) -> usize {
        let Line { label, cases, .. } = &self.lines[of];
        let (label, cases) = (label.clone(), cases.clone());
        self.lines.push(Line { panel, label, cases, counted, base, published });
        self.lines.len() - 1
    }
}

/// Returns the plain variant of a protocol: one timestamp per row, and updates that read the
/// columns that they change.
///
/// # Panics
/// If there is no protocol of that name.
pub fn plain(protocol: &str) -> Variant {
    let protocol = Choice::named(protocol).expect("figures are of protocols that there are");
    Variant {
        protocol,
        cu: false,
        ts: false,
        timestamps: protocol.timestamps(&[])[0],
        factors: Vec::new(),
        counts_stale: false,
    }
}
