//! The plan of a figure: its measurements and lines.

use super::claim::Claim;
use super::grade::Graded;
use crate::any_workload::{AnyWorkload, Variant};
use crate::registry::Choice;
use crate::results::{Published, Shown};

/// A figure before it is measured.
pub struct Outline {
    /// The figure's name on the command line.
    pub name: &'static str,
    /// The title, in one line.
    pub title: &'static str,
    /// The paper, and the figure's number there.
    pub source: &'static str,
    /// The machine and the method of the published measurement.
    pub measured: &'static str,
    /// The quantities that the figure shows beside throughput.
    pub shows: Shown,
    /// The choice of the lines that are run with opacity.
    pub opacity: Opacity,
    /// The cases that are run.
    pub cases: Vec<Case>,
    /// The lines that are shown.
    pub lines: Vec<Line>,
    /// The directions of the published figure, which are judged.
    pub claims: Vec<Claim>,
    /// The lines that are graded.
    pub grades: Vec<Graded>,
    /// The deviations from the published figure.
    pub deviations: Vec<String>,
}

/// The choice of a figure's lines that are run with opacity, among the lines of protocols that
/// leave the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opacity {
    /// No line runs with opacity, as in research engines; but each panel has one more line, which
    /// is compared with its first line of `occ` and shows what opacity costs.
    Priced,
    /// All lines run with opacity, or no line does.
    Only(bool),
    /// Each line runs twice: without opacity and with it.
    Both,
}

impl Opacity {
    /// Returns the choice for a list of values that a command was given.
    pub fn of(asked: &[bool]) -> Opacity {
        match asked {
            [] => Opacity::Priced,
            [on] => Opacity::Only(*on),
            _ => Opacity::Both,
        }
    }
}

/// A workload and a variant that are run.
pub struct Case {
    /// The workload.
    pub workload: Box<dyn AnyWorkload>,
    /// The setting of its database.
    pub variant: Variant,
    /// The numbers of threads with which the workload is run.
    pub threads: Vec<usize>,
}

/// A line of a diagram, or a bar.
pub struct Line {
    /// The title of the line's panel.
    pub panel: &'static str,
    /// The line's name.
    pub label: String,
    /// The indexes of the cases whose results make up the line.
    pub cases: Vec<usize>,
    /// The transaction types that are counted; all types if the list is empty.
    pub counted: &'static [&'static str],
    /// The index of the line with which this line is compared; `None` if it is not compared.
    pub base: Option<usize>,
    /// The claim of the paper's text about the line; `None` if the text has none.
    pub published: Option<Published>,
}

/// A part of a figure. The part has one workload, which may depend on the number of threads.
#[derive(Clone, Copy)]
pub struct Panel<'a> {
    /// The panel's heading.
    pub title: &'static str,
    /// The numbers of threads.
    pub threads: &'a [usize],
    /// The workload that the panel runs.
    pub workload: Workload<'a>,
}

/// The workload of a panel.
#[derive(Clone, Copy)]
pub enum Workload<'a> {
    /// One workload for all numbers of threads.
    Fixed(&'a dyn Fn() -> Box<dyn AnyWorkload>),
    /// A workload for each number of threads.
    PerThreads(&'a dyn Fn(usize) -> Box<dyn AnyWorkload>),
}

impl Outline {
    /// Returns an outline without lines.
    pub fn empty(
        name: &'static str,
        title: &'static str,
        source: &'static str,
        measured: &'static str,
        opacity: Opacity,
    ) -> Outline {
        Outline {
            name,
            title,
            source,
            measured,
            shows: Shown::Throughput,
            opacity,
            cases: Vec::new(),
            lines: Vec::new(),
            claims: Vec::new(),
            grades: Vec::new(),
            deviations: Vec::new(),
        }
    }

    /// Adds a line that counts all transactions of the panel's workload, run with `variant` and
    /// with the figure's opacity. Adds the line that shows the price of opacity behind it, if there
    /// is to be one. Returns the index of the first one.
    pub fn line(
        &mut self,
        panel: &Panel<'_>,
        label: impl Into<String>,
        variant: &Variant,
        base: Option<usize>,
        published: Option<Published>,
    ) -> usize {
        let label = label.into();
        let with = |on: bool| Variant { opaque: variant.opaque.map(|_| on), ..variant.clone() };
        let is_priced = match self.opacity {
            Opacity::Only(_) => false,
            Opacity::Both => variant.opaque.is_some(),
            Opacity::Priced => variant.protocol.name() == "occ" && !self.has_price(panel.title),
        };
        let is_opaque = self.opacity == Opacity::Only(true);
        let line = self.add(panel, label.clone(), &with(is_opaque), base, published);
        if is_priced {
            self.add(panel, format!("{label}, opaque"), &with(true), Some(line), None);
        }
        line
    }

    /// Returns whether a line of the panel `title` shows the price of opacity.
    fn has_price(&self, title: &str) -> bool {
        let mut lines = self.lines.iter().filter(|line| line.panel == title);
        lines.any(|line| self.cases[line.cases[0]].variant.opaque == Some(true))
    }

    /// Adds a line with exactly this variant. Returns the line's index.
    fn add(
        &mut self,
        panel: &Panel<'_>,
        label: String,
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
        self.lines.push(Line { panel: panel.title, label, cases, counted: &[], base, published });
        self.lines.len() - 1
    }

    /// Adds a line with the cases of line `of` that counts the transaction types `counted` (all, if
    /// empty). Returns the number of the new line.
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

/// Returns the plain variant of a protocol, which may have settings: one timestamp per row, updates
/// that read the columns that they change, and no opacity if the protocol leaves the choice.
///
/// # Panics
/// If no protocol is named `protocol`.
pub fn plain(protocol: &str) -> Variant {
    let protocol = Choice::parse(protocol).expect("a figure names registered protocols");
    Variant {
        protocol,
        cu: false,
        ts: false,
        timestamps: protocol.timestamps(&[])[0],
        opaque: protocol.opacities(&[false])[0],
        factors: Vec::new(),
        counts_stale: false,
    }
}
