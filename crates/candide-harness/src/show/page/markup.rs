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
    attributes: String,
}

impl Cell {
    /// Returns a cell with words.
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), attributes: String::new() }
    }

    /// Returns a cell with a number of the results: the number as text, and the field of the number
    /// within the row's [result](Row).
    ///
    /// The attributes are for programs that compare the page with its JSON, such as `cargo xtask
    /// browse`.
    pub(crate) fn number(text: impl Into<String>, field: &str) -> Cell {
        Cell {
            text: text.into(),
            attributes: format!(" class=\"n\" data-field=\"{}\"", escape(field)),
        }
    }

    /// Returns a cell with several numbers, which are a list in the results.
    pub(crate) fn numbers(texts: &[String], field: &str) -> Cell {
        Cell {
            text: texts.join(" "),
            attributes: format!(" class=\"n list\" data-field=\"{}\"", escape(field)),
        }
    }

    /// Returns a cell with a number that is computed from others.
    pub(crate) fn derived(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), attributes: " class=\"n\"".to_string() }
    }

    /// Sets the unit in which the number is written, as a multiple of the unit in the results.
    pub(crate) fn scaled(mut self, unit: f64) -> Cell {
        self.attributes += &format!(" data-scale=\"{unit}\"");
        self
    }

    fn html(&self) -> String {
        format!("<td{}>{}</td>", self.attributes, escape(&self.text))
    }
}

/// A row of a table, with the index of the result to which the fields of its cells belong.
pub(crate) struct Row {
    pub(crate) result: usize,
    pub(crate) cells: Vec<Cell>,
}

/// Returns a table, with its own scroll bar if it is wider than the page. Columns whose name ends
/// in a space hold numbers.
pub(crate) fn table(label: &str, header: &[&str], rows: impl Iterator<Item = Row>) -> String {
    let head: String = header.iter().map(|name| heading(name)).collect();
    let body: String = rows
        .map(|Row { result, cells }| {
            let cells: String = cells.iter().map(Cell::html).collect();
            format!("<tr data-results=\"{result}\">{cells}</tr>\n")
        })
        .collect();
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n",
        escape(label)
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
