//! What a figure measures and shows, before anything is measured.

use serde::Serialize;

use crate::registry::Choice;
use crate::subject::{Subject, Variant};

/// A figure.
pub(super) struct Outline {
    /// Its name on the command line.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Where it was published.
    pub(super) source: &'static str,
    /// On what it was measured there, and how.
    pub(super) measured: &'static str,
    pub(super) cases: Vec<Case>,
    pub(super) lines: Vec<Line>,
    /// In what it differs from the published one.
    pub(super) deviations: Vec<String>,
}

/// What is run.
pub(super) struct Case {
    pub(super) subject: Box<dyn Subject>,
    pub(super) variant: Variant,
    pub(super) threads: Vec<usize>,
}

/// What is shown: a line of a diagram, or a bar.
pub(super) struct Line {
    /// The part of the figure.
    pub(super) panel: &'static str,
    pub(super) label: String,
    /// The cases whose results make it up.
    pub(super) cases: Vec<usize>,
    /// The transaction type that is counted, or all.
    pub(super) counted: Option<&'static str>,
    /// The line it is compared with.
    pub(super) base: Option<usize>,
    pub(super) published: Option<Published>,
}

/// What the paper's text says of a line. Heights of bars are not in a text.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Published {
    /// In words, with the number of threads that it is about.
    pub(crate) text: &'static str,
    /// Of the line it is compared with, from and to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of_base: Option<[f64; 2]>,
    /// Transactions per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) throughput_tps: Option<f64>,
    /// Aborted attempts out of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abort_ratio: Option<f64>,
}

impl Published {
    /// Something without a number.
    pub(super) fn words(text: &'static str) -> Option<Published> {
        Some(Published { text, of_base: None, throughput_tps: None, abort_ratio: None })
    }

    /// A ratio to the base.
    pub(super) fn ratio(from: f64, to: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, of_base: Some([from, to]), throughput_tps: None, abort_ratio: None })
    }

    /// Aborted attempts out of all.
    pub(super) fn aborted(ratio: f64, text: &'static str) -> Option<Published> {
        Some(Published { text, of_base: None, throughput_tps: None, abort_ratio: Some(ratio) })
    }
}

/// A part of a figure: one workload, which may depend on the number of threads.
pub(super) struct Panel<'a> {
    pub(super) title: &'static str,
    pub(super) threads: &'a [usize],
    pub(super) workload: Workload<'a>,
}

/// What a panel runs.
pub(super) enum Workload<'a> {
    /// The same whatever the number of threads.
    Fixed(&'a dyn Fn() -> Box<dyn Subject>),
    /// One for each number of threads.
    PerThreads(&'a dyn Fn(usize) -> Box<dyn Subject>),
}

impl Outline {
    /// Adds a line of all transactions of the panel's workload, run in this way. Gives its number.
    pub(super) fn line(
        &mut self,
        panel: &Panel<'_>,
        label: impl Into<String>,
        variant: &Variant,
        base: Option<usize>,
        published: Option<Published>,
    ) -> usize {
        let mut add = |subject, threads: &[usize]| {
            self.cases.push(Case { subject, variant: variant.clone(), threads: threads.to_vec() });
            self.cases.len() - 1
        };
        let cases = match panel.workload {
            Workload::Fixed(make) => vec![add(make(), panel.threads)],
            Workload::PerThreads(make) => panel.threads.iter().map(|&threads| add(make(threads), &[threads])).collect(),
        };
        self.lines.push(Line { panel: panel.title, label: label.into(), cases, counted: None, base, published });
        self.lines.len() - 1
    }
}

/// A protocol, with one timestamp to a row and updates that read what they change, as everybody has it.
pub(super) fn plain(protocol: &str) -> Variant {
    let protocol = Choice::named(protocol).expect("figures are of protocols that there are");
    Variant { protocol, cu: false, ts: false, timestamps: protocol.timestamps(&[])[0], factors: Vec::new() }
}
