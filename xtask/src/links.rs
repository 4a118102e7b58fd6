//! Links of documents to files of the project and to headings: each must lead to what exists. A
//! heading is a line of its own.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Returns a line for each link of these documents, which have paths below `root`, that leads to no
/// file or to no heading of a document, and for each heading that text follows at once.
pub(crate) fn problems(documents: &[(String, String)], root: &Path) -> Vec<String> {
    let headings: BTreeMap<PathBuf, Vec<String>> =
        documents.iter().map(|(path, text)| (PathBuf::from(path), fragments(text))).collect();
    let mut problems = Vec::new();
    for (path, text) in documents {
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        for (line, target) in targets(text) {
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { PathBuf::from(path) } else { join(folder, file) };
            if !root.join(&file).exists() {
                problems.push(format!(
                    "{path}:{line}: links to {target}, which does not exist; name a file that does"
                ));
            } else if let Some(known) = headings.get(&file).filter(|_| !fragment.is_empty())
                && !known.iter().any(|known| known == fragment)
            {
                problems.push(format!(
                    "{path}:{line}: links to {target}, and {} has no such heading; its fragments are {}",
                    file.display(),
                    known.join(", ")
                ));
            }
        }
        problems.extend(followed_headings(text).map(|line| {
            format!("{path}:{line}: text follows the heading; leave a line blank between them")
        }));
    }
    problems
}

/// Returns `folder/file` without `..`.
fn join(folder: &Path, file: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => {}
            part => joined.push(part),
        }
    }
    joined
}

/// Returns the lines of a document that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns the text of a heading; `None` if the line is none.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
}

/// Returns the fragments by which links lead to a document's headings: a heading in small letters,
/// with hyphens for spaces and without other marks, and a number if the document has it several
/// times.
fn fragments(text: &str) -> Vec<String> {
    let mut fragments: Vec<String> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for title in prose(text).filter_map(|(_, line)| heading(line)) {
        // Of a link, a heading shows the text.
        let shown = title.split("](").enumerate().map(|(part, text)| match part {
            0 => text,
            _ => text.split_once(')').map_or(text, |(_, rest)| rest),
        });
        let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let fragment: String = shown
            .flat_map(|text| text.chars().filter(|&c| kept(c)).collect::<Vec<_>>())
            .flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let times = seen.entry(fragment.clone()).or_default();
        fragments.push(if *times == 0 { fragment } else { format!("{fragment}-{times}") });
        *times += 1;
    }
    fragments
}

/// Returns the numbers of the headings' lines that text follows at once.
fn followed_headings(text: &str) -> impl Iterator<Item = usize> {
    let lines: Vec<&str> = text.lines().collect();
    prose(text)
        .filter(|(_, line)| heading(line).is_some())
        .map(|(number, _)| number)
        .filter(move |&number| lines.get(number).is_some_and(|next| !next.trim().is_empty()))
}

/// Returns the files and fragments to which a document links, each with the number of the line.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links
            .map(|(target, _)| target)
            .filter(|target| !target.is_empty() && !target.contains(':'))
            .map(move |target| (number, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_headings_are_found_and_others_are_not() {
        let text = "[a](docs/a.md#part) and [b](https://x.org/b)\n```\nlist[0](c.md)\n```\n[d](#d) [e](e.md)";
        let found: Vec<_> = targets(text).collect();
        assert_eq!(found, [(1, "docs/a.md#part"), (5, "#d"), (5, "e.md")]);
    }

    #[test]
    fn links_to_missing_files_and_headings_are_problems() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = "# A `code` page: 2nd\n\n[here](../Cargo.toml)\n[there](nowhere.md)\n\
                    [own](main.rs#a-code-page-2nd) [b](main.rs#b) [c](../src/links.rs#twice-1)\n\
                    [d](links.rs#twice-2)\n";
        let other = "# Twice\n\n# Twice\n";
        let documents = [("src/main.rs", page), ("src/links.rs", other)];
        let documents = documents.map(|(path, text)| (path.to_string(), text.to_string()));
        let found = problems(&documents, root);
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].starts_with("src/main.rs:4: links to nowhere.md, which does not"));
        assert!(found[1].starts_with("src/main.rs:5: links to main.rs#b, and src/main.rs has no"));
        assert!(found[2].contains("links to links.rs#twice-2, and src/links.rs has no such"));
    }

    #[test]
    fn fragments_are_those_of_the_headings() {
        let text =
            "# Twice\n\n## [A link](a.md), and `code`\n\n# Twice\n\n```\n# Code\n```\n#none\n";
        assert_eq!(fragments(text), ["twice", "a-link-and-code", "twice-1"]);
    }

    #[test]
    fn text_that_follows_a_heading_at_once_is_a_problem() {
        let text = "# One\nfollowed\n\n## Two\n\ntext\n\n# Three";
        assert_eq!(followed_headings(text).collect::<Vec<_>>(), [1]);
    }
}
