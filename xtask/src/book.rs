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
    ("docs/beside-others.md", "Beside others"),
    ("docs/faq.md", "Questions"),
    ("docs/durability.md", "Durability"),
    ("docs/reach.md", "Beyond the machine"),
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

/// The folder of the decisions, and the document that they are listed below.
const DECISIONS: (&str, &str) = ("docs/decisions/", "docs/decisions/README.md");

const SETTINGS: &str = "\
[book]
title = \"Candide\"
src = \"src\"

[build]
build-dir = \"html\"

[output.html]
additional-css = [\"wide.css\"]
fold = { enable = true, level = 0 }
# Programs need the crate, which the playground does not have.
playground = { runnable = false }
";

/// Pages are wide enough for lines of code of a hundred columns.
const STYLE: &str = ":root { --content-max-width: 900px; }\n";

/// Writes the sources of the book, and has mdBook make its pages.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("`book` takes no arguments, and `{unknown}` is one"));
    }
    let folder = root.join(target_folder()).join("book");
    let _ = fs::remove_dir_all(&folder);
    write(&folder.join("book.toml"), SETTINGS)?;
    write(&folder.join("wide.css"), STYLE)?;
    let chapters = chapters(root)?;
    let documents: Vec<&(String, String)> = chapters.iter().flat_map(|(_, part)| part).collect();
    let is_shown = |path: &str| documents.iter().any(|(other, _)| other == path);
    for (path, title) in &documents {
        let text = read(&root.join(path))?;
        write(&folder.join("src").join(path), page(&text, path, title, &is_shown))?;
        for picture in pictures(&text) {
            let (from, to) = (root.join(path), folder.join("src").join(path));
            let bytes = fs::read(from.with_file_name(picture));
            let bytes = bytes.map_err(|error| format!("{path}: {picture}: {error}"))?;
            write(&to.with_file_name(picture), bytes)?;
        }
    }
    write(&folder.join("src/SUMMARY.md"), summary(&chapters))?;
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
    let (users, mut engine, mut decisions) = (owned(USERS), owned(ENGINE), Vec::new());
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
        let chapter = (path.clone(), title.unwrap_or(&path).replace('`', ""));
        match path.starts_with(DECISIONS.0) {
            true if path == DECISIONS.1 => decisions.insert(0, chapter),
            true => decisions.push(chapter),
            false => engine.push(chapter),
        }
    }
    engine.append(&mut decisions);
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
            let is_below = path.starts_with(DECISIONS.0) && path != DECISIONS.1;
            let indent = if is_below { "  " } else { "" };
            text += &format!("{indent}- [{title}]({path})\n");
        }
    }
    text
}

/// Returns the document at `path` as a page of the book: it begins with a title, code without a
/// language is Rust, as rustdoc has it, and links to what the book does not have are text.
fn page(text: &str, path: &str, title: &str, is_shown: &impl Fn(&str) -> bool) -> String {
    let mut page = String::new();
    if !text.starts_with("# ") {
        page += &format!("# {title}\n\n");
    }
    let (mut prose, mut in_code) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence {
            page += &with_links(&std::mem::take(&mut prose), path, is_shown);
            page += if in_code && line == "```\n" { "```rust\n" } else { line };
        } else {
            prose += line;
        }
    }
    page + &with_links(&prose, path, is_shown)
}

/// Returns prose in which links to items of the API and to files that are not shown are text.
fn with_links(prose: &str, path: &str, is_shown: &impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut rest = prose;
    while let Some((before, opened)) = rest.split_once('[') {
        text += before;
        let link = opened.split_once(']').filter(|(shown, _)| !shown.contains('['));
        let Some((shown, after)) = link else {
            text.push('[');
            rest = opened;
            continue;
        };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        match target {
            Some((target, after)) if is_item(target) || !leads(target, path, is_shown) => {
                text += shown;
                rest = after;
            }
            // mdBook calls the page of a folder's README `index`.
            Some((target, after)) if target.contains("README.md") => {
                let target = target.replace("README.md", "index.md");
                text += &format!("[{shown}]({target})");
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

/// Returns whether a link in the document at `path` leads to the web, to a picture, or to a
/// document for which `is_shown` holds.
fn leads(target: &str, path: &str, is_shown: &impl Fn(&str) -> bool) -> bool {
    let (file, _) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() || file.contains(':') || file.ends_with(".svg") {
        return true;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    is_shown(&parts.join("/"))
}

/// Returns the pictures that a document shows.
fn pictures(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(target, _)| target).filter(|target| target.ends_with(".svg"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    fn is_shown(path: &str) -> bool {
        ["docs/a.md", "README.md"].contains(&path)
    }

    #[test]
    fn links_to_items_are_text_and_links_to_pages_stay() {
        let line = "a [`Tx`], [`run`](crate::Tx::run), [one](macro@Key), [two](docs/a.md), x[0] and [three](#three)";
        let expected = "a `Tx`, `run`, one, [two](docs/a.md), x[0] and [three](#three)";
        assert_eq!(with_links(line, "README.md", &is_shown), expected);
    }

    #[test]
    fn links_to_what_the_book_does_not_have_are_text() {
        let line = "[own](a.md#x), [code](../src/lib.rs), ![drawn](a.svg), [web](https://x.org/y)";
        let expected = "[own](a.md#x), code, ![drawn](a.svg), [web](https://x.org/y)";
        assert_eq!(with_links(line, "docs/b.md", &is_shown), expected);
        let line = "from [a, b) [in two\nlines](../src/lib.rs)";
        assert_eq!(with_links(line, "docs/b.md", &is_shown), "from [a, b) in two\nlines");
        let up = with_links("[up](../README.md#top) and [docs](../docs)", "docs/b.md", &is_shown);
        assert_eq!(up, "[up](../index.md#top) and docs");
    }

    #[test]
    fn pages_have_a_title_and_code_without_a_language_is_rust() {
        let text = "```\nlet x = v[0];\n```\n```sh\nls\n```\n";
        let expected = "# A title\n\n```rust\nlet x = v[0];\n```\n```sh\nls\n```\n";
        assert_eq!(page(text, "docs/b.md", "A title", &is_shown), expected);
        assert_eq!(page("# B\n", "docs/b.md", "A title", &is_shown), "# B\n");
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
        let summary = summary(&chapters);
        assert!(summary.contains("- [Guide](crates/candide/GUIDE.md)\n"), "{summary}");
        let below = summary.split_once("(docs/decisions/README.md)\n").expect("listed").1;
        assert!(below.starts_with("  - ["), "{summary}");
    }
}
