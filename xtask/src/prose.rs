//! Rules of comments and documents.
//!
//! A comment has at most 100 columns, except tables, examples and links.
//! * The subject of a sentence is a thing of the code: a reader, a writer, a snapshot. Words for
//!   unnamed persons are counted in the whole tree.

/// The most columns of a comment.
const COLUMNS: usize = 100;

/// Words for unnamed persons. Such a word stands for a thing of the code that has a name.
const PERSONS: [&str; 6] = ["whoever", "somebody", "someone", "nobody", "anybody", "everybody"];

/// Returns the comments that are too wide, with the numbers of their lines.
pub(crate) fn wide_comments(text: &str) -> Vec<(usize, String)> {
    let mut is_example = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start().strip_prefix("//");
        let body = comment.map(|body| body.trim_start_matches(['/', '!']).trim_start());
        let Some(body) = body else {
            is_example = false;
            continue;
        };
        is_example ^= body.starts_with("```");
        let is_prose = !is_example && !body.starts_with(['|', '[']) && body.contains(' ');
        if is_prose && line.chars().count() > COLUMNS {
            found.push((number, format!("is wider than {COLUMNS} columns; wrap the comment")));
        }
    }
    found
}

/// Returns the number of words for unnamed persons in a text.
pub(crate) fn persons(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| PERSONS.iter().any(|person| word.eq_ignore_ascii_case(person))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_prose_is_found_but_not_wide_tables_or_examples() {
        let wide = "word ".repeat(30);
        let lines = |text: &str| wide_comments(text).len();
        assert_eq!(lines(&format!("// {wide}\n    /// {wide}\n//! short")), 2);
        assert_eq!(lines(&format!("/// | {wide} |\n/// ```\n/// {wide}\n/// ```\n/// {wide}")), 1);
        assert_eq!(lines(&format!("let text = \"{wide}\"; // short")), 0);
    }

    #[test]
    fn personal_pronouns_are_counted_in_any_case_and_not_within_words() {
        assert_eq!(persons("Whoever reads, nobody_writes: somebody's"), 3);
        assert_eq!(persons("the reader, antibody"), 0);
    }
}
