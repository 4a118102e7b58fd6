//! The baseline: the counts that a change must not exceed.

use super::measure::Cost;
use std::collections::BTreeMap;
use std::fmt;

/// The factors that one operation must not exceed, and from which on a change is printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// The greatest factor by which one operation may become more expensive.
    operation: f64,
    /// The greatest geometric mean of the factors of all operations.
    mean: f64,
    /// A smaller change of an operation, in either direction, is not printed.
    printed: f64,
}

impl Limits {
    /// The limits for every change. The limits are above the cost of a change that only moves code:
    /// other functions are inlined then, and the count of an operation has moved by 6 %.
    pub(super) const COARSE: Limits = Limits { operation: 1.15, mean: 1.03, printed: 1.03 };
    /// The limits for a change of the engine.
    pub(super) const EXACT: Limits = Limits { operation: 1.05, mean: 1.03, printed: 1.03 };
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [operation, mean, printed] =
            [self.operation, self.mean, self.printed].map(|factor| 100.0 * (factor - 1.0));
        write!(
            f,
            "changes above {printed:.0} % are listed, and one operation above {operation:.0} %"
        )?;
        write!(f, " fails, and so does a geometric mean above {mean:.0} %")
    }
}

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
pub(super) fn compare(before: &Baseline, now: &Baseline, limits: Limits) -> Verdict {
    let mut verdict = Verdict::default();
    let mut factors = Vec::new();
    for ((protocol, operation), &count) in &before.costs {
        let Some(&new) = now.costs.get(&(protocol.clone(), operation.clone())) else {
            verdict.failures.push(format!(
                "{protocol}: {operation}: was {count:.1}, and is not counted any more"
            ));
            continue;
        };
        let factor = if new == count { 1.0 } else { new / count };
        let change = format!(
            "{protocol}: {operation}: {count:.1} before, {new:.1} now{}",
            percentage(factor)
        );
        if factor > limits.operation {
            verdict.failures.push(change);
        } else if factor > limits.printed {
            verdict.notes.push(format!("dearer: {change}"));
        } else if factor < 1.0 / limits.printed {
            verdict.notes.push(format!("cheaper: {change}"));
        }
        // An operation without instructions has no factor, and any instruction that it gets is a
        // failure.
        factors.extend((count > 0.0 && new > 0.0).then_some(factor));
    }
    for (protocol, operation) in now.costs.keys().filter(|key| !before.costs.contains_key(*key)) {
        verdict
            .failures
            .push(format!("{protocol}: {operation}: is counted, and not in the baseline"));
    }
    let mean = geometric_mean(&factors);
    let of_all = format!("all operations, geometric mean{}", percentage(mean));
    let kind = if mean > limits.mean { &mut verdict.failures } else { &mut verdict.notes };
    kind.push(of_all);
    if before.compiler != now.compiler {
        let reported = verdict.failures.drain(..).map(|failure| format!("would fail: {failure}"));
        verdict.notes.splice(0..0, reported);
        let (before, now) = (&before.compiler, &now.compiler);
        verdict.notes.push(format!(
            "the check does not fail, because the baseline is of another compiler ({before}) than this one ({now})"
        ));
    }
    verdict
}

/// Returns the geometric mean of factors; 1 if there are none.
fn geometric_mean(factors: &[f64]) -> f64 {
    let sum: f64 = factors.iter().map(|factor| factor.ln()).sum();
    (sum / factors.len().max(1) as f64).exp()
}

