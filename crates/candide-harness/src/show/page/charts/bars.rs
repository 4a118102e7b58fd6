//! Horizontal bars, all from zero and to one scale, each with its name and its number.

use super::super::markup::escape;
use super::super::number::short;
use super::super::palette::Look;
use super::frame::WIDTH;
use super::scale::{Scale, plumb};

const THICK: f64 = 14.0;
const PITCH: f64 = 22.0;
const HEADING: f64 = 24.0;
/// The width of the numbers right of the bars.
const NUMBERS: f64 = 74.0;
/// The approximate width of a letter, if many are wide.
const LETTER: f64 = 8.2;
/// The number of letters beyond which names stand above their bars.
const LONG: usize = 18;
/// The distance from one line of a name to the next.
const LINE: f64 = 15.0;

/// A bar.
pub(crate) struct Bar {
    pub(crate) protocol: &'static str,
    /// The name before or above the bar.
    pub(crate) name: String,
    /// The value; `None` if it is in doubt, and no bar is drawn.
    pub(crate) value: Option<f64>,
    /// The smallest and the largest value of the runs; `None` if the runs are not shown.
    pub(crate) range: Option<(f64, f64)>,
    /// The text of the number behind the bar.
    pub(crate) words: String,
    /// Further HTML attributes of the bar.
    pub(crate) attributes: String,
}

/// Bars under a heading, which may be empty.
pub(crate) struct Block {
    pub(crate) heading: String,
    pub(crate) bars: Vec<Bar>,
}

/// The positions of the drawing's parts, which depend on the lengths of the names.
struct Frame {
    left: f64,
    /// Whether names are above their bars.
    above: bool,
}

/// Returns the height of the drawing, and the drawing of all blocks. The scale reaches to `most`. A
/// line is drawn at `reference`, if given.
pub(crate) fn bars(
    blocks: &[Block],
    most: f64,
    unit: &str,
    reference: Option<f64>,
) -> (f64, String) {
    let longest = blocks
        .iter()
        .flat_map(|block| &block.bars)
        .map(|bar| bar.name.chars().count())
        .max()
        .unwrap_or(0);
    let above = longest > LONG;
    let frame = Frame { left: if above { 20.0 } else { longest as f64 * LETTER + 10.0 }, above };
    let across = Scale::new(most, frame.left, WIDTH - NUMBERS, 4);
    let mut y = 4.0;
    let (mut drawn, mut names) = (String::new(), String::new());
    for block in blocks {
        if !block.heading.is_empty() {
            y += HEADING;
            names += &format!(
                "<text class=\"heading\" x=\"4\" y=\"{:.1}\">{}</text>\n",
                y - 7.0,
                escape(&block.heading)
            );
        }
        for bar in &block.bars {
            let (shape, words, height) = one(bar, y, &frame, &across);
            drawn += &shape;
            names += &words;
            y += height;
        }
    }
    let ticks = across.ticks().into_iter().map(|value| {
        let label = format!("{}{unit}", short(value));
        plumb(value, across.place(value), 2.0, y, Some(&label))
    });
    let reference = reference.map(|value| {
        format!(
            "<line class=\"reference\" x1=\"{0:.2}\" x2=\"{0:.2}\" y1=\"2\" y2=\"{y:.2}\"/>\n",
            across.place(value)
        )
    });
    // The words come last, so that nothing is drawn over them.
    (y + 24.0, ticks.collect::<String>() + &drawn + &reference.unwrap_or_default() + &names)
}

/// Returns the bar, the words beside it, and the height of both together.
fn one(bar: &Bar, top: f64, frame: &Frame, across: &Scale) -> (String, String, f64) {
    let lines = if frame.above {
        broken(&bar.name, ((WIDTH - frame.left) / LETTER) as usize)
    } else {
        Vec::new()
    };
    let edge = if frame.above {
        top + 2.0 + lines.len() as f64 * LINE
    } else {
        top + (PITCH - THICK) / 2.0
    };
    let base = edge + THICK - 3.0;
    let end = across.place(bar.value.unwrap_or(0.0));
    let name = match frame.above {
        true => lines
            .iter()
            .rev()
            .zip(0..)
            .map(|(line, below)| {
                let y = edge - 4.0 - f64::from(below) * LINE;
                format!("<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", frame.left, escape(line))
            })
            .collect(),
        false => {
            format!(
                "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>",
                frame.left - 6.0,
                escape(&bar.name)
            )
        }
    };
    let rect = bar.value.map(|value| {
        format!(
            "<rect class=\"bar\" x=\"{:.2}\" y=\"{edge:.2}\" width=\"{:.2}\" height=\"{THICK}\" data-mark=\"x-end\" data-value=\"{value}\"{}/>",
            frame.left,
            end - frame.left,
            bar.attributes,
        )
    });
    let range = bar
        .range
        .map(|(low, high)| range(across.place(low), across.place(high), edge, (low, high)));
    let beyond = bar.range.map_or(end, |(_, high)| across.place(high).max(end));
    let number =
        format!("<text x=\"{:.1}\" y=\"{base:.1}\">{}</text>", beyond + 6.0, escape(&bar.words));
    let drawn = rect.unwrap_or_default() + &range.unwrap_or_default();
    let height = if frame.above { edge - top + 21.0 } else { PITCH };
    (Look::of(bar.protocol).group(bar.protocol, &drawn), format!("{name}{number}\n"), height)
}

