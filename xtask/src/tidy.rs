//! Rules of the architecture that the compiler does not enforce.
//!
//! * Only `sync` names atomics, `Mutex` and `Condvar` of the standard library, so that the same
//!   engine runs under models.
//! * Points of tests are not in the phases of a transaction.
//! * Deliberate defects are not in the source, and each of the list finds its place ([`defects`]).
//! * Within each crate, arrows between files go down, and form no circles ([`arrows`]).
//! * Each invariant is stated once, and is cited ([`labels`]).
//! * Names that documents have in backticks exist ([`identifiers`](crate::identifiers)), and so do
//!   files that they link to ([`links`]).
//! * Sections of papers that sources and documents refer to exist ([`sections`]).
//! * No source and no document has lines that an unfinished merge has left.
//! * Only a protocol's own file, the registry and tests name the protocol. Any other code that
//!   named protocols would have to change with every new protocol.
//! * The layers in [`WITHOUT_POLICIES`] name no policy, and use nothing of `locks`.
//!
//! Comments, including documentation and its examples, may use any name. So may tests.

use crate::identifiers::Names;
use crate::workspace::{collect, collect_ending};
use crate::{arrows, defects, labels, links, phases, prose, sections};
use std::fs;
use std::path::{Path, PathBuf};

/// The engine's source.
const ENGINE: &str = "crates/candide/src";
/// The registry: the only file that lists the protocols.
pub(crate) const REGISTRY: &str = "crates/candide/src/protocols/list.rs";

/// The document with the table of protocols. The README shows the same table.
const PROTOCOL_TABLE: &str = "docs/protocols.md";

/// Places of the engine that may use the names that [`of_sync`] refuses.
const OF_SYNC_ALLOWED: &[(&str, &str)] =
    &[("sync/", "it is the door"), ("tests/", "tests count and stop outside of what they test")];

/// The most words for unnamed persons in all sources. A change may only lower this number.
const PERSONS_MAX: usize = 1;

/// Places that may name a protocol.
const PROTOCOLS_ALLOWED: &[(&str, &str)] = &[
    ("crates/candide/src/protocols/mod.rs", "declares their files"),
    (REGISTRY, "lists them, and chooses the default"),
    ("crates/candide-peers/src/stores/peers/mod.rs", "lists those that are compared"),
    ("/tests/", "tests run under those they choose"),
    ("/tests.rs", "likewise"),
    ("/examples/", "examples are programs, and programs choose"),
    ("crates/candide-measure/", "likewise"),
    ("fuzz/", "likewise"),
    ("crates/candide-reach/src/standby/", "standbys follow under one"),
    ("crates/candide-bench/src/reach/", "standbys follow under one"),
];

/// Layers of the engine that must not name policies.
const WITHOUT_POLICIES: &[&str] = &["engine/", "txn/", "gc/", "access/", "index/", "record/"];

/// Parts of the paths of files that contain tests.
const TESTS: [&str; 2] = ["tests/", "tests.rs"];

/// Checks every source file. Returns an error if a fault was found.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "fuzz", "xtask"] {
        collect(&root.join(folder), &mut files).map_err(|error| format!("{folder}: {error}"))?;
    }
    files.sort();
    let registry =
        fs::read_to_string(root.join(REGISTRY)).map_err(|error| format!("{REGISTRY}: {error}"))?;
    let (protocols, policies) = (protocols_in(&registry), policies_in(&registry));
    if protocols.is_empty() {
        return Err(format!("{REGISTRY} lists no protocol that could be recognized"));
    }
    let (mut found, mut persons) = (0, 0);
    let mut sources = Vec::new();
    for file in &files {
        let text =
            fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let path = file
            .strip_prefix(root)
            .expect("collected below the root")
            .to_string_lossy()
            .replace('\\', "/");
        if path != "xtask/src/prose.rs" {
            persons += prose::persons(&text);
        }
        for (line, problem) in problems(&path, &text, (&protocols, &policies))
            .into_iter()
            .chain(prose::wide_comments(&text))
        {
            println!("{path}:{line}: {problem}");
            found += 1;
        }
        sources.push((path, text));
    }
    if persons > PERSONS_MAX {
        println!("{persons} words such as \"whoever\" in all; name the thing of the code instead");
        found += 1;
    }
    if let Some(problem) = protocol_tables(root)? {
        println!("{problem}");
        found += 1;
    }
    let documents = documents(root)?;
    for (path, text) in sources.iter().chain(&documents) {
        let marks = marks(text).map(|line| {
            (line, "is a mark of an unfinished merge; choose one of the two texts".to_string())
        });
        // The check of sections prints the faults itself.
        let sections =
            if path == "xtask/src/sections.rs" { Vec::new() } else { sections::missing(text) };
        for (line, problem) in marks.chain(sections) {
            println!("{path}:{line}: {problem}");
            found += 1;
        }
    }
    let names = Names::of(&sources);
    for (path, text) in &documents {
        let folder = root.join(path).parent().unwrap_or(root).to_path_buf();
        for (line, problem) in names.missing(text, &folder, root) {
            println!("{path}:{line}: {problem}");
            found += 1;
        }
    }
    for problem in links::problems(&documents, root) {
        println!("{problem}");
        found += 1;
    }
    for problem in defects::problems(root)? {
        println!("{problem}");
        found += 1;
    }
    for folder in crates(root)? {
        let Some((crossed, counts)) = arrows::problems(root, &folder)? else { continue };
        println!("tidy: {counts}");
        crossed.iter().for_each(|problem| println!("{problem}"));
        found += crossed.len();
    }
    let (misnamed, counts) = labels::problems(root, ENGINE, &sources)?;
    misnamed.iter().for_each(|problem| println!("{problem}"));
    println!("tidy: {counts}");
    match found + misnamed.len() {
        0 => {
            println!("tidy: {} files, nothing found ({persons} unnamed persons)", files.len());
            Ok(())
        }
        1 => Err("one rule is broken".to_string()),
        found => Err(format!("rules are broken in {found} places")),
    }
}

