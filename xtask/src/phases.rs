//! A rule for the functions that are phases of a transaction. Such functions contain no points of
//! tests, so that they read as the algorithm. A point belongs in the step that maintains the
//! invariant.

use crate::tokens::{length_of_item, tokens};

/// The functions of the engine that are phases of a transaction.
const PHASES: [&str; 18] = [
    "commit",
    "commit_at",
    "commit_reads",
    "read",
    "read_at_once",
    "read_for_update",
    "read_at_mark",
    "validate",
    "validate_each",
    "certify",
    "look_at_all",
    "install",
    "lock",
    "lock_all",
    "abort",
    "look",
    "absent",
    "assumes",
];

/// Returns the points in the phases of a file, with their line numbers.
pub(crate) fn points_in_phases(text: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "fn" || !PHASES.contains(&pair[1].text) {
            continue;
        }
        let phase = &tokens[index..index + length_of_item(&tokens[index..])];
        for call in phase.windows(3) {
            if [call[1].text, call[2].text] == ["pass", "("] && call[0].text != "." {
                let (line, name) = (text[..call[1].at].matches('\n').count() + 1, pair[1].text);
                found.push((
                    line,
                    format!("calls `pass` in `{name}`; move it to the step it is about"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_refused_in_phases_and_allowed_elsewhere() {
        let lines = |text: &str| -> Vec<usize> {
            points_in_phases(text).into_iter().map(|(line, _)| line).collect()
        };
        let commit =
            "fn commit() {\n    pass(Point::Locked);\n}\nfn step() { pass(Point::Locked) }";
        assert_eq!(lines(commit), [2]);
        assert!(
            lines("fn commit() {\n    clock.pass(ts); // pass(x)\n    bypass(x);\n}").is_empty()
        );
        assert!(lines("fn read(at: CellAt);\nfn step() { pass(x) }").is_empty());
        assert_eq!(lines("    fn read() {\n let f = || {\n };\n if x {\n pass(x) }\n }"), [5]);
    }
}
