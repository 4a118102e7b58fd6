//! Tables of text.

use std::ops::Range;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, presets};

/// The width of a terminal into which tables are fitted, in columns.
const WIDTH: u16 = 100;

/// Returns an empty table whose columns in `numbers` are aligned to the right, as numbers are.
pub fn table(header: &[&str], numbers: Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns a table of `rows` with words alone, fitted into a hundred columns.
pub fn laid_out<R: Into<Row>>(header: &[&str], rows: impl IntoIterator<Item = R>) -> Table {
    filled(header, 0..0, rows)
}

/// Returns a table of `rows` whose columns in `numbers` are aligned to the right, fitted into a
/// hundred columns.
pub(super) fn filled<R: Into<Row>>(
    header: &[&str],
    numbers: Range<usize>,
    rows: impl IntoIterator<Item = R>,
) -> Table {
    let mut table = table(header, numbers.clone());
    table.add_rows(rows);
    fit(&mut table, header, numbers);
    table
}

/// Fits a table into a hundred columns, if it is wider: the headings of the columns in `numbers`
/// are broken between words, and cells of the other columns take several lines where they must.
/// Numbers are never broken.
pub(super) fn fit(table: &mut Table, header: &[&str], numbers: Range<usize>) {
    let widths = table.column_max_content_widths();
    let width: u16 = widths.iter().map(|width| width + 2).sum();
    if width <= WIDTH {
        return;
    }
    let broken = header.iter().enumerate().map(|(index, name)| match numbers.contains(&index) {
        true => name.replace(' ', "\n"),
        false => name.to_string(),
    });
    table.set_header(broken.collect::<Vec<_>>());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// Returns `text` in lines of at most a hundred columns, broken between words. Lines but the first
/// begin with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut words = text.split(' ');
    let mut lines = vec![words.next().unwrap_or_default().to_string()];
    for word in words {
        let line = lines.last_mut().expect("there is a line");
        if line.chars().count() + 1 + word.chars().count() <= usize::from(WIDTH) {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_tables_are_fitted_without_breaking_numbers() {
        let header = ["setting", "the first number", "the second number"];
        let long = "a setting of many words ".repeat(8);
        let rows = [[long.as_str(), "1,234,567,890", "2"], ["b", "3", "4"]];
        let text = filled(&header, 1..3, rows).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains(" 1,234,567,890 ") && text.lines().count() > 5, "{text}");
        let narrow = filled(&header, 1..3, [["b", "3", "4"]]).to_string();
        assert_eq!(narrow.lines().count(), 2, "{narrow}");
        assert!(narrow.contains("the second number"), "headings are broken in wide tables only");
    }

    #[test]
    fn lines_are_broken_between_words_within_a_hundred_columns() {
        let text = wrapped(&"seven77 ".repeat(30), "  ");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  seven77")), "{text}");
        assert_eq!(text.split_whitespace().count(), 30);
        assert_eq!(wrapped("  one two", ""), "  one two");
    }
}
