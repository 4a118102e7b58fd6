//! Rules of the architecture that the compiler does not know.
//!
//! * Atomics are named in `sync` alone, so that the same engine runs under models.
//! * Within the engine, `use` goes down the layers, or stays within one.
//! * A protocol is named by its own file, the registry and tests. Whatever else did would have to
//!   change with every protocol that comes.
//!
//! Comments, and with them documentation and its examples, may name what they like; so may tests.

use crate::prose;
use std::fs;
use std::path::{Path, PathBuf};

/// The engine's source.
const ENGINE: &str = "crates/candide/src";
/// The only list of protocols.
pub(crate) const REGISTRY: &str = "crates/candide/src/protocol/list.rs";

/// The engine's modules, lowest first. Modules of one layer may use one another.
const LAYERS: &[&[&str]] = &[
    &["sync"],
    &["error", "factor", "timestamps"],
    &["stats"],
    &["memory"],
    &["epoch"],
    &["record"],
    &["index"],
    &["access"],
    &["protocol"],
    &["txn", "catalog"],
    &[
        "db",
        "session",
        "snapshot",
        "table",
        "scan",
        "secondary",
        "indexing",
        "quiescent",
        "bulk",
        "stream",
        "health",
    ],
];

/// Places of the engine that may name the standard library's atomics.
const ATOMICS_ALLOWED: &[(&str, &str)] =
    &[("sync/", "it is the door"), ("tests/", "tests count and stop outside of what they test")];

/// The most words for persons without a name in all sources; it may only fall, to 20.
const PERSONS_MAX: usize = 88;

/// Places that may name a protocol.
const PROTOCOLS_ALLOWED: &[(&str, &str)] = &[
    ("crates/candide/src/protocol/", "their own files"),
    ("crates/candide/src/lib.rs", "exports them"),
    ("crates/candide/src/db.rs", "chooses the default"),
    ("crates/candide-peers/src/stores/peers/mod.rs", "lists those that are compared"),
    ("/tests/", "tests run under those they choose"),
    ("/examples/", "examples are programs, and programs choose"),
    ("crates/candide-measure/", "likewise"),
];

/// Looks at every source file; an error if anything was found.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        collect(&root.join(folder), &mut files).map_err(|error| format!("{folder}: {error}"))?;
    }
    files.sort();
    let registry =
        fs::read_to_string(root.join(REGISTRY)).map_err(|error| format!("{REGISTRY}: {error}"))?;
    let protocols = protocols_in(&registry);
    if protocols.is_empty() {
        return Err(format!("{REGISTRY} lists no protocol that could be recognized"));
    }
    let (mut found, mut persons) = (0, 0);
    for file in &files {
        let text =
            fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let path = file
            .strip_prefix(root)
            .expect("collected below the root")
            .to_string_lossy()
            .replace('\\', "/");
        persons += prose::persons(&text);
        for (line, problem) in
            problems(&path, &text, &protocols).into_iter().chain(prose::wide_comments(&text))
        {
            println!("{path}:{line}: {problem}");
            found += 1;
        }
    }
    if persons > PERSONS_MAX {
        println!("{persons} words such as \"whoever\" in all; name the thing of the code instead");
        found += 1;
    }
    match found {
        0 => {
            println!("tidy: {} files, nothing found ({persons} unnamed persons)", files.len());
            Ok(())
        }
        1 => Err("one rule is broken".to_string()),
        _ => Err(format!("rules are broken in {found} places")),
    }
}

/// Collects the source files below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the protocols that are listed, each in a line with its policies.
pub(crate) fn protocols_in(list: &str) -> Vec<&str> {
    let entries = list.lines().filter(|line| line.ends_with(';'));
    entries.filter_map(|line| line.split("$crate::").nth(1)?.split(':').next()).collect()
}

/// Returns the faults of one file: line numbers and what to do.
fn problems(path: &str, text: &str, protocols: &[&str]) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    let engine = path.strip_prefix(ENGINE).and_then(|path| path.strip_prefix('/'));
    // The unit tests of a file are at its foot.
    let lines = text.lines().take_while(|line| *line != "mod tests {");
    for (number, line) in (1..).zip(lines) {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        if let Some(path) = engine {
            problems.extend(atomics(path, code).map(|problem| (number, problem)));
            problems.extend(upward(path, code).into_iter().map(|problem| (number, problem)));
        }
        let allowed = path.starts_with("xtask/")
            || PROTOCOLS_ALLOWED.iter().any(|(place, _)| path.contains(place));
        if !allowed
            && let Some(name) = protocols.iter().find(|name| words(code).any(|word| word == **name))
        {
            problems.push((
                number,
                format!("names the protocol {name}; be generic, or take it from the registry"),
            ));
        }
    }
    problems
}

