//! Writing HTML: all text from outside is escaped here, and only here.

/// Escapes the characters of `text` that have a meaning in HTML, for content and for quoted
/// attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Escapes `json` as the content of a script element. There, the only markup is text that ends the
/// script, or that keeps a later end tag from ending it.
pub(crate) fn in_script(json: &str) -> String {
    json.replace("</", "<\\/").replace("<!--", "\\u003c!--").replace("<script", "\\u003cscript")
}

/// Returns an HTML list; an empty text if there are no items.
pub(crate) fn list(class: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", escape(&item))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
}

/// Returns a section of the page under a heading. `id` is the target of links to it.
pub(crate) fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{}\">\n<h2>{}</h2>\n{body}</section>\n", escape(id), escape(title))
}

/// Returns a part that is folded until the reader opens it, and is unfolded in print.
pub(crate) fn folded(summary: &str, body: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{body}</details>\n", escape(summary))
}

/// A cell of a table.
pub(crate) struct Cell {
    text: String,
    kind: Kind,
    /// The field of the number within the row's [result](Row), and the unit in which the number is
    /// written, as a multiple of the unit in the results.
    field: Option<(String, Option<f64>)>,
}

/// The content of a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Words,
    /// Words that take several lines in a narrow window.
    Sentence,
    Number,
    Numbers,
}

impl Cell {
    /// Returns a cell with words.
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), kind: Kind::Words, field: None }
    }

    /// Returns a cell with words that may take several lines.
    pub(crate) fn sentence(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), kind: Kind::Sentence, field: None }
    }

    /// Returns a cell with a number of the results: the number as text, and the field of the number
    /// within the row's [result](Row).
    ///
    /// The attributes are for programs that compare the page with its JSON, such as `cargo xtask
    /// browse`.
    pub(crate) fn number(text: impl Into<String>, field: &str) -> Cell {
        Cell { field: Some((field.to_string(), None)), ..Cell::derived(text) }
    }

    /// Returns a cell with several numbers, which are a list in the results.
    pub(crate) fn numbers(texts: &[String], field: &str) -> Cell {
        Cell { kind: Kind::Numbers, ..Cell::number(texts.join(" "), field) }
    }

    /// Returns a cell with a number that is computed from others.
    pub(crate) fn derived(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), kind: Kind::Number, field: None }
    }

    /// Sets the unit in which the number is written, as a multiple of the unit in the results.
    pub(crate) fn scaled(mut self, unit: f64) -> Cell {
        self.field = self.field.map(|(field, _)| (field, Some(unit)));
        self
    }

    fn html(&self) -> String {
        let class = match self.kind {
            Kind::Words => "",
            Kind::Sentence => " class=\"words\"",
            Kind::Number => " class=\"n\"",
            Kind::Numbers => " class=\"n list\"",
        };
        let field = self.field.as_ref().map_or_else(String::new, |(field, unit)| {
            format!(" data-field=\"{}\"{}", escape(field), scale(*unit))
        });
        format!("<td{class}{field}>{}</td>", escape(&self.text))
    }
}

fn scale(unit: Option<f64>) -> String {
    unit.map_or_else(String::new, |unit| format!(" data-scale=\"{unit}\""))
}

/// A row of a table, with the index of the result to which the fields of its cells belong.
pub(crate) struct Row {
    pub(crate) result: usize,
    pub(crate) cells: Vec<Cell>,
}

/// The largest number of letters of a value that moves from a column into a sentence.
const SAME_LETTERS_MAX: usize = 60;

/// Returns a table, with its own scroll bar if it is wider than the page. Columns whose name ends
/// in a space hold numbers. Columns with one value in all of several rows become a sentence above
/// the table.
pub(crate) fn table(label: &str, header: &[&str], rows: impl Iterator<Item = Row>) -> String {
    let rows: Vec<Row> = rows.collect();
    let is_same: Vec<bool> = (0..header.len()).map(|column| is_same(&rows, column)).collect();
    let kept = |column: usize| is_same.get(column) != Some(&true);
    let head: String = header
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, name)| heading(name))
        .collect();
    let body: String = rows
        .iter()
        .map(|Row { result, cells }| {
            let cells = cells.iter().enumerate().filter(|(index, _)| kept(*index));
            let cells: String = cells.map(|(_, cell)| cell.html()).collect();
            format!("<tr data-results=\"{result}\">{cells}</tr>\n")
        })
        .collect();
    let same: Vec<String> = (0..header.len())
        .filter(|&column| is_same[column])
        .map(|column| format!("{} {}", escape(header[column].trim_end()), value(&rows, column)))
        .collect();
    let sentence = match same.is_empty() {
        true => String::new(),
        false => format!("<p class=\"same\">The same in all rows: {}.</p>\n", same.join("; ")),
    };
    format!(
        "{sentence}<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n",
        escape(label)
    )
}

