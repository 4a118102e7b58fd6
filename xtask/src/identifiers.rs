//! A check that files and names that documents have in backticks exist: names of the source that
//! have a `::` or a `_`.
//!
//! A name exists if each of its words is in some code; comments do not count. After the name of a
//! type, a word must be in a file that defines or implements the type. So a name that was changed
//! in the source is found unless another one took its place.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Names that are not of the source, and why documents have them.
const FOREIGN: &[(&str, &str)] = &[
    ("O_DIRECT", "a flag of the operating system"),
    ("SQLITE_BUSY", "an error of SQLite"),
    ("run_at", "a function that a decision gave up"),
    ("run_read_only", "likewise"),
];

/// The names of the source.
pub(crate) struct Names<'a> {
    /// The words of all code.
    words: HashSet<&'a str>,
    /// For each type, the indexes of the files that define or implement it.
    types: HashMap<&'a str, HashSet<usize>>,
    /// The path and the words of each file.
    files: Vec<(&'a str, HashSet<&'a str>)>,
}

impl<'a> Names<'a> {
    /// Collects the names of files, which have paths and texts.
    pub(crate) fn of(sources: &'a [(String, String)]) -> Names<'a> {
        let (mut words, mut files) = (HashSet::new(), Vec::new());
        let mut types: HashMap<&str, HashSet<usize>> = HashMap::new();
        for (index, (path, text)) in sources.iter().enumerate() {
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            let mut of_file = HashSet::new();
            for line in code {
                let of_line: Vec<&str> = words_of(line).collect();
                let defines = ["struct", "enum", "trait", "type", "impl"];
                if let Some(at) = of_line.iter().position(|word| defines.contains(word)) {
                    for word in &of_line[at + 1..] {
                        types.entry(word).or_default().insert(index);
                    }
                }
                of_file.extend(of_line);
            }
            words.extend(&of_file);
            files.push((path.as_str(), of_file));
        }
        Names { words, types, files }
    }

    /// Returns the names in a document of the folder `folder`, below `root`, that do not exist,
    /// with the numbers of the lines.
    pub(crate) fn missing(&self, text: &str, folder: &Path, root: &Path) -> Vec<(usize, String)> {
        let mut in_code = false;
        let mut missing = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let is_fence = line.starts_with("```");
            in_code ^= is_fence;
            if in_code || is_fence {
                continue;
            }
            for named in line.split('`').skip(1).step_by(2) {
                let exists = if is_path(named) {
                    self.has_file(named, folder, root)
                } else {
                    self.has_name(named)
                };
                if !exists {
                    let problem = format!("names {named}, which does not exist; look it up");
                    missing.push((number, problem));
                }
            }
        }
        missing
    }

    /// Returns whether there is a file or a folder of this path: from the root, from the document,
    /// or within a crate.
    fn has_file(&self, path: &str, folder: &Path, root: &Path) -> bool {
        let path = path.trim_end_matches('/');
        let (end, part) = (format!("/{path}"), format!("/{path}/"));
        path.starts_with("target/")
            || [root, folder].iter().any(|folder| folder.join(path).exists())
            || self.files.iter().any(|(file, _)| file.ends_with(&end) || file.contains(&part))
    }

    /// Returns whether the source has a name. Returns `true` for a word that need not be a name.
    fn has_name(&self, named: &str) -> bool {
        let name = named.split(['(', '<']).next().unwrap_or(named).trim_start_matches('&');
        let parts: Vec<&str> = name.split("::").collect();
        let is_word = |part: &&str| words_of(part).next() == Some(*part);
        let is_name = parts.iter().all(is_word) && (parts.len() > 1 || name.contains('_'));
        if !is_name || FOREIGN.iter().any(|(foreign, _)| *foreign == name) {
            return true;
        }
        let is_of = |pair: &[&str]| {
            let is_type = pair[0].starts_with(char::is_uppercase);
            let files = self.types.get(pair[0]).filter(|_| is_type);
            files.is_none_or(|files| files.iter().any(|file| self.files[*file].1.contains(pair[1])))
        };
        parts.iter().all(|part| self.words.contains(part)) && parts.windows(2).all(is_of)
    }
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn is_path(named: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let endings = [".rs", ".md", ".csv", ".toml", ".js"];
    named.chars().all(is_plain)
        && !named.starts_with(['.', '/'])
        && (named.contains('/') || endings.iter().any(|ending| named.ends_with(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_files_that_do_not_exist_are_reported() {
        let sources = [
            ("crates/a/src/epoch/pin.rs", "impl<P> Pins<P> {\n fn pin_now() {} // old_name\n}"),
            ("crates/a/src/peek.rs", "struct Pending;\nfn peek(_: &Pending) { Pins::pin_now() }"),
        ];
        let sources = sources.map(|(path, text)| (path.to_string(), text.to_string()));
        let names = Names::of(&sources);
        let root = crate::root();
        let missing = |text: &str| {
            let found = names.missing(text, &root.join("docs"), &root);
            found.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert!(
            missing("`Pins::pin_now(..)`, `pin_now`, `Pending::peek`, `peek`, `gone`").is_empty()
        );
        assert!(
            missing("`epoch/pin.rs`, `src/epoch`, `a/src/epoch/`, `build-budget.csv`").is_empty()
        );
        assert!(missing("```\n`no_such_name`\n```\n`SQLITE_BUSY`").is_empty());
        assert_eq!(missing("\n`old_name`\n`Pins::peek` and `epoch/pan.rs`"), [2, 3, 3]);
    }
}