fn atomics(path: &str, code: &str) -> Option<String> {
    let allowed = ATOMICS_ALLOWED.iter().any(|(place, _)| path.starts_with(place));
    // Among others in braces, too.
    let is_of_sync = ["std::sync", "core::sync"].iter().any(|name| code.contains(name));
    let named = is_of_sync && words(code).any(|word| word == "atomic");
    (named && !allowed)
        .then(|| "names the standard library's atomics; use those of `crate::sync`".to_string())
}

/// The uses of higher layers in a line of the engine.
fn upward(path: &str, code: &str) -> Vec<String> {
    let module = path.split(['/', '.']).next().expect("splitting gives at least one part");
    // The list of protocols is expanded outside of the engine, so it names them by the root.
    if ["lib", "tests"].contains(&module) || path == "protocol/list.rs" {
        return Vec::new();
    }
    let Some(own) = layer(module) else { return vec![not_in_a_layer(module)] };
    let used = code
        .split("crate::")
        .skip(1)
        .map(|rest| words(rest).next().filter(|word| rest.starts_with(word)));
    used.filter_map(|used| match used {
        None => {
            Some("imports several modules at once; one `use` for each shows its layer".to_string())
        }
        Some(used) => match layer(used) {
            None if used.starts_with(char::is_uppercase) => Some(format!(
                "takes {used} from the crate's root; take it from the module that defines it"
            )),
            None => Some(not_in_a_layer(used)),
            Some(layer) => {
                (layer > own).then(|| format!("`{module}` is below `{used}` and must not use it"))
            }
        },
    })
    .collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn not_in_a_layer(module: &str) -> String {
    format!("the module `{module}` is in no layer; give it one in `LAYERS` of xtask/src/tidy.rs")
}

/// The identifiers of a line.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        problems(path, text, &["Occ", "Serial"])
            .into_iter()
            .map(|(line, problem)| format!("{line}: {problem}"))
            .collect()
    }

    #[test]
    fn atomics_have_one_door() {
        let line = "use std::sync::atomic::AtomicU64;";
        assert_eq!(found("crates/candide/src/index/hash.rs", line).len(), 1);
        let among_others = "use std::sync::{Arc, atomic::AtomicU64};";
        assert_eq!(found("crates/candide/src/index/hash.rs", among_others).len(), 1);
        assert!(
            found("crates/candide/src/index/hash.rs", "use std::sync::{Arc, Mutex}; // not atomic")
                .is_empty()
        );
        assert!(found("crates/candide/src/sync/mod.rs", line).is_empty());
        assert!(found("crates/candide/src/epoch.rs", &format!("// {line}")).is_empty());
        assert!(
            found("crates/candide-harness/src/driver.rs", line).is_empty(),
            "only the engine is modelled"
        );
    }

    #[test]
    fn uses_go_down() {
        let occ = "crates/candide/src/protocol/occ.rs";
        assert!(found(occ, "use crate::access::WriteSet;\nuse crate::protocol::Seen;").is_empty());
        assert_eq!(
            found(occ, "\nuse crate::txn::Tx;"),
            ["2: `protocol` is below `txn` and must not use it"]
        );
        assert_eq!(found(occ, "let tx: crate::txn::Tx;").len(), 1);
        assert_eq!(found(occ, "use crate::{db, error};").len(), 1);
        assert!(found(occ, "use crate::Database;")[0].contains("root"));
        assert!(found(occ, "use crate::novel::Thing;")[0].contains("`novel` is in no layer"));
        assert!(
            found("crates/candide/src/novel.rs", "fn f() {}")[0].contains("`novel` is in no layer")
        );
        assert!(found("crates/candide/src/db.rs", "use crate::table::Table;").is_empty());
        assert!(
            found(occ, "#[cfg(test)]\nmod tests {\n    use crate::{Database, Occ};").is_empty()
        );
    }

    #[test]
    fn protocols_are_named_in_few_places() {
        let line = "let db = Database::<Occ>::new();";
        assert_eq!(found("crates/candide/src/txn/state.rs", line).len(), 1);
        assert_eq!(found("crates/candide-workloads/src/load.rs", line).len(), 1);
        assert!(found("crates/candide-workloads/tests/workloads/ycsb.rs", line).is_empty());
        assert!(found("crates/candide/src/txn/state.rs", "struct OccupiedSlot; // Occ").is_empty());
    }

    #[test]
    fn the_registry_is_understood() {
        let registry = fs::read_to_string(crate::root().join(REGISTRY)).expect("the registry");
        assert_eq!(protocols_in(&registry), ["Occ", "TicToc", "Mvcc", "Mvto", "Serial"]);
    }
}
