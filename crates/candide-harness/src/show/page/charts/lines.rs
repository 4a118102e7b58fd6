//! A quantity by the number of threads, with a line for each protocol. Both axes begin at zero.

use super::super::comparison::{Entry, Facet};
use super::super::number::{counted, short};
use super::super::palette::Look;
use super::frame::{WIDTH, mark, tip};
use super::scale::{Scale, level, plumb};

const HEIGHT: f64 = 250.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 16.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 42.0;

/// The distance between the lines of different protocols; without it, lines of equal values would
/// hide each other.
const ASIDE: f64 = 6.0;

/// The distance between two numbers at the axis below which they would overlap.
const APART: f64 = 22.0;

/// The quantity that a chart draws.
pub(crate) struct Quantity {
    /// The quantity's field in the results, by which a program can compare the drawing with the
    /// results.
    pub(crate) field: &'static str,
    /// The text after a number at the axis.
    pub(crate) unit: &'static str,
    /// The number, in this unit.
    pub(crate) value: fn(Entry<'_>) -> f64,
    /// The smallest and the largest value of the runs; `None` if the runs are not shown.
    pub(crate) range: Option<fn(Entry<'_>) -> (f64, f64)>,
    /// The value as text.
    pub(crate) words: fn(f64) -> String,
}

/// Returns the height of a panel's drawing, and the drawing. The axes reach to `most` and to the
/// largest of `threads`.
pub(crate) fn lines(
    facet: &Facet<'_>,
    quantity: &Quantity,
    most: f64,
    threads: &[usize],
) -> (f64, String) {
    let up = Scale::new(most, BOTTOM, TOP, 4);
    let largest = threads.iter().copied().max().unwrap_or(1);
    let right = LEFT + (RIGHT - LEFT) * largest as f64 / (largest as f64 + 0.4);
    let place = |threads: usize| LEFT + (right - LEFT) * threads as f64 / largest as f64;
    let levels: String = up
        .ticks()
        .into_iter()
        .map(|value| level(value, up.place(value), LEFT, RIGHT, quantity.unit))
        .collect();
    let count = facet.series.len() as f64;
    // The points of many protocols stay nearer to their own number of threads than to another.
    let gaps = threads.windows(2).map(|pair| place(pair[1]) - place(pair[0]));
    let pitch = ASIDE.min(gaps.fold(f64::MAX, f64::min) * 0.7 / count);
    let series = facet.series.iter().enumerate().map(|(index, series)| {
        let aside = (index as f64 - (count - 1.0) / 2.0) * pitch;
        let points = series
            .entries
            .iter()
            .map(|&entry| (place(entry.result.threads) + aside, entry))
            .collect::<Vec<_>>();
        let look = Look::of(series.protocol);
        look.group(series.protocol, &one(&points, quantity, &up, look))
    });
    let axis = format!(
        "{}<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">threads</text>\n",
        columns(threads, place),
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 6.0,
    );
    (HEIGHT, format!("{levels}{axis}{}", series.collect::<String>()))
}

/// Returns ticks at zero and at each number of threads. A tick has its number if there is room.
fn columns(threads: &[usize], place: impl Fn(usize) -> f64) -> String {
    let mut free = f64::MIN;
    let mut ticks = String::new();
    for &threads in [0].iter().chain(threads) {
        let x = place(threads);
        let label = (x >= free).then(|| short(threads as f64));
        if label.is_some() {
            free = x + APART;
        }
        ticks += &plumb(threads as f64, x, BOTTOM, BOTTOM + 4.0, label.as_deref());
    }
    ticks
}

/// Returns a protocol's line, with ranges and markers.
fn one(points: &[(f64, Entry<'_>)], quantity: &Quantity, up: &Scale, look: Look) -> String {
    let value = |entry: Entry<'_>| (quantity.value)(entry);
    let path: String =
        points.iter().map(|&(x, entry)| format!("{x:.2},{:.2} ", up.place(value(entry)))).collect();
    let line = match points.len() {
        0 | 1 => String::new(),
        _ => format!(
            "<polyline class=\"series\" points=\"{path}\" stroke-dasharray=\"{}\"/>",
            look.dashes()
        ),
    };
    let ranges: String = points
        .iter()
        .filter_map(|&(x, entry)| Some(range(x, quantity.range?(entry), up)))
        .collect();
    let marks: String = points
        .iter()
        .map(|&(x, entry)| {
            let threads = counted(entry.result.threads, "thread");
            let words =
                format!("{}, {threads}: {}", entry.result.protocol, (quantity.words)(value(entry)));
            let attributes = mark("y", value(entry), entry.index, quantity.field);
            format!("<g>{}{}</g>", tip(&words), look.marker(x, up.place(value(entry)), &attributes))
        })
        .collect();
    line + &ranges + &marks
}

/// Returns a vertical range mark with ends, from `low` to `high`.
fn range(x: f64, (low, high): (f64, f64), up: &Scale) -> String {
    let (bottom, top) = (up.place(low), up.place(high));
    let (left, right) = (x - 4.0, x + 4.0);
    format!(
        "<path class=\"range\" d=\"M{left:.2} {top:.2}H{right:.2}M{x:.2} {top:.2}V{bottom:.2}M{left:.2} {bottom:.2}H{right:.2}\" \
         data-mark=\"y-range\" data-low=\"{low}\" data-high=\"{high}\"/>"
    )
}