/// Returns the folders of all crates.
fn crates(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join("crates")).map_err(|error| format!("crates: {error}"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut folders: Vec<String> = names.map(|name| format!("crates/{name}")).collect();
    folders.extend(["fuzz", "xtask"].map(str::to_string));
    folders.sort();
    Ok(folders)
}

/// Compares the table of protocols in the README with the table in the document of protocols.
fn protocol_tables(root: &Path) -> Result<Option<String>, String> {
    let table = |path: &str| {
        let text =
            fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let lines = text.lines().skip_while(|line| !line.starts_with("| type | name |"));
        Ok::<Vec<String>, String>(
            // Links of a document begin at its folder.
            lines
                .take_while(|line| line.starts_with('|'))
                .map(|line| line.replace("](../", "]("))
                .collect(),
        )
    };
    let (own, copy) = (table(PROTOCOL_TABLE)?, table("README.md")?);
    let is_same = !own.is_empty() && own == copy;
    Ok((!is_same)
        .then(|| format!("README.md: the table of protocols is not that of {PROTOCOL_TABLE}")))
}

/// Returns the paths of all documents, and their texts.
fn documents(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    collect_ending("md", &root.join("docs"), &mut files)
        .map_err(|error| format!("docs: {error}"))?;
    let entries = fs::read_dir(root).map_err(|error| error.to_string())?;
    let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    let read = |file: PathBuf| {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        Ok((name, text))
    };
    files.into_iter().map(read).collect()
}

/// Returns the numbers of the lines that an unfinished merge has left.
fn marks(text: &str) -> impl Iterator<Item = usize> {
    let is_mark = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    (1..).zip(text.lines()).filter(move |(_, line)| is_mark(line)).map(|(number, _)| number)
}

/// Returns the listed protocols. The list has one line for each protocol, with the protocol's
/// policies.
pub(crate) fn protocols_in(list: &str) -> Vec<&str> {
    let entries = list.lines().filter_map(|line| line.trim().strip_prefix("$crate::"));
    entries.filter_map(|entry| Some(entry.split_once(": ")?.0)).collect()
}

/// Returns the policies in the list of protocols, and the type of their choice.
fn policies_in(list: &str) -> Vec<&str> {
    let named = list.split("::Policy::").skip(1);
    named.filter_map(|rest| words(rest).next()).chain(["Policies"]).collect()
}

/// Returns the faults of one file. Each has its line number and an instruction.
fn problems(
    path: &str,
    text: &str,
    (protocols, policies): (&[&str], &[&str]),
) -> Vec<(usize, String)> {
    let engine = path.strip_prefix(ENGINE).and_then(|path| path.strip_prefix('/'));
    let is_product = !TESTS.iter().any(|part| path.contains(part));
    let mut problems = Vec::new();
    if engine.is_some() && is_product {
        problems.extend(phases::points_in_phases(text));
    }
    // The unit tests of a file are at the end of the file.
    let lines = text.lines().take_while(|line| *line != "mod tests {");
    for (number, line) in (1..).zip(lines) {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let asks = code.contains("defect(") || words(code).any(|word| word == "mutant");
        if asks && is_product && path.starts_with("crates/") {
            problems.push((number, "asks for a defect; write it into xtask/defects".to_string()));
        }
        if let Some(path) = engine {
            problems.extend(of_sync(path, code).map(|problem| (number, problem)));
            problems.extend(policy(path, code, policies).map(|problem| (number, problem)));
        }
        let allowed = path.starts_with("xtask/")
            || PROTOCOLS_ALLOWED.iter().any(|(place, _)| path.contains(place));
        let is_own = |name: &str| {
            let own = format!("{ENGINE}/protocols/{}", name.to_lowercase());
            path.strip_prefix(&own).is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        if !allowed
            && let Some(name) = protocols
                .iter()
                .find(|&&name| words(code).any(|word| word == name) && !is_own(name))
        {
            problems.push((
                number,
                format!("names the protocol {name}; be generic, or take it from the registry"),
            ));
        }
    }
    problems
}

/// Refuses types of the standard library that models replace. `crate::sync` has them.
fn of_sync(path: &str, code: &str) -> Option<String> {
    if OF_SYNC_ALLOWED.iter().any(|(place, _)| path.starts_with(place))
        || !["std::sync", "core::sync"].iter().any(|name| code.contains(name))
    {
        return None;
    }
    // Each may also be one of several names in braces.
    let refused = ["atomic", "Mutex", "Condvar"];
    let name = words(code).find(|word| refused.contains(word))?;
    Some(format!("names `{name}` of the standard library; `crate::sync` has what models replace"))
}

fn policy(path: &str, code: &str, policies: &[&str]) -> Option<String> {
    let is_without = WITHOUT_POLICIES.iter().any(|layer| path.starts_with(layer));
    let is_of_locks = code.contains("crate::locks");
    (is_without && (is_of_locks || words(code).any(|word| policies.contains(&word)))).then(|| {
        "knows of policies; leave that to the protocol, by a function of the seam".to_string()
    })
}

/// Returns the identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        problems(path, text, (&["Occ", "Serial"], &["NoWait", "Policies"]))
            .into_iter()
            .map(|(line, problem)| format!("{line}: {problem}"))
            .collect()
    }

    #[test]
    fn marks_of_a_merge_are_found_at_the_beginnings_of_lines() {
        let text = "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n  <<<<<<< quoted\n";
        assert_eq!(marks(text).collect::<Vec<_>>(), [1, 5]);
    }

    #[test]
    fn atomics_and_locks_outside_sync_are_refused() {
        let line = "use std::sync::atomic::AtomicU64;";
        assert_eq!(found("crates/candide/src/index/hash.rs", line).len(), 1);
        let among_others = "use std::sync::{Arc, atomic::AtomicU64};";
        assert_eq!(found("crates/candide/src/index/hash.rs", among_others).len(), 1);
        for name in ["Mutex", "Condvar"] {
            let line = format!("use std::sync::{{Arc, {name} as Other}};");
            assert_eq!(found("crates/candide/src/index/hash.rs", &line).len(), 1);
            assert!(found("crates/candide/src/sync/signal.rs", &line).is_empty());
        }
        assert!(
            found("crates/candide/src/index/hash.rs", "use std::sync::{Arc, RwLock}; // no atomic")
                .is_empty()
        );
        assert!(found("crates/candide/src/sync/mod.rs", line).is_empty());
        assert!(found("crates/candide/src/epoch/mod.rs", &format!("// {line}")).is_empty());
        assert!(
            found("crates/candide-harness/src/run/driver.rs", line).is_empty(),
            "only the engine is modelled"
        );
    }

    #[test]
    fn defects_are_asked_for_in_tests_only() {
        let line = "if !mutant(Mutant::NoFence) { full_fence() }";
        assert_eq!(found("crates/candide/src/gc/hot.rs", line).len(), 1);
        assert_eq!(found("crates/candide-log/src/rows.rs", "defect(\"no-fence\")").len(), 1);
        assert!(found("crates/candide/src/gc/tests/hot.rs", line).is_empty());
        assert!(found("crates/candide/src/gc/hot.rs", "// a mutant").is_empty());
    }

    #[test]
    fn names_of_protocols_outside_their_files_are_refused() {
        let line = "let db = Database::<Occ>::new();";
        assert_eq!(found("crates/candide/src/txn/state.rs", line).len(), 1);
        assert_eq!(found("crates/candide-workloads/src/load.rs", line).len(), 1);
        assert_eq!(found("crates/candide/src/protocols/shared/node_set.rs", line).len(), 1);
        assert_eq!(found("crates/candide/src/protocols/occasional.rs", line).len(), 1);
        assert!(found("crates/candide/src/protocols/occ/mod.rs", line).is_empty());
        assert!(found("crates/candide/src/protocols/occ/collect.rs", line).is_empty());
        assert!(found("crates/candide-workloads/tests/workloads/ycsb.rs", line).is_empty());
        assert!(found("crates/candide/src/txn/state.rs", "struct OccupiedSlot; // Occ").is_empty());
    }

    #[test]
    fn names_of_policies_in_lower_layers_are_refused() {
        let line = "if policy == Policy::NoWait {}";
        assert_eq!(found("crates/candide/src/txn/state.rs", line).len(), 1);
        assert_eq!(found("crates/candide/src/gc/mod.rs", "use crate::locks::RowLocks;").len(), 1);
        assert!(found("crates/candide/src/api/table_policy.rs", line).is_empty());
        assert!(found("crates/candide/src/engine/parts.rs", "type Policy: Default;").is_empty());
    }

    #[test]
    fn protocols_are_read_from_the_registry() {
        let registry = fs::read_to_string(crate::root().join(REGISTRY)).expect("the registry");
        assert_eq!(protocols_in(&registry), ["Occ", "TicToc", "Mvcc", "Mvto", "Serial"]);
        let policies = policies_in(&registry);
        assert_eq!(policies.len(), 13, "{policies:?}");
        assert!(policies.contains(&"WaitDie") && policies.contains(&"Hybrid"));
    }
}
