//! What a check came to, for people.

use std::io::{self, Write};

use candide::Properties;
use candide_check::black::{self, Outcome, Transaction};
use candide_check::{Options, Summary, Verdict as Judgement, Violation};

use crate::registry::Choice;

/// What a history is asked to be, besides serializable.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// In the order of real time.
    pub strict: bool,
    /// With what aborted attempts have seen.
    pub opaque: bool,
    /// How many beginnings and ends of transactions later one may still have overtaken another, unless it is strict.
    pub horizon: u64,
}

impl Claim {
    /// Adds what a protocol promises.
    pub(super) fn with_promises(self, protocol: Choice) -> Claim {
        let Properties { strict, opaque, .. } = protocol.properties();
        Claim { strict: self.strict || strict, opaque: self.opaque || opaque, ..self }
    }

    /// For the checker of versions.
    pub(super) fn of_versions(self) -> Options {
        // In a strict order no transaction may be overtaken.
        let horizon = if self.strict { 0 } else { self.horizon };
        Options { strict: self.strict, opaque: self.opaque, horizon }
    }

    /// For the checkers of values.
    pub(super) fn of_values(self) -> black::Options {
        black::Options { sessions: self.strict, real_time: self.strict }
    }
}

/// What was checked, and what was found.
pub struct Verdict {
    /// What was checked, in one line.
    checked: String,
    /// What was asked of it.
    claim: String,
    /// What is wrong, in some lines each.
    problems: Vec<String>,
    /// Why it cannot be told, if nothing is wrong that is known.
    doubt: Option<String>,
    /// Whether Ctrl-C ended the recording; what was recorded by then was checked.
    pub ended_early: bool,
}

impl Verdict {
    /// Of a history with versions, and of the workload's own check.
    pub(super) fn of_versions(title: String, claim: Claim, summary: Summary, failed: Vec<String>) -> Verdict {
        let Summary { verdict, transactions, aborted, reads, writes, scans, edges, .. } = summary;
        let checked = format!(
            "{title}: {transactions} transactions ({aborted} attempts aborted), {reads} reads, {writes} writes, {scans} scans, \
             {edges} dependencies"
        );
        let (mut problems, mut doubt) = (failed, None);
        match verdict {
            Judgement::Serializable => {}
            Judgement::Violated(violation) => problems.push(violation.to_string()),
            Judgement::Inconclusive(why) => doubt = Some(why),
        }
        Verdict { checked, claim: claim.with(claim.opaque), problems, doubt, ended_early: false }
    }

    /// Of a history of what clients were told.
    pub(super) fn of_values<O>(
        title: String,
        claim: Claim,
        history: &[Transaction<O>],
        result: Result<(), Violation>,
    ) -> Verdict {
        let committed = history.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
        let operations: usize = history.iter().map(|transaction| transaction.operations.len()).sum();
        let checked =
            format!("{title}: {} transactions ({committed} committed), {operations} operations", history.len());
        let problems = result.err().iter().map(Violation::to_string).collect();
        Verdict { checked, claim: claim.with(false), problems, doubt: None, ended_early: false }
    }

    /// The same of what was recorded by the time that Ctrl-C was pressed, if it was.
    pub(super) fn ended(self, early: bool) -> Verdict {
        Verdict { ended_early: early, ..self }
    }

    /// Returns whether nothing is wrong, for sure.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty() && self.doubt.is_none()
    }

    /// Prints it, below `title`.
    pub fn print(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let early = if self.ended_early { " (ended early, by Ctrl-C)" } else { "" };
        writeln!(out, "{title}: {}{early}", self.checked)?;
        let answer = match (self.problems.is_empty(), &self.doubt) {
            (true, None) => "yes",
            (true, Some(_)) => "unknown",
            (false, _) => "NO",
        };
        writeln!(out, "  {}: {answer}", self.claim)?;
        if let Some(doubt) = &self.doubt {
            writeln!(out, "  inconclusive: {doubt}")?;
        }
        for line in self.problems.iter().flat_map(|problem| problem.lines()) {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }
}

impl Claim {
    /// In words.
    fn with(self, opaque: bool) -> String {
        let strict = if self.strict { " in the order of real time" } else { "" };
        let opaque = if opaque { ", aborted attempts included" } else { "" };
        format!("serializable{strict}{opaque}")
    }
}