/// Returns whether a column has one short value in all of several rows.
fn is_same(rows: &[Row], column: usize) -> bool {
    let [first, others @ ..] = rows else { return false };
    let Some(first) = first.cells.get(column) else { return false };
    let is_like = |cell: &Cell| {
        let unit = |cell: &Cell| cell.field.as_ref().map(|(_, unit)| *unit);
        (&cell.text, cell.kind, unit(cell)) == (&first.text, first.kind, unit(first))
    };
    let is_word = !matches!(first.kind, Kind::Numbers | Kind::Sentence)
        && (1..=SAME_LETTERS_MAX).contains(&first.text.chars().count());
    is_word
        && !others.is_empty()
        && others.iter().all(|row| row.cells.get(column).is_some_and(is_like))
}

/// Returns the value of a column that is the same in all rows, with the places of its numbers in
/// the results.
fn value(rows: &[Row], column: usize) -> String {
    let cell = &rows[0].cells[column];
    let Some((_, unit)) = cell.field else { return format!("<b>{}</b>", escape(&cell.text)) };
    let places = rows.iter().filter_map(|row| {
        let (field, _) = row.cells[column].field.as_ref()?;
        Some(format!("{}:{}", row.result, escape(field)))
    });
    format!(
        "<b data-places=\"{}\"{}>{}</b>",
        places.collect::<Vec<_>>().join("|"),
        scale(unit),
        escape(&cell.text)
    )
}

fn heading(name: &str) -> String {
    let class = if name.ends_with(' ') { " class=\"n\"" } else { "" };
    format!("<th scope=\"col\"{class}>{}</th>", escape(name.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_outside_are_escaped_in_markup() {
        assert_eq!(
            escape("<a href=\"x\" b='y'>&"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;"
        );
        let hostile = "\"><script>alert(1)</script>";
        let row =
            Row { result: 0, cells: vec![Cell::text(hostile), Cell::number(hostile, hostile)] };
        let parts = [
            table(hostile, &[hostile], [row].into_iter()),
            list("notes", [hostile.to_string()].into_iter()),
            section(hostile, hostile, ""),
            folded(hostile, ""),
        ];
        for part in parts {
            assert!(!part.contains("<script") && !part.contains("\">&quot;&gt;<"), "{part}");
            assert!(part.contains("&quot;&gt;&lt;script&gt;"), "shown: {part}");
        }
    }

    #[test]
    fn columns_of_one_value_become_a_sentence_that_names_the_places_of_their_numbers() {
        let row = |result: usize, kind: &str, own: &str| Row {
            result,
            cells: vec![
                Cell::text("occ"),
                Cell::text(kind),
                Cell::number("2", "threads"),
                Cell::number("0", &format!("transactions/{kind}/aborted")).scaled(1e3),
                Cell::number(own, "committed"),
                Cell::sentence("what the paper says"),
            ],
        };
        let header = ["protocol", "type", "threads ", "aborted ", "committed ", "the paper"];
        let text = table("t", &header, [row(3, "a", "5"), row(4, "b", "6")].into_iter());
        assert!(
            text.starts_with(
                "<p class=\"same\">The same in all rows: protocol <b>occ</b>; \
                 threads <b data-places=\"3:threads|4:threads\">2</b>; aborted \
                 <b data-places=\"3:transactions/a/aborted|4:transactions/b/aborted\" \
                 data-scale=\"1000\">0</b>.</p>"
            ),
            "{text}"
        );
        assert_eq!(text.matches("<th ").count(), 3, "{text}");
        assert_eq!(text.matches("<td class=\"words\">what the paper says").count(), 2);
        assert!(!text.contains("data-field=\"threads\""), "{text}");
        let alone = table("t", &header, [row(3, "a", "5")].into_iter());
        assert_eq!(alone.matches("<th ").count(), 6, "one row is the same as itself");
        assert!(!alone.contains("class=\"same\""));
    }

    #[test]
    fn json_cannot_end_its_script_element() {
        let json = in_script("[\"</script><!--<script>\"]");
        assert!(
            !json.contains("</") && !json.contains("<!--") && !json.contains("<script"),
            "{json}"
        );
        let text: Vec<String> = serde_json::from_str(&json).expect("still JSON");
        assert_eq!(text, ["</script><!--<script>"], "and the same");
    }
}
