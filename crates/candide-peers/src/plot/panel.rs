//! A panel: one pair of axes, and the lines plotted between them.

use super::label::{Area, NEAR, Obstacles};
use super::scale::Scale;
use super::style::Style;
use super::svg::{
    AXIS_LABEL, PANEL_TITLE, POINT_LABEL, Point, Svg, TICK_BELOW, TICK_BESIDE, text_width,
};

/// The size of the rectangle of the axes.
pub(super) const WIDTH: f64 = 460.0;
pub(super) const HEIGHT: f64 = 340.0;

const GRID: &str = "#e4e4e4";
const AXIS: &str = "#666666";

/// Points at a smaller distance than this share a label.
const SHARED: f64 = 18.0;

struct Label<'t> {
    at: Point,
    colour: &'static str,
    text: &'t str,
}

/// A point and its label.
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) rows: String,
}

/// A map's points, in the order of the number of rows.
pub(super) struct Line {
    pub(super) map: &'static str,
    pub(super) style: Style,
    pub(super) marks: Vec<Mark>,
}

pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) x_label: &'static str,
    pub(super) y_label: &'static str,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) lines: Vec<Line>,
    /// Whether each point is labelled with the number of rows.
    pub(super) labelled: bool,
    /// The unit of the values upwards.
    pub(super) unit: &'static str,
}

impl Panel {
    /// Draws the panel with the upper left corner of the axes at `left` and `top`.
    pub(super) fn draw(&self, svg: &mut Svg, (left, top): Point) {
        let (right, bottom) = (left + WIDTH, top + HEIGHT);
        svg.text((left, top - 12.0), &PANEL_TITLE, self.title);
        for (value, text) in &self.x.ticks {
            let x = left + WIDTH * self.x.place(*value);
            svg.line((x, top), (x, bottom), GRID, 1.0);
            svg.text((x, bottom + 17.0), &TICK_BELOW, text);
        }
        for (value, text) in &self.y.ticks {
            let y = bottom - HEIGHT * self.y.place(*value);
            svg.line((left, y), (right, y), GRID, 1.0);
            svg.text((left - 8.0, y + 4.0), &TICK_BESIDE, text);
        }
        svg.line((left, bottom), (right, bottom), AXIS, 1.2);
        svg.line((left, top), (left, bottom), AXIS, 1.2);
        svg.text((left + WIDTH / 2.0, bottom + 38.0), &AXIS_LABEL, self.x_label);
        svg.text_upwards((left - 52.0, top + HEIGHT / 2.0), &AXIS_LABEL, self.y_label);

        let place = |mark: &Mark| {
            (left + WIDTH * self.x.place(mark.x), bottom - HEIGHT * self.y.place(mark.y))
        };
        let places: Vec<Vec<Point>> =
            self.lines.iter().map(|line| line.marks.iter().map(place).collect()).collect();
        for (line, places) in self.lines.iter().zip(&places) {
            svg.polyline(places, line.style.colour, line.style.width, line.map);
        }
        if self.labelled {
            self.label(svg, &places, Area { left, top, right, bottom });
        }
        for (line, places) in self.lines.iter().zip(&places) {
            for (mark, &at) in line.marks.iter().zip(places) {
                let what = format!("{}, {} rows: {:.1} {}", line.map, mark.rows, mark.y, self.unit);
                svg.marker(line.style.marker, at, line.style.colour, &what);
            }
        }
    }

    /// Labels the points with their numbers of rows. Points that have the same number of rows and
    /// are close to each other share a label. A shared label does not have the colour of a map.
    fn label(&self, svg: &mut Svg, places: &[Vec<Point>], bounds: Area) {
        let mut obstacles = Obstacles {
            bounds,
            taken: places.iter().flatten().map(|&at| Area::around(at, 9.0, 9.0)).collect(),
            lines: places
                .iter()
                .flat_map(|line| line.windows(2).map(|ends| (ends[0], ends[1])))
                .collect(),
        };
        let marks = self.lines.iter().zip(places).flat_map(|(line, places)| {
            line.marks.iter().zip(places).map(|(mark, &at)| Label {
                at,
                colour: line.style.colour,
                text: &mark.rows,
            })
        });
        let mut labels: Vec<Label<'_>> = Vec::new();
        for mark in marks {
            let close = |label: &&mut Label<'_>| {
                label.text == mark.text
                    && (label.at.0 - mark.at.0).hypot(label.at.1 - mark.at.1) < SHARED
            };
            match labels.iter_mut().find(close) {
                Some(label) => label.colour = POINT_LABEL.colour,
                None => labels.push(mark),
            }
        }
        let mut texts = Vec::new();
        for Label { at, colour, text } in labels {
            let width = text_width(&POINT_LABEL, text);
            let middle = obstacles.place(at, width + 3.0, POINT_LABEL.size + 2.0);
            if (middle.0 - at.0).abs() - width / 2.0 > NEAR || (middle.1 - at.1).abs() > NEAR {
                svg.line(at, middle, colour, 0.6);
            }
            texts.push((middle, colour, text));
        }
        // Texts are drawn after all lines, so that no line crosses a text.
        for ((x, y), colour, text) in texts {
            svg.text_on_lines((x, y + 0.36 * POINT_LABEL.size), &POINT_LABEL, colour, text);
        }
    }
}