/// Formats the change by a factor as text behind a count; empty if a count was zero before.
fn percentage(factor: f64) -> String {
    if factor.is_finite() { format!(" ({:+.1} %)", 100.0 * (factor - 1.0)) } else { String::new() }
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

    fn compared(before: &[(&str, f64)], now: &[(&str, f64)], limits: Limits) -> Verdict {
        compare(&baseline("rustc 1", before), &baseline("rustc 1", now), limits)
    }

    fn coarse(before: &[(&str, f64)], now: &[(&str, f64)]) -> Verdict {
        compared(before, now, Limits::COARSE)
    }

    /// The counts of `get`, and of so many other operations.
    fn with_others(get: f64, others: usize, count: f64) -> Vec<(&'static str, f64)> {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let others = names[..others].iter().map(|name| (*name, count));
        others.chain([("get, hash", get)]).collect()
    }

    #[test]
    fn an_operation_that_grows_beyond_the_limit_fails_and_names_both_counts() {
        let verdict = coarse(&with_others(200.0, 7, 10.0), &with_others(232.0, 7, 10.0));
        assert_eq!(verdict.failures, ["occ: get, hash: 200.0 before, 232.0 now (+16.0 %)"]);
        assert_eq!(verdict.notes, ["all operations, geometric mean (+1.9 %)"]);
    }

    #[test]
    fn a_cost_moved_by_inlining_is_printed_and_accepted() {
        let (before, now) = (with_others(200.0, 7, 10.0), with_others(212.0, 7, 10.0));
        let verdict = coarse(&before, &now);
        assert_eq!(verdict.failures, [""; 0]);
        assert_eq!(verdict.notes[0], "dearer: occ: get, hash: 200.0 before, 212.0 now (+6.0 %)");
        let exact = compared(&before, &now, Limits::EXACT);
        assert_eq!(exact.failures, ["occ: get, hash: 200.0 before, 212.0 now (+6.0 %)"]);
    }

    #[test]
    fn small_growth_of_all_operations_fails_by_the_mean() {
        let verdict = coarse(&with_others(200.0, 7, 10.0), &with_others(208.0, 7, 10.4));
        assert_eq!(verdict.failures, ["all operations, geometric mean (+4.0 %)"]);
        assert_eq!(verdict.notes.len(), 8, "{verdict:?}");
        let passes = coarse(&with_others(200.0, 7, 10.0), &with_others(205.0, 7, 10.25));
        assert_eq!(passes.failures, [""; 0]);
        assert_eq!(passes.notes, ["all operations, geometric mean (+2.5 %)"]);
        // Cheaper operations compensate for it.
        let mixed = coarse(&with_others(200.0, 7, 10.0), &with_others(150.0, 7, 10.4));
        assert_eq!(mixed.failures, [""; 0]);
    }

    #[test]
    fn an_operation_without_instructions_must_stay_without() {
        assert_eq!(coarse(&[("collect", 0.0)], &[("collect", 0.0)]).failures, [""; 0]);
        let dearer = coarse(&[("collect", 0.0)], &[("collect", 3.0)]);
        assert_eq!(dearer.failures, ["occ: collect: 0.0 before, 3.0 now"]);
        let free = coarse(&[("collect", 3.0)], &[("collect", 0.0)]);
        let notes = [
            "cheaper: occ: collect: 3.0 before, 0.0 now (-100.0 %)",
            "all operations, geometric mean (+0.0 %)",
        ];
        assert_eq!((free.failures.len(), free.notes), (0, notes.map(String::from).to_vec()));
    }

    #[test]
    fn a_cheaper_operation_is_noted_and_accepted() {
        let verdict = coarse(&[("get", 200.0)], &[("get", 180.0)]);
        assert_eq!(verdict.failures, [""; 0]);
        assert_eq!(verdict.notes[0], "cheaper: occ: get: 200.0 before, 180.0 now (-10.0 %)");
    }

    #[test]
    fn baseline_and_measurement_must_list_the_same_operations() {
        assert!(coarse(&[("get", 200.0)], &[]).failures[0].contains("not counted any more"));
        assert!(coarse(&[], &[("get", 200.0)]).failures[0].contains("not in the baseline"));
    }

    #[test]
    fn counts_of_another_compiler_are_only_reported() {
        let before = baseline("rustc 1", &[("get", 200.0), ("put", 10.0)]);
        let verdict = compare(&before, &baseline("rustc 2", &[("get", 300.0)]), Limits::COARSE);
        assert_eq!(verdict.failures, [""; 0]);
        // The operation that grew, the one that is missing, and the mean.
        assert_eq!(verdict.notes.iter().filter(|note| note.starts_with("would fail: ")).count(), 3);
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
