//! Results of checks, as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use candide::protocols::Properties;
use candide_check::black::{self, Outcome, Transaction};
use candide_check::{Options, Summary, Verdict as Judgement};

use super::DatabaseOptions;
use crate::registry::Choice;
use crate::results::{Finding, Locks};

/// The properties demanded of a history besides serializability.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Whether the serial order must agree with real time.
    pub strict: bool,
    /// Whether the reads of aborted attempts are checked, too.
    pub opaque: bool,
    /// The horizon of a check that is not strict. A transaction may precede another in the serial
    /// order if it begins at most this many moments after the end of the other. Every beginning or
    /// end of a transaction is a moment.
    pub horizon: u64,
}

impl Claim {
    /// Returns this claim with the properties added that `protocol` promises on a database with
    /// these options.
    pub(super) fn with_promises(self, protocol: Choice, options: DatabaseOptions) -> Claim {
        let Properties { strict, opaque, .. } = protocol.properties();
        let strict = strict && options.past.is_zero();
        let opaque = opaque && options.opaque != Some(false);
        Claim { strict: self.strict || strict, opaque: self.opaque || opaque, ..self }
    }

    /// Returns the options for the checker of versions.
    pub(super) fn of_versions(self) -> Options {
        // In a strict order, a transaction never precedes another that had ended before the first
        // began.
        let horizon = if self.strict { 0 } else { self.horizon };
        Options { strict: self.strict, opaque: self.opaque, horizon }
    }

    /// Returns the options for the checkers of values.
    pub(super) fn of_values(self) -> black::Options {
        black::Options { sessions: self.strict, real_time: self.strict }
    }
}

/// A check and its result.
pub struct Verdict {
    /// The history that was checked, in one line.
    checked: String,
    /// The properties that were demanded of the history.
    claim: String,
    /// The violations; a violation may have several lines.
    problems: Vec<String>,
    /// The reason why the checker could not decide; `None` if it decided that the properties hold,
    /// or found a violation.
    doubt: Option<String>,
    /// The locks on rows by policy; `None` if no table has a policy that may lock.
    locks: Option<Locks>,
    /// Whether the run took its whole time but committed nothing.
    is_fruitless: bool,
    /// Whether Ctrl-C ended the recording. The history recorded before was checked.
    pub ended_early: bool,
}

impl Verdict {
    /// Makes the result for a history with versions, and for the invariants in `failed` that the
    /// workload's own check found broken.
    pub(super) fn of_versions(
        title: String,
        claim: Claim,
        summary: Summary,
        failed: Vec<String>,
    ) -> Verdict {
        let Summary {
            verdict, transactions, committed, aborted, reads, writes, scans, edges, ..
        } = summary;
        let checked = format!(
            "{title}: {transactions} transactions ({aborted} attempts aborted), {reads} reads, {writes} writes, {scans} scans, \
             {edges} dependencies"
        );
        Verdict::new(checked, claim.with(claim.opaque), failed, verdict, committed)
    }

    /// Makes the result for a history of answers to clients.
    pub(super) fn of_values<O>(
        title: String,
        claim: Claim,
        history: &[Transaction<O>],
        result: Judgement,
    ) -> Verdict {
        let committed =
            history.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
        let operations: usize =
            history.iter().map(|transaction| transaction.operations.len()).sum();
        let checked = format!(
            "{title}: {} transactions ({committed} committed), {operations} operations",
            history.len()
        );
        Verdict::new(checked, claim.with(false), Vec::new(), result, committed as u64)
    }

    /// Makes the result for an empty file.
    pub(super) fn of_nothing(claim: Claim) -> Verdict {
        let (checked, nothing) = ("an empty file".to_string(), Judgement::Serializable);
        Verdict::new(checked, claim.with(claim.opaque), Vec::new(), nothing, 0)
    }

    /// Makes the result for a history of `committed` commits: without a commit, nothing is decided.
    fn new(
        checked: String,
        claim: String,
        mut problems: Vec<String>,
        judgement: Judgement,
        committed: u64,
    ) -> Verdict {
        let mut doubt = None;
        match judgement {
            Judgement::Serializable => {}
            Judgement::Violated(violation) => problems.push(violation.to_string()),
            Judgement::Inconclusive(why) => doubt = Some(why),
        }
        let nothing = || "no transaction committed, so there is nothing to judge".to_string();
        let doubt = doubt.or_else(|| (problems.is_empty() && committed == 0).then(nothing));
        let (is_fruitless, ended_early) = (false, false);
        Verdict { checked, claim, problems, doubt, locks: None, is_fruitless, ended_early }
    }

    /// Returns this result for a run whose threads committed `committed` transactions, not counting
    /// those before and after the threads ran. `ended_early` is whether Ctrl-C ended the run.
    pub(super) fn of_run(mut self, committed: u64, ended_early: bool) -> Verdict {
        if committed == 0 {
            let problem = "no thread committed a transaction while it ran; it may need more time, by --duration";
            self.doubt = Some(problem.to_string());
            self.is_fruitless = !ended_early;
        }
        Verdict { ended_early, ..self }
    }

