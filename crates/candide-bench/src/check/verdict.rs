//! What a check came to, for people.

use candide_check::black::{Outcome, Transaction};
use candide_check::{Summary, Verdict as Judgement, Violation};

use crate::cli::CheckArgs;

/// What was checked, and what was found.
pub(super) struct Verdict {
    /// What was checked, in one line.
    checked: String,
    /// What was asked of it.
    claim: String,
    /// What is wrong, in some lines each.
    problems: Vec<String>,
}

impl Verdict {
    /// Of a history with versions, and of the workload's own check.
    pub(super) fn of_versions(title: String, args: &CheckArgs, summary: Summary, failed: Vec<String>) -> Verdict {
        let Summary { verdict, transactions, aborted, reads, writes, scans, edges, .. } = summary;
        let checked = format!(
            "{title}: {transactions} transactions ({aborted} attempts aborted), {reads} reads, {writes} writes, {scans} scans, \
             {edges} dependencies"
        );
        let mut problems = failed;
        match verdict {
            Judgement::Serializable => {}
            Judgement::Violated(violation) => problems.push(violation.to_string()),
            Judgement::Inconclusive(doubt) => problems.push(format!("inconclusive: {doubt}")),
        }
        Verdict { checked, claim: claim(args), problems }
    }

    /// Of a history of what clients were told.
    pub(super) fn of_values<O>(
        title: String,
        args: &CheckArgs,
        history: &[Transaction<O>],
        result: Result<(), Violation>,
    ) -> Verdict {
        let committed = history.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
        let operations: usize = history.iter().map(|transaction| transaction.operations.len()).sum();
        let checked =
            format!("{title}: {} transactions ({committed} committed), {operations} operations", history.len());
        Verdict { checked, claim: claim(args), problems: result.err().iter().map(Violation::to_string).collect() }
    }

    /// Whether nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn print(&self, title: &str) {
        println!("{title}: {}", self.checked);
        if self.problems.is_empty() {
            println!("  {}: yes", self.claim);
        } else {
            println!("  {}: NO", self.claim);
        }
        for line in self.problems.iter().flat_map(|problem| problem.lines()) {
            println!("  {line}");
        }
    }
}

/// What the history was asked to be.
fn claim(args: &CheckArgs) -> String {
    let strict = if args.strict { " in the order of real time" } else { "" };
    let opaque = if args.opacity { ", aborted attempts included" } else { "" };
    format!("serializable{strict}{opaque}")
}
