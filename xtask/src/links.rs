//! Links of documents to files of the project: each must lead to a file that exists.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns a line for each link of these documents that leads to no file.
pub(crate) fn problems(documents: &[PathBuf], root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for document in documents {
        let name = document.strip_prefix(root).unwrap_or(document).display();
        let text = fs::read_to_string(document).map_err(|error| format!("{name}: {error}"))?;
        let folder = document.parent().unwrap_or(root);
        let broken = targets(&text).filter(|(_, target)| !folder.join(target).exists());
        problems.extend(broken.map(|(line, target)| {
            format!(
                "{name}:{line}: links to {target}, which does not exist; name the file as it is"
            )
        }));
    }
    Ok(problems)
}

/// Returns the files to which a document links, each with the number of the line.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let lines = (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    lines.flat_map(|(number, line)| {
        let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let files = links.filter_map(|(target, _)| target.split('#').next());
        files
            .filter(|target| !target.is_empty() && !target.contains("://"))
            .map(move |target| (number, target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found_and_others_are_not() {
        let text = "[a](docs/a.md#part) and [b](https://x.org/b)\n```\nlist[0](c.md)\n```\n[d](#d) [e](e.md)";
        let found: Vec<_> = targets(text).collect();
        assert_eq!(found, [(1, "docs/a.md"), (5, "e.md")]);
    }

    #[test]
    fn a_link_to_a_missing_file_is_a_problem() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let document = std::env::temp_dir().join(format!("links-{}.md", std::process::id()));
        fs::write(&document, "[here](Cargo.toml)\n[there](nowhere.md)\n").unwrap();
        let found = problems(&[document.clone()], root).unwrap();
        fs::remove_file(&document).unwrap();
        assert_eq!(found.len(), 2, "{found:?}: neither file is in that folder");
        assert!(found[1].contains("nowhere.md"));
    }
}