/// Returns a name in lines of at most `letters` letters, broken between words if possible.
fn broken(name: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(
                word.chars()
                    .collect::<Vec<char>>()
                    .chunks(letters)
                    .map(|part| part.iter().collect()),
            ),
        }
    }
    lines
}

/// Returns a horizontal range mark with ends, drawn over the bar at `top` in the colour of the
/// text.
fn range(left: f64, right: f64, top: f64, (low, high): (f64, f64)) -> String {
    let (upper, lower, middle) = (top + 3.0, top + THICK - 3.0, top + THICK / 2.0);
    format!(
        "<path class=\"range over\" d=\"M{left:.2} {upper:.2}V{lower:.2}M{left:.2} {middle:.2}H{right:.2}M{right:.2} {upper:.2}V{lower:.2}\" \
         data-mark=\"x-range\" data-low=\"{low}\" data-high=\"{high}\"/>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Choices;

    fn bar(name: &str, value: f64) -> Bar {
        let Choices(all) = "all".parse().expect("the list of all");
        let protocol = all[0].name();
        Bar {
            protocol,
            name: name.to_string(),
            value: Some(value),
            range: Some((value / 2.0, value)),
            words: String::new(),
            attributes: String::new(),
        }
    }

    fn attribute(element: &str, name: &str) -> f64 {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).expect("there");
        rest.split('"').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    #[test]
    fn labels_of_bars_are_broken_between_words() {
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!(broken("one two three", 6), ["one", "two", "three"]);
        assert_eq!(broken("one", 3), ["one"]);
        assert_eq!(broken("a eleventwelve b", 6), ["a", "eleven", "twelve", "b"]);
    }

    #[test]
    fn labels_of_several_lines_do_not_overlap_bars() {
        let long =
            "order-status met new-order or payment or delivery at customer_orders, absent key";
        let block = Block { heading: String::new(), bars: vec![bar(long, 1.0), bar("short", 1.0)] };
        let (height, drawn) = bars(&[block], 1.0, "", None);
        let tops: Vec<f64> =
            drawn.split("<rect").skip(1).map(|rect| attribute(rect, "y")).collect();
        let words = |start: &str| {
            let begin = drawn[..drawn.find(start).expect("drawn")].rfind("<text").expect("text");
            attribute(&drawn[begin..], "y")
        };
        let (first, second) = (words("order-status"), words("absent"));
        assert!(
            0.0 < first && first + 10.0 < second && second < tops[0],
            "{first} {second} {tops:?}"
        );
        assert!(tops[0] + THICK + 10.0 < words("short") && words("short") < tops[1], "{tops:?}");
        assert!(tops[1] + THICK < height);
    }

    #[test]
    fn bars_begin_at_zero_and_are_as_long_as_their_numbers_are_large() {
        for name in ["a", "a name that needs a line of its own"] {
            let block = Block {
                heading: "<b>".to_string(),
                bars: vec![bar(name, 200.0), bar("b", 50.0), bar("c", 0.0)],
            };
            let (_, drawn) = bars(&[block], 200.0, "", None);
            let zero = drawn.split("<g class=\"tick zero\"").nth(1).expect("a tick at zero");
            let widths: Vec<f64> =
                drawn.split("<rect").skip(1).map(|rect| attribute(rect, "width")).collect();
            let lefts: Vec<f64> =
                drawn.split("<rect").skip(1).map(|rect| attribute(rect, "x")).collect();
            assert_eq!(lefts, [attribute(zero, "x1"); 3]);
            assert!((widths[0] - 4.0 * widths[1]).abs() < 0.03 && widths[2] == 0.0, "{widths:?}");
            assert!(drawn.contains("&lt;b&gt;"), "escaped");
            let doubtful =
                Bar { value: None, range: None, words: "noise".into(), ..bar(name, 1.0) };
            let (_, drawn) =
                bars(&[Block { heading: String::new(), bars: vec![doubtful] }], 1.0, "", None);
            assert!(!drawn.contains("<rect") && drawn.contains(">noise</text>"), "{drawn}");
        }
    }
}