    /// Returns this result with the names of the keys that numbers stand for.
    pub(super) fn of_named(mut self, names: &BTreeMap<u64, String>) -> Verdict {
        for (number, name) in names {
            let (number, name) = (format!("key {number}"), format!("key {name}"));
            self.problems.iter_mut().for_each(|text| *text = text.replace(&number, &name));
        }
        self
    }

    /// Returns this result for a run that counted `locks` under `protocol`.
    pub(super) fn of_locks(self, protocol: Choice, locks: Locks) -> Verdict {
        Verdict { locks: protocol.locks().then_some(locks), ..self }
    }

    /// Returns the finding that decides the command's exit status.
    pub fn finding(&self) -> Finding {
        match (self.problems.is_empty(), &self.doubt) {
            (false, _) => Finding::Bad,
            _ if self.is_fruitless => Finding::Bad,
            (true, Some(_)) => Finding::Unknown,
            (true, None) => Finding::Good,
        }
    }

    /// Prints the result, with `title` first.
    pub fn print(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let early = if self.ended_early { " (ended early, by Ctrl-C)" } else { "" };
        writeln!(out, "{title}: {}{early}", self.checked)?;
        let answer = match (self.problems.is_empty(), &self.doubt) {
            (true, None) => "yes",
            (true, Some(_)) => "unknown",
            (false, _) => "NO",
        };
        writeln!(out, "  {}: {answer}", self.claim)?;
        if let Some(locks) = self.locks {
            let counts = locks.counts().into_iter().zip(Locks::NAMES);
            let counts: Vec<_> = counts.map(|(count, name)| format!("{count} {name}")).collect();
            writeln!(out, "  locks by policy: {}", counts.join(", "))?;
        }
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
    /// Returns the claim in words. `opaque` replaces the claim's own field.
    fn with(self, opaque: bool) -> String {
        let strict = if self.strict { " in the order of real time" } else { "" };
        let opaque = if opaque { ", aborted attempts included" } else { "" };
        format!("serializable{strict}{opaque}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candide_check::black::{ListOp, check_lists};

    const CLAIM: Claim = Claim { strict: true, opaque: false, horizon: 0 };

    /// Judges a history of lists with a transaction for each of `outcomes`.
    fn of_values(outcomes: &[Outcome]) -> Verdict {
        let transaction = |(session, outcome): (u64, &Outcome)| {
            let operations = vec![ListOp::Append { key: 1, value: session }];
            Transaction {
                session,
                invoked: 10 * session,
                completed: 10 * session + 5,
                outcome: *outcome,
                operations,
            }
        };
        let history: Vec<_> = (1..).zip(outcomes).map(transaction).collect();
        Verdict::of_values(
            "lists".to_string(),
            CLAIM,
            &history,
            check_lists(&history, CLAIM.of_values()).into(),
        )
    }

    /// Judges a history with versions. The history has one transaction for each element of
    /// `committed`; the element is whether that transaction committed.
    fn of_versions(committed: &[bool], failed: &[&str]) -> Verdict {
        let mut checker = candide_check::Checker::new(CLAIM.of_versions());
        for (session, &committed) in (1..).zip(committed) {
            let (begun, ended) = (10 * session, 10 * session + 5);
            let (reads, scans, writes) = (vec![], vec![], vec![]);
            checker.feed(&candide_check::Event::Transaction(candide_check::Transaction {
                session,
                begun,
                ended,
                committed,
                reads,
                scans,
                writes,
                as_of: None,
            }));
        }
        let failed = failed.iter().map(|problem| problem.to_string()).collect();
        Verdict::of_versions("versions".to_string(), CLAIM, checker.finish(), failed)
    }

    #[test]
    fn the_verdict_on_a_history_without_commits_is_unknown() {
        for verdict in [
            of_values(&[]),
            of_values(&[Outcome::Aborted, Outcome::Unknown]),
            of_versions(&[], &[]),
            of_versions(&[false, false], &[]),
            Verdict::of_nothing(CLAIM),
        ] {
            assert_eq!(verdict.finding(), Finding::Unknown, "{}", verdict.checked);
            assert_eq!(verdict.finding().exit_status(), 3);
            assert!(verdict.doubt.is_some_and(|doubt| doubt.contains("no transaction committed")));
        }
        for verdict in
            [of_values(&[Outcome::Aborted, Outcome::Committed]), of_versions(&[false, true], &[])]
        {
            assert_eq!(verdict.finding(), Finding::Good, "{}", verdict.checked);
            assert_eq!(verdict.finding().exit_status(), 0);
        }
        assert_eq!(of_versions(&[false], &["1 < 2"]).finding(), Finding::Bad);
    }

    #[test]
    fn a_check_without_commits_fails_unless_it_was_interrupted() {
        let loaded = || of_versions(&[true], &[]);
        assert_eq!(loaded().of_run(0, false).finding(), Finding::Bad);
        assert_eq!(loaded().of_run(0, false).finding().exit_status(), 1);
        assert_eq!(loaded().of_run(0, true).finding(), Finding::Unknown);
        assert_eq!(loaded().of_run(1, false).finding(), Finding::Good);
        assert!(
            loaded()
                .of_run(0, false)
                .doubt
                .is_some_and(|doubt| doubt.contains("no thread committed"))
        );
        assert_eq!(of_versions(&[true], &["1 < 2"]).of_run(0, true).finding(), Finding::Bad);
    }
}
