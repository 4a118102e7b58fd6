//! The places where the engine's source names a full fence or a memory ordering stronger than
//! Relaxed; and the weaker orderings that are possible at each place.

use crate::defects::{MARK, UNMARK};
use std::fs;
use std::path::Path;

/// The engine's source.
const ENGINE: &str = "crates/candide/src";
/// Files that the models do not use, and files that name orderings but do not use them.
const LEFT_OUT: &[&str] = &["tests/", "tests.rs", "index/ordered/loom.rs", "sync/weaken.rs"];

/// A place with an ordering or a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// The path from the workspace's folder, as the compiler names it.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The operation, as the source spells it.
    pub(crate) operation: String,
    /// The function that contains the site.
    pub(crate) function: String,
    pub(crate) ordering: String,
}

impl Site {
    /// Returns the place as the compiler names it.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// Returns the weaker orderings for the place, the strongest first. The text `None` in the list
    /// means that the fence is left out.
    pub(crate) fn weakenings(&self) -> &'static [&'static str] {
        match (self.operation.as_str(), self.ordering.as_str()) {
            ("full_fence", _) => &["AcqRel", "None"],
            ("load", "SeqCst") => &["Acquire"],
            ("store", "SeqCst") => &["Release"],
            (_, "SeqCst") => &["AcqRel"],
            (_, "AcqRel") => &["Acquire", "Release"],
            _ => &["Relaxed"],
        }
    }
}

/// Returns all sites, by file and line.
pub(crate) fn all(root: &Path) -> Result<Vec<Site>, String> {
    let mut files = Vec::new();
    crate::workspace::collect(&root.join(ENGINE), &mut files)
        .map_err(|error| format!("{ENGINE}: {error}"))?;
    files.sort();
    let mut sites = Vec::new();
    for file in files {
        let path = file
            .strip_prefix(root)
            .expect("collected below the root")
            .to_string_lossy()
            .replace('\\', "/");
        if is_engine(&path) {
            let text = fs::read_to_string(&file).map_err(|error| format!("{path}: {error}"))?;
            sites.extend(sites_in(&path, &text));
        }
    }
    Ok(sites)
}

/// Returns whether a path belongs to the engine's source, without its tests.
pub(crate) fn is_engine(path: &str) -> bool {
    let inside = path.strip_prefix(ENGINE).and_then(|path| path.strip_prefix('/'));
    inside.is_some_and(|inside| !LEFT_OUT.iter().any(|left_out| inside.contains(left_out)))
}

/// Returns the sites in the part of a file before its tests.
fn sites_in(path: &str, text: &str) -> Vec<Site> {
    let code = without_comments(text);
    let code = code.find("\nmod tests {").map_or(code.as_str(), |tests| &code[..tests]);
    let is_added = |site: &Site| {
        let line = code.lines().nth(site.line - 1).unwrap_or_default();
        let before = line.split_at_checked(site.column - 1).map_or(line, |(before, _)| before);
        before.matches(MARK).count() > before.matches(UNMARK).count()
    };
    let mut sites = Vec::new();
    for ordering in ["Acquire", "Release", "AcqRel", "SeqCst"] {
        for (at, _) in code.match_indices(&format!("Ordering::{ordering}")) {
            if let Some((start, operation)) = call_around(code, at)
                && operation != "fence"
            {
                sites.push(site(path, code, start, operation, ordering));
            }
        }
    }
    for (at, _) in code.match_indices("full_fence()") {
        let start = path_start(code, at);
        if !code[..start].ends_with("fn ")
            && code[start..].trim_start_matches("crate::sync::").starts_with("full_fence")
        {
            sites.push(site(path, code, start, "full_fence", "SeqCst"));
        }
    }
    sites.retain(|site| !is_added(site));
    sites.sort_by_key(|site| (site.line, site.column));
    sites
}

fn site(path: &str, code: &str, at: usize, operation: &str, ordering: &str) -> Site {
    let line_start = code[..at].rfind('\n').map_or(0, |end| end + 1);
    let function = code[..at].rfind("fn ").map_or("", |start| &code[start + 3..]);
    let function = &function[..function.find(|c: char| !is_name(c)).unwrap_or(0)];
    Site {
        file: path.to_string(),
        line: code[..at].matches('\n').count() + 1,
        column: code[line_start..at].chars().count() + 1,
        operation: operation.to_string(),
        function: function.to_string(),
        ordering: ordering.to_string(),
    }
}

/// Returns the text with comments replaced by blanks, so that all columns stay the same.
fn without_comments(text: &str) -> String {
    let blank = |line: &str| match line.find("//") {
        Some(comment) => line[..comment].to_string() + &" ".repeat(line.len() - comment),
        None => line.to_string(),
    };
    text.lines().map(blank).collect::<Vec<_>>().join("\n")
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the call that has an argument at `at`: the start of the function's name, and the name.
fn call_around(code: &str, at: usize) -> Option<(usize, &str)> {
    let mut depth = 0;
    for (place, c) in code[..at].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => {
                let start = code[..place].rfind(|c| !is_name(c)).map_or(0, |end| end + 1);
                return (start < place).then(|| (start, &code[start..place]));
            }
            '(' => depth -= 1,
            ';' | '{' | '}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the start of the path whose last name is at `at`.
fn path_start(code: &str, at: usize) -> usize {
    code[..at].rfind(|c: char| !is_name(c) && c != ':').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_the_positions_that_the_compiler_reports() {
        let text = "fn one() {
    a.load(Ordering::Acquire); // b.load(Ordering::Acquire)
    self.current.swap(next.load(Ordering::Acquire), Ordering::AcqRel);
    let ok = cell
        .compare_exchange(f(1), 2, Ordering::Acquire, Ordering::Relaxed);
    crate::sync::full_fence();
    if d { /*+*/b.load(Ordering::Acquire); /*-*/} else { /*+*/ /*-*/full_fence();} // E1
}
fn full_fence() {
    fence(Ordering::SeqCst);
    store_then_full_fence();
}
mod tests {
    fn two() { a.load(Ordering::Acquire); }
}";
        let found: Vec<_> =
            sites_in("x.rs", text).into_iter().map(|site| (site.place(), site.operation)).collect();
        let expected = [
            ("x.rs:2:7", "load"),
            ("x.rs:3:18", "swap"),
            ("x.rs:3:28", "load"),
            ("x.rs:5:10", "compare_exchange"),
            ("x.rs:6:5", "full_fence"),
            ("x.rs:7:69", "full_fence"),
        ];
        assert_eq!(
            found,
            expected.map(|(place, operation)| (place.to_string(), operation.to_string()))
        );
    }

    #[test]
    fn every_place_of_the_engine_that_names_an_ordering_is_a_site() {
        let sites = all(&crate::root()).expect("the engine's source");
        let of = |file: &str| sites.iter().filter(|site| site.file.ends_with(file)).count();
        assert!(
            of("protocols/shared/cell_lock.rs") >= 7
                && of("index/hash.rs") >= 15
                && of("epoch/mod.rs") >= 8
        );
        assert!(
            sites.iter().all(|site| !site.function.is_empty() && !site.weakenings().is_empty())
        );
    }
}
