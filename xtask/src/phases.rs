//! A rule for the functions that are phases of a transaction. They must contain neither mutants nor
//! points of the tests, so that they read as the algorithm. Mutants and points belong in the step
//! that maintains the invariant.

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

/// Calls that serve only tests.
const INSTRUMENTS: [&str; 2] = ["mutant", "pass"];

/// Parts of the engine's paths that contain tests and their instruments.
const LEFT_OUT: [&str; 4] = ["tests/", "tests.rs", "loom.rs", "sync/instruments.rs"];

/// Returns the calls of instruments in the phases of a file of the engine, with their line numbers.
/// `path` begins below the engine's folder.
pub(crate) fn instruments_in_phases(path: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if LEFT_OUT.iter().any(|part| path.contains(part)) {
        return found;
    }
    let mut phase: Option<Phase<'_>> = None;
    for (number, line) in (1..).zip(text.lines().take_while(|line| *line != "mod tests {")) {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let begun = || function(code).filter(|name| PHASES.contains(name)).map(Phase::new);
        let Some(mut current) = phase.take().or_else(begun) else { continue };
        for name in INSTRUMENTS.into_iter().filter(|name| calls(code, name)) {
            found.push((
                number,
                format!("calls `{name}` in `{}`; move it to the step it is about", current.name),
            ));
        }
        if !current.ends_in(code) {
            phase = Some(current);
        }
    }
    found
}

/// A function's declaration and body, from its first line on.
struct Phase<'a> {
    name: &'a str,
    /// The number of open braces.
    open: usize,
    /// The number of open brackets of the declaration.
    nested: usize,
}

impl<'a> Phase<'a> {
    fn new(name: &'a str) -> Phase<'a> {
        Phase { name, open: 0, nested: 0 }
    }

    /// Adds a line. Returns whether the function ends in this line. A declaration without a body
    /// also ends.
    fn ends_in(&mut self, code: &str) -> bool {
        let mut has_ended = false;
        for byte in code.bytes() {
            match byte {
                b'{' => self.open += 1,
                b'}' => {
                    self.open = self.open.saturating_sub(1);
                    has_ended |= self.open == 0;
                }
                b'(' | b'[' => self.nested += 1,
                b')' | b']' => self.nested = self.nested.saturating_sub(1),
                b';' => has_ended |= self.open == 0 && self.nested == 0,
                _ => {}
            }
        }
        has_ended
    }
}

/// Returns the name of the function that a line declares; `None` if the line declares no function.
fn function(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let is_declaration = before.is_empty() || before.ends_with([' ', '(']);
    after.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|_| is_declaration)
}

/// Returns whether a line calls a function named `name` that is not a method.
fn calls(code: &str, name: &str) -> bool {
    let is_call = |(at, _): (usize, &str)| {
        let is_whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || "_.".contains(c));
        is_whole && code[at + name.len()..].starts_with('(')
    };
    code.match_indices(name).any(is_call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        instruments_in_phases("protocols/occ/phases.rs", text)
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn a_phase_calls_no_instrument_and_other_functions_may() {
        let commit =
            "fn commit() {\n    pass(Point::Locked);\n}\nfn step() { pass(Point::Locked) }";
        assert_eq!(lines(commit), [2]);
        assert_eq!(lines("pub(super) fn look() -> bool { mutant(Mutant::NoFence) }"), [1]);
        assert!(lines("fn commit_epoch() {\n    mutant(Mutant::NoFence);\n}").is_empty());
        assert_eq!(
            lines("fn commit() {\n}\n\nfn step() { mutant(x) }\nfn read() { mutant(x) }"),
            [5]
        );
    }

    #[test]
    fn closures_and_blocks_belong_to_the_phase() {
        let nested = "    fn read() {\n        let f = || {\n        };\n        if mutant(x) {\n        }\n    }";
        assert_eq!(lines(nested), [4]);
        let wide = "fn commit(\n    words: [u64; 2],\n) -> Result<(), Abort>\nwhere\n    P: Q,\n{\n    pass(x);\n}";
        assert_eq!(lines(wide), [7]);
    }

    #[test]
    fn methods_comments_and_declarations_without_a_body_are_passed_over() {
        assert!(
            lines("fn commit() {\n    clock.pass(ts); // pass(x)\n    bypass(x);\n}").is_empty()
        );
        assert!(lines("fn read(\n    at: CellAt,\n);\nfn step() { pass(x) }").is_empty());
    }

    #[test]
    fn tests_and_the_instruments_are_left_out() {
        let text = "fn read() { pass(x) }";
        for path in ["tests/traps.rs", "index/ordered/loom.rs", "sync/instruments.rs"] {
            assert!(instruments_in_phases(path, text).is_empty(), "{path}");
        }
        assert!(lines(&format!("mod tests {{\n    {text}\n}}")).is_empty());
    }
}
