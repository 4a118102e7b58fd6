//! The parts that charts have in common: groups, panels, marks and tips.

use super::super::markup::escape;

/// The width for which panels are drawn. The page scales panels to the available width.
pub(super) const WIDTH: f64 = 400.0;

/// Returns the charts of one kind, under the heading `title` and the sentence `finding` about them.
/// `legend` is empty if each mark has its name beside it.
pub(super) fn group(title: &str, finding: &str, legend: &str, panels: &str) -> String {
    format!(
        "<section class=\"charts\">\n<h3>{}</h3>\n<p>{}</p>\n{legend}<div class=\"panels\">\n{panels}</div>\n</section>\n",
        escape(title),
        escape(finding),
    )
}

/// Returns one drawing, `height` units high, under the heading `caption` unless that is empty.
/// `about` describes the drawing for screen readers.
pub(super) fn panel(caption: &str, about: &str, height: f64, body: &str) -> String {
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(caption))
    };
    format!(
        "<figure>{caption}<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n</figure>\n",
        escape(about),
    )
}

/// Returns the heading of a chart, followed by the caption of one of its panels.
pub(super) fn about(what: &str, caption: &str) -> String {
    if caption.is_empty() { what.to_string() } else { format!("{what}, {caption}") }
}

/// Returns the attributes of a mark that shows a field of a result.
pub(super) fn mark(direction: &str, value: f64, result: usize, field: &str) -> String {
    format!(
        " data-mark=\"{direction}\" data-value=\"{value}\" data-results=\"{result}\" data-field=\"{}\"",
        escape(field)
    )
}

/// Returns the text that is shown when the pointer is over a mark.
pub(super) fn tip(text: &str) -> String {
    format!("<title>{}</title>", escape(text))
}
