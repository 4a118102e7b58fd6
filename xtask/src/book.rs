//! The documentation as a site: the project's documents, the guide for users apart from the pages
//! about the engine.
//!
//! The documents keep their folders, so that links between them lead to the same places. mdBook
//! makes the pages.

use crate::workspace::{collect_ending, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The documents for users, each with its title.
const USERS: &[(&str, &str)] = &[
    ("README.md", "Candide"),
    ("crates/candide/GUIDE.md", "Guide"),
    ("docs/coming-from.md", "Coming from"),
    ("docs/faq.md", "Questions"),
    ("docs/durability.md", "Durability"),
    ("docs/async.md", "Async programs"),
    ("BENCHMARKS.md", "Benchmarks"),
    ("CHANGELOG.md", "Changes"),
];

/// The first documents about the engine. The others follow in the order of their names.
const ENGINE: &[(&str, &str)] = &[
    ("ARCHITECTURE.md", "Architecture"),
    ("docs/protocols.md", "Protocols"),
    ("docs/correctness.md", "Correctness"),
    ("CONTRIBUTING.md", "Contributing"),
];

const SETTINGS: &str = "\
[book]
title = \"Candide\"
src = \"src\"

[build]
build-dir = \"html\"
";

/// Writes the sources of the book, and has mdBook make its pages.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("`book` takes no arguments, and `{unknown}` is one"));
    }
    let folder = root.join(target_folder()).join("book");
    let _ = fs::remove_dir_all(&folder);
    write(&folder.join("book.toml"), SETTINGS)?;
    let chapters = chapters(root)?;
    for path in chapters.iter().flat_map(|(_, part)| part.iter().map(|(path, _)| path)) {
        let text = read(&root.join(path))?;
        write(&folder.join("src").join(path), &page(&text))?;
        for picture in pictures(&text) {
            let (from, to) = (root.join(path), folder.join("src").join(path));
            let bytes = fs::read(from.with_file_name(picture));
            let bytes = bytes.map_err(|error| format!("{path}: {picture}: {error}"))?;
            fs::write(to.with_file_name(picture), bytes)
                .map_err(|error| format!("{picture}: {error}"))?;
        }
    }
    write(&folder.join("src/SUMMARY.md"), &summary(&chapters))?;
    let made = Command::new("mdbook").arg("build").arg(&folder).status();
    match made {
        Ok(status) if status.success() => {
            println!("book: {}", folder.join("html/index.html").display());
            Ok(())
        }
        Ok(status) => Err(format!("mdbook: {status}")),
        Err(error) => Err(format!(
            "mdbook does not start: {error}; `cargo install mdbook` installs it. The book's sources are in {}",
            folder.display()
        )),
    }
}

/// The parts of the book: the title of each, and its documents with their titles.
type Chapters = Vec<(&'static str, Vec<(String, String)>)>;

fn chapters(root: &Path) -> Result<Chapters, String> {
    let owned = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(path, title)| (path.to_string(), title.to_string())).collect()
    };
    let (users, mut engine) = (owned(USERS), owned(ENGINE));
    let mut files = Vec::new();
    collect_ending("md", &root.join("docs"), &mut files)
        .map_err(|error| format!("docs: {error}"))?;
    files.sort();
    for file in files {
        let path = relative(root, &file);
        if users.iter().chain(&engine).any(|(known, _)| *known == path) {
            continue;
        }
        let text = read(&file)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        engine.push((path.clone(), title.unwrap_or(&path).replace('`', "")));
    }
    Ok(vec![("For users", users), ("The engine", engine)])
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned()
}

fn summary(chapters: &Chapters) -> String {
    let mut text = "# Summary\n".to_string();
    for (part, documents) in chapters {
        text += &format!("\n# {part}\n\n");
        for (path, title) in documents {
            text += &format!("- [{title}]({path})\n");
        }
    }
    text
}

/// Returns a document as a page of the book: code without a language is Rust, as rustdoc has it,
/// and links to items of the API show their names only.
fn page(text: &str) -> String {
    let mut page = String::new();
    let mut in_code = false;
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if is_fence && in_code && line == "```" {
            page += "```rust";
        } else if in_code || is_fence {
            page += line;
        } else {
            page += &without_items(line);
        }
        page.push('\n');
    }
    page
}

/// Returns a line in which links to items of the API are text.
fn without_items(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, opened)) = rest.split_once('[') {
        text += before;
        let Some((shown, after)) = opened.split_once(']') else {
            text.push('[');
            rest = opened;
            continue;
        };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        match target {
            Some((target, after)) if is_item(target) => {
                text += shown;
                rest = after;
            }
            None if shown.starts_with('`') && shown.ends_with('`') => {
                text += shown;
                rest = after;
            }
            _ => {
                text.push('[');
                rest = opened;
            }
        }
    }
    text + rest
}

/// Returns whether the target of a link is an item of the API.
fn is_item(target: &str) -> bool {
    let is_path = target.contains("::") || target.contains('@');
    !target.contains('/') && !target.contains('#') && (is_path || !target.contains('.'))
}

/// Returns the pictures that a document shows.
fn pictures(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(target, _)| target).filter(|target| target.ends_with(".svg"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn links_to_items_are_text_and_links_to_pages_stay() {
        let line = "a [`Tx`], [`run`](crate::Tx::run), [one](macro@Key), [two](docs/a.md), x[0] and [three](#three)";
        let expected = "a `Tx`, `run`, one, [two](docs/a.md), x[0] and [three](#three)";
        assert_eq!(without_items(line), expected);
    }

    #[test]
    fn code_without_a_language_is_rust() {
        let text = "```\nlet x = v[0];\n```\n```sh\nls\n```\n";
        assert_eq!(page(text), "```rust\nlet x = v[0];\n```\n```sh\nls\n```\n");
    }

    #[test]
    fn each_document_is_in_the_book_once() {
        let chapters = chapters(&root()).unwrap();
        let mut paths: Vec<&String> =
            chapters.iter().flat_map(|(_, part)| part.iter().map(|(path, _)| path)).collect();
        paths.sort();
        let count = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), count);
        assert!(paths.iter().all(|path| root().join(path).exists()), "{paths:?}");
        assert!(summary(&chapters).contains("- [Guide](crates/candide/GUIDE.md)\n"));
    }
}
