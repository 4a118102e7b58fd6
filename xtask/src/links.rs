//! Links of documents to files of the project: each must lead to a file that exists.

use std::path::Path;

/// Returns a line for each link of these documents, which have paths below `root`, that leads to no
/// file.
pub(crate) fn problems(documents: &[(String, String)], root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in documents {
        let document = root.join(path);
        let folder = document.parent().unwrap_or(root);
        let broken = targets(text).filter(|(_, target)| !folder.join(target).exists());
        problems.extend(broken.map(|(line, target)| {
            format!("{path}:{line}: links to {target}, which does not exist; name a file that does")
        }));
    }
    problems
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
        let text = "[here](../Cargo.toml)\n[there](nowhere.md)\n".to_string();
        let found = problems(&[("src/page.md".to_string(), text)], root);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("src/page.md:2: links to nowhere.md"));
    }
}
