//! The baseline: the counts that a change must not exceed.

use super::measure::Cost;
use std::collections::BTreeMap;

/// `GROWTH_MAX` is the greatest factor by which an operation may become more expensive. If the
/// factor of an operation is below `SHRINKAGE_MAX`, the baseline should be renewed.
const GROWTH_MAX: f64 = 1.05;
const SHRINKAGE_MAX: f64 = 0.95;

const COMPILER: &str = "# compiled by ";
const HEAD: &str = "protocol,operation,instructions";

/// The instructions by protocol and operation, and the compiler on which they depend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Baseline {
    pub(super) compiler: String,
    pub(super) costs: BTreeMap<(String, String), f64>,
}

impl Baseline {
    pub(super) fn of(compiler: &str, costs: &[Cost]) -> Baseline {
        // Counts are rounded as in the file, so that a count equals the same count read from the
        // file.
        let rounded = |cost: &Cost| (cost.counts.instructions * 10.0).round() / 10.0;
        let costs = costs
            .iter()
            .map(|cost| ((cost.protocol.clone(), cost.operation.clone()), rounded(cost)));
        Baseline { compiler: compiler.to_string(), costs: costs.collect() }
    }

    pub(super) fn parse(text: &str) -> Result<Baseline, String> {
        let mut lines = text.lines();
        let compiler = lines.next().and_then(|line| line.strip_prefix(COMPILER));
        let compiler =
            compiler.ok_or("the first line does not say which compiler it was")?.to_string();
        if lines.next() != Some(HEAD) {
            return Err(format!("the second line is not `{HEAD}`"));
        }
        // The names of operations contain commas.
        let cost = |line: &str| {
            let (protocol, rest) = line.split_once(',')?;
            let (operation, count) = rest.rsplit_once(',')?;
            let operation = operation.strip_prefix('"')?.strip_suffix('"')?;
            Some(((protocol.to_string(), operation.to_string()), count.parse().ok()?))
        };
        let costs = lines
            .map(|line| cost(line).ok_or_else(|| format!("`{line}` is no count")))
            .collect::<Result<_, _>>()?;
        Ok(Baseline { compiler, costs })
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{COMPILER}{}\n{HEAD}\n", self.compiler);
        for ((protocol, operation), count) in &self.costs {
            text += &format!("{protocol},\"{operation}\",{count:.1}\n");
        }
        text
    }
}

/// The result of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Reasons to fail.
    pub(super) failures: Vec<String>,
    /// Other facts worth knowing.
    pub(super) notes: Vec<String>,
}

/// Compares the counts `now` with the counts `before`. Counts of different compilers are compared,
/// but never fail.
pub(super) fn compare(before: &Baseline, now: &Baseline) -> Verdict {
    let mut verdict = Verdict::default();
    for ((protocol, operation), &count) in &before.costs {
        let Some(&new) = now.costs.get(&(protocol.clone(), operation.clone())) else {
            verdict.failures.push(format!(
                "{protocol}: {operation}: was {count:.1}, and is not counted any more"
            ));
            continue;
        };
        let change = format!(
            "{protocol}: {operation}: {count:.1} before, {new:.1} now{}",
            percentage(count, new)
        );
        if new > count * GROWTH_MAX {
            verdict.failures.push(change);
        } else if new < count * SHRINKAGE_MAX {
            verdict.notes.push(format!("cheaper: {change}"));
        }
    }
    for (protocol, operation) in now.costs.keys().filter(|key| !before.costs.contains_key(*key)) {
        verdict
            .failures
            .push(format!("{protocol}: {operation}: is counted, and not in the baseline"));
    }
    if before.compiler != now.compiler {
        let reported = verdict.failures.drain(..).map(|failure| format!("would fail: {failure}"));
        verdict.notes.splice(0..0, reported);
        let (before, now) = (&before.compiler, &now.compiler);
        verdict.notes.push(format!(
            "nothing of this fails, because the baseline is of another compiler ({before}) than today's ({now})"
        ));
    }
    verdict
}

fn percentage(before: f64, now: f64) -> String {
    if before == 0.0 { String::new() } else { format!(" ({:+.1} %)", 100.0 * (now / before - 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(compiler: &str, costs: &[(&str, f64)]) -> Baseline {
        let costs = costs
            .iter()
            .map(|(operation, count)| (("occ".to_string(), operation.to_string()), *count));
        Baseline { compiler: compiler.to_string(), costs: costs.collect() }
    }

    fn compared(before: &[(&str, f64)], now: &[(&str, f64)]) -> Verdict {
        compare(&baseline("rustc 1", before), &baseline("rustc 1", now))
    }

    #[test]
    fn growth_beyond_the_limit_fails_and_names_both_counts() {
        let verdict = compared(
            &[("get, hash", 200.0), ("put", 10.0)],
            &[("get, hash", 212.0), ("put", 10.0)],
        );
        assert_eq!(verdict.failures, ["occ: get, hash: 200.0 before, 212.0 now (+6.0 %)"]);
        assert_eq!(verdict.notes, [""; 0]);
    }

    #[test]
    fn growth_within_the_limit_passes() {
        assert_eq!(compared(&[("get", 200.0)], &[("get", 208.0)]), Verdict::default());
        assert_eq!(compared(&[("get", 200.0)], &[("get", 192.0)]), Verdict::default());
    }

    #[test]
    fn what_costs_nothing_must_go_on_costing_nothing() {
        assert_eq!(compared(&[("collect", 0.0)], &[("collect", 0.0)]), Verdict::default());
        assert_eq!(compared(&[("collect", 0.0)], &[("collect", 3.0)]).failures.len(), 1);
    }

    #[test]
    fn what_became_cheaper_is_noted_and_passes() {
        let verdict = compared(&[("get", 200.0)], &[("get", 180.0)]);
        assert_eq!(verdict.failures, [""; 0]);
        assert_eq!(verdict.notes, ["cheaper: occ: get: 200.0 before, 180.0 now (-10.0 %)"]);
    }

    #[test]
    fn both_must_be_about_the_same_operations() {
        assert!(compared(&[("get", 200.0)], &[]).failures[0].contains("not counted any more"));
        assert!(compared(&[], &[("get", 200.0)]).failures[0].contains("not in the baseline"));
    }

    #[test]
    fn counts_of_another_compiler_are_only_reported() {
        let before = baseline("rustc 1", &[("get", 200.0), ("put", 10.0)]);
        let verdict = compare(&before, &baseline("rustc 2", &[("get", 300.0)]));
        assert_eq!(verdict.failures, [""; 0]);
        assert_eq!(verdict.notes.iter().filter(|note| note.starts_with("would fail: ")).count(), 2);
        assert!(
            verdict
                .notes
                .last()
                .is_some_and(|note| note.contains("rustc 1") && note.contains("rustc 2"))
        );
    }

    #[test]
    fn a_baseline_can_be_read_back() {
        let before = baseline("rustc 1", &[("get, hash", 200.5), ("put", 10.0)]);
        assert_eq!(Baseline::parse(&before.to_text()), Ok(before));
        assert!(Baseline::parse("get,1\n").is_err());
        assert!(Baseline::parse(&format!("{COMPILER}rustc\n{HEAD}\nocc,\"get\",many\n")).is_err());
    }
}
