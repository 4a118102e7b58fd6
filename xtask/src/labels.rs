//! A check of the labels of invariants. A label such as `OC2` consists of letters, which belong to
//! one list of invariants, and a digit. Each label is stated once, in a list of the engine (`*
//! **OC2** ...`). The code that maintains the invariant cites the label.
//!
//! The labels of lists have two letters. The labels of the contract have one letter. In the engine
//! and the documents, two letters and a digit always mean an invariant, so the check refuses such a
//! label if it is not stated. (The keys of papers have two digits.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a text, for messages, and the text.
type Source = (String, String);

/// Parts of the engine's paths that contain tests. Tests maintain no invariant.
const TESTS: [&str; 3] = ["/tests/", "/tests.rs", "/loom.rs"];

/// Returns messages about the faults of all labels, and a line of counts. `sources` are all Rust
/// files.
pub(crate) fn problems(
    root: &Path,
    engine: &str,
    sources: &[Source],
) -> Result<(Vec<String>, String), String> {
    let engine: Vec<&Source> =
        sources.iter().filter(|(path, _)| path.starts_with(engine)).collect();
    let mut documents = Vec::new();
    for folder in ["", "docs"] {
        let entries = fs::read_dir(root.join(folder)).map_err(|error| error.to_string())?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                documents
                    .push((path.strip_prefix(root).unwrap_or(&path).display().to_string(), text));
            }
        }
    }
    Ok(faults(&engine, &documents))
}

fn faults(engine: &[&Source], documents: &[Source]) -> (Vec<String>, String) {
    let (mut stated, mut cited) = (BTreeMap::new(), BTreeSet::new());
    let (mut named, mut found, mut citations) = (Vec::new(), Vec::new(), 0);
    for (path, text) in engine {
        let is_test = TESTS.iter().any(|part| path.contains(part));
        for (number, line) in (1..).zip(text.lines().take_while(|line| *line != "mod tests {")) {
            let place = format!("{path}:{number}");
            if let Some(label) = statement(line) {
                if let Some(first) = stated.insert(label, place.clone()) {
                    found.push(format!("{place}: states {label}, as {first} does"));
                }
                continue;
            }
            let is_header = line.starts_with("//!");
            for label in labels(line) {
                if !is_header && !is_test {
                    cited.insert(label);
                    citations += 1;
                }
                named.push((place.clone(), label));
            }
        }
    }
    for (path, text) in documents {
        for (number, line) in (1..).zip(text.lines()) {
            named.extend(labels(line).map(|label| (format!("{path}:{number}"), label)));
        }
    }
    for (label, place) in stated.iter().filter(|(label, _)| !cited.contains(*label)) {
        found.push(format!("{place}: {label} is cited nowhere in code; name it where it is kept"));
    }
    for (place, label) in named {
        if letters(label) == 2 && !stated.contains_key(label) {
            found.push(format!("{place}: names {label}, which no list of the engine states"));
        }
    }
    (found, format!("{} invariants, cited {citations} times in code", stated.len()))
}

/// Returns the label that a line of a list states; `None` if the line states no label.
fn statement(line: &str) -> Option<&str> {
    let item = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!', ' ']);
    let label = item.strip_prefix("* **")?.split("**").next()?;
    (letters(label) > 0).then_some(label)
}

/// Returns the labels of a line.
fn labels(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| letters(word) > 0)
}

/// Returns the number of letters of a label; zero for any other word.
fn letters(word: &str) -> usize {
    match word.as_bytes() {
        [b'A'..=b'Z', b'1'..=b'9'] => 1,
        [b'A'..=b'Z', b'A'..=b'Z', b'1'..=b'9'] => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str], document: &str) -> Vec<String> {
        let files: Vec<Source> = (1..)
            .zip(files)
            .map(|(number, text)| (format!("{number}.rs"), (*text).to_string()))
            .collect();
        let document = [("page.md".to_string(), document.to_string())];
        faults(&files.iter().collect::<Vec<_>>(), &document).0
    }

    const LIST: &str = "//! * **AB1** A cell is locked.\n//!   It stays so.\n";

    #[test]
    fn a_label_that_is_stated_once_and_cited_is_in_order() {
        assert!(found(&[LIST, "cell.lock(); // AB1, E3"], "By AB1 [HU20].").is_empty());
        let assertion = "    debug_assert!(is_locked, \"AB1\");";
        assert!(found(&[&format!("{LIST}{assertion}")], "").is_empty());
    }

    #[test]
    fn a_label_that_is_stated_twice_is_refused() {
        let twice = found(&[LIST, LIST, "// AB1"], "");
        assert_eq!(twice, ["2.rs:1: states AB1, as 1.rs:1 does"]);
    }

    #[test]
    fn a_label_that_only_its_list_and_proof_name_is_refused() {
        let proof = format!("{LIST}//! By AB1 the words are one version's.\n");
        let uncited = found(&[&proof], "AB1");
        assert_eq!(uncited.len(), 1, "{uncited:?}");
        assert!(uncited[0].starts_with("1.rs:1: AB1 is cited nowhere"));
        let in_tests = format!("{LIST}mod tests {{\n    // AB1\n}}");
        assert_eq!(found(&[&in_tests], "").len(), 1);
    }

    #[test]
    fn a_label_without_a_statement_is_refused_in_code_and_documents() {
        let unknown = found(&["// AB2"], "See CD3, P4 and E20.");
        assert_eq!(unknown.len(), 2, "{unknown:?}");
        assert!(unknown[0].starts_with("1.rs:1: names AB2"));
        assert!(unknown[1].starts_with("page.md:1: names CD3"));
    }

    #[test]
    fn words_of_other_forms_are_no_labels() {
        let line = "E12 HU20 AB0 ABC1 ab1 A_B1 AB1x `AB2`";
        assert_eq!(labels(line).collect::<Vec<_>>(), ["AB2"]);
    }
}
