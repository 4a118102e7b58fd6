//! The few elements of SVG that a plot consists of.

use std::fmt::{Display, Write};

pub(super) type Point = (f64, f64);

/// The style of a text.
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) colour: &'static str,
    pub(super) bold: bool,
    pub(super) anchor: &'static str,
}

const INK: &str = "#222222";
const FAINT_INK: &str = "#555555";

pub(super) const TITLE: Type = Type { size: 19.0, colour: INK, bold: true, anchor: "start" };
pub(super) const HEADING: Type = Type { size: 15.0, ..TITLE };
pub(super) const PANEL_TITLE: Type = Type { size: 12.5, ..TITLE };
pub(super) const AXIS_LABEL: Type = Type { size: 12.0, colour: INK, bold: false, anchor: "middle" };
pub(super) const TICK_BELOW: Type =
    Type { size: 11.0, colour: FAINT_INK, bold: false, anchor: "middle" };
pub(super) const TICK_BESIDE: Type = Type { anchor: "end", ..TICK_BELOW };
pub(super) const ENTRY: Type = Type { size: 12.0, colour: INK, bold: false, anchor: "start" };
pub(super) const FOOTNOTE: Type =
    Type { size: 11.0, colour: FAINT_INK, bold: false, anchor: "start" };
pub(super) const POINT_LABEL: Type = Type { size: 9.5, colour: INK, bold: false, anchor: "middle" };

/// Returns the approximate width of a text. The exact width depends on the font of the viewer.
pub(super) fn text_width(font: &Type, text: &str) -> f64 {
    0.58 * font.size * text.chars().count() as f64
}

/// The marker of a line's points.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
    /// A triangle with its point down.
    Wedge,
}

/// A picture to which elements are added.
#[derive(Default)]
pub(super) struct Svg(String);

impl Svg {
    pub(super) fn line(&mut self, (x1, y1): Point, (x2, y2): Point, colour: &str, width: f64) {
        self.element(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{width}"/>"#
        ));
    }

    /// Draws a line through `points`. When the pointer is on the line, the viewer shows `name`.
    pub(super) fn polyline(&mut self, points: &[Point], colour: &str, width: f64, name: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.element(format_args!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"><title>{}</title></polyline>"#,
            points.join(" "),
            escaped(name)
        ));
    }

    /// Draws a marker. When the pointer is on the marker, the viewer shows `what`.
    pub(super) fn marker(&mut self, marker: Marker, (x, y): Point, colour: &str, what: &str) {
        let path = match marker {
            Marker::Circle => "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
            Marker::Square => "M-3.2 -3.2h6.4v6.4h-6.4z",
            Marker::Diamond => "M0 -4.6L4.6 0L0 4.6L-4.6 0z",
            Marker::Triangle => "M0 -4.6L4.3 3.2H-4.3z",
            Marker::Wedge => "M0 4.6L4.3 -3.2H-4.3z",
        };
        self.element(format_args!(
            r##"<path transform="translate({x:.1} {y:.1})" d="{path}" fill="{colour}" stroke="#ffffff" stroke-width="0.8"><title>{}</title></path>"##,
            escaped(what)
        ));
    }

    pub(super) fn text(&mut self, at: Point, font: &Type, text: &str) {
        self.write(at, font, font.colour, "", text);
    }

    /// Draws a text that reads upwards.
    pub(super) fn text_upwards(&mut self, at: Point, font: &Type, text: &str) {
        self.write(
            at,
            font,
            font.colour,
            &format!(r#" transform="rotate(-90 {:.1} {:.1})""#, at.0, at.1),
            text,
        );
    }

    /// Draws a text with a white outline, so that the text is legible on lines.
    pub(super) fn text_on_lines(&mut self, at: Point, font: &Type, colour: &str, text: &str) {
        let halo = r##" stroke="#ffffff" stroke-width="2.5" stroke-linejoin="round" paint-order="stroke""##;
        self.write(at, font, colour, halo, text);
    }

    fn write(&mut self, (x, y): Point, font: &Type, colour: &str, more: &str, text: &str) {
        let bold = if font.bold { r#" font-weight="bold""# } else { "" };
        self.element(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{}" text-anchor="{}" fill="{colour}"{bold}{more}>{}</text>"#,
            font.size,
            font.anchor,
            escaped(text)
        ));
    }

    fn element(&mut self, element: impl Display) {
        writeln!(self.0, "{element}").expect("a String takes everything");
    }

    /// Returns the picture, with a white background of its own.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.0
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
