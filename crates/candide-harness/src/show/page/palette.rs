//! The colour, the marker and the dashes of each protocol, by its place in the registry. A protocol
//! has the same marks in every chart.
//!
//! The colours themselves are in `style.css`, for light and dark: one for each protocol and policy
//! of the list, and a few for policies with settings. Further protocols have the colours of
//! protocols at the end of the list; markers and dashes tell them apart.

use super::markup::escape;
use crate::registry;

/// The number of colours of the style sheet.
const COLOURS: usize = 18;

/// The dash patterns of lines: lengths that are drawn and left out in turn.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "4 2"];

/// Half the width of a marker.
const RADIUS: f64 = 4.5;

/// The style in which a protocol is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    place: usize,
}

impl Look {
    /// Returns the style of the protocol named `protocol`.
    pub(crate) fn of(protocol: &str) -> Look {
        Look { place: registry::place(protocol) }
    }

    /// Returns a group of `body` in the protocol's colour, which is the group's `currentColor`.
    pub(crate) fn group(self, protocol: &str, body: &str) -> String {
        let colour = colour(self.place, registry::listed());
        format!(
            "<g class=\"protocol p{colour}\" data-protocol=\"{}\">{body}</g>\n",
            escape(protocol)
        )
    }

    /// Returns the `stroke-dasharray` of the protocol's lines.
    pub(crate) fn dashes(self) -> &'static str {
        DASHES[self.place % DASHES.len()]
    }

    /// Returns the protocol's marker, centred on a point. `attributes` begin with a space.
    pub(crate) fn marker(self, x: f64, y: f64, attributes: &str) -> String {
        let path = match self.place % 6 {
            0 => {
                return format!(
                    "<circle class=\"mark\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{RADIUS}\"{attributes}/>"
                );
            }
            1 => outline(x, y, &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => outline(x, y, &[(0.0, -1.1), (1.1, 1.1), (-1.1, 1.1)]),
            3 => outline(x, y, &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
            4 => outline(x, y, &[(-1.1, -1.1), (1.1, -1.1), (0.0, 1.1)]),
            _ => outline(x, y, &[(-1.1, -1.1), (1.1, 1.1), (1.1, -1.1), (-1.1, 1.1)]),
        };
        format!("<path class=\"mark\" d=\"{path}\"{attributes}/>")
    }
}

/// Returns the number of the colour at `place`, where `listed` protocols come first.
fn colour(place: usize, listed: usize) -> usize {
    match place.checked_sub(COLOURS) {
        None => place,
        Some(further) => listed - 1 - further % listed,
    }
}

/// Returns a closed path through `corners`, which are given relative to the point (`x`, `y`) in
/// multiples of [`RADIUS`].
fn outline(x: f64, y: f64, corners: &[(f64, f64)]) -> String {
    let corner =
        |(right, down): &(f64, f64)| format!("{:.2} {:.2}", x + right * RADIUS, y + down * RADIUS);
    format!("M{}Z", corners.iter().map(corner).collect::<Vec<_>>().join("L"))
}

/// Returns the legend of the protocols: a line with a marker, and the name.
pub(crate) fn legend<'a>(protocols: impl Iterator<Item = &'a str>) -> String {
    let entry = |protocol: &str| {
        let look = Look::of(protocol);
        let line = format!(
            "<line class=\"series\" x1=\"1\" x2=\"33\" y1=\"8\" y2=\"8\" stroke-dasharray=\"{}\"/>",
            look.dashes()
        );
        let drawn = look.group(protocol, &(line + &look.marker(17.0, 8.0, "")));
        format!(
            "<li><svg viewBox=\"0 0 34 16\" width=\"34\" height=\"16\" aria-hidden=\"true\">{drawn}</svg>{}</li>\n",
            escape(protocol)
        )
    };
    format!("<ul class=\"legend\">\n{}</ul>\n", protocols.map(entry).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Choices;

    #[test]
    fn there_is_a_colour_for_each_protocol_in_light_and_in_dark() {
        let Choices(all) = "all".parse().expect("the list of all");
        assert!(all.len() <= COLOURS, "two protocols would share a colour");
        let style = include_str!("style.css");
        for colour in 0..COLOURS {
            assert_eq!(style.matches(&format!("--p{colour}: #")).count(), 2, "light and dark");
            assert_eq!(style.matches(&format!(".p{colour} {{ color: var(--p{colour})")).count(), 1);
        }
    }

    #[test]
    fn policies_with_settings_take_unused_colours_before_used_ones() {
        let listed = COLOURS - 2;
        let colours: Vec<usize> =
            (0..COLOURS + 3).map(|place| super::colour(place, listed)).collect();
        assert!(colours[..COLOURS].iter().copied().eq(0..COLOURS));
        assert_eq!(colours[COLOURS..], [listed - 1, listed - 2, listed - 3]);
        assert_eq!(super::colour(COLOURS + listed, listed), listed - 1, "and again");
    }

    /// Returns the linear red, green and blue of a colour of the style sheet, in the light theme
    /// (0) or the dark theme (1).
    fn colour(name: &str, theme: usize) -> [f64; 3] {
        let style = include_str!("style.css");
        let (place, mark) =
            style.match_indices(&format!("{name}: #")).nth(theme).expect("in both themes");
        let digits = &style[place + mark.len()..][..6];
        [0, 2, 4].map(|digit| {
            let channel = u8::from_str_radix(&digits[digit..digit + 2], 16).expect("hexadecimal");
            let part = f64::from(channel) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: &[[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| {
            row.iter().zip(vector).map(|(factor, part)| factor * part).sum::<f64>().clamp(0.0, 1.0)
        })
    }

    const TO_XYZ: [[f64; 3]; 3] =
        [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]];

    /// Returns the position of a colour in CIELAB, where distances correspond to differences that
    /// people see.
    fn lab(linear: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = times(&TO_XYZ, linear)
            .map(|part| if part > 0.008856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// The colour vision of people with all cones, without red cones, and without green cones
    /// (Machado, Oliveira and Fernandes 2009).
    const EYES: [[[f64; 3]; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
    ];

    #[test]
    fn colours_of_protocols_are_distinct_for_colour_blind_readers() {
        for theme in [0, 1] {
            let colours: Vec<_> =
                (0..COLOURS).map(|place| colour(&format!("--p{place}"), theme)).collect();
            for (place, &one) in colours.iter().enumerate() {
                let luminance = |linear| times(&TO_XYZ, linear)[1] + 0.05;
                let (one_is, paper) = (luminance(one), luminance(colour("--paper", theme)));
                assert!(
                    (one_is / paper).max(paper / one_is) >= 3.0,
                    "{place} is hard to see in theme {theme}"
                );
                for (other_place, &other) in colours.iter().enumerate().skip(place + 1) {
                    for eye in &EYES {
                        let (a, b) = (lab(times(eye, one)), lab(times(eye, other)));
                        let difference =
                            a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(
                            difference > 15.0,
                            "{place} and {other_place} differ by {difference} in theme {theme}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_marker_is_centred_on_its_point() {
        for place in 0..6 {
            let marker = Look { place }.marker(100.0, 50.0, "");
            let Some((_, path)) = marker.split_once(" d=\"M") else { continue };
            let (path, _) = path.split_once('Z').expect("closed");
            let corners: Vec<Vec<f64>> = path
                .split('L')
                .map(|corner| corner.split(' ').map(|n| n.parse().expect("a number")).collect())
                .collect();
            for (axis, middle) in [(0, 100.0), (1, 50.0)] {
                let ends = corners.iter().map(|corner| corner[axis]);
                let (low, high) = ends
                    .fold((f64::MAX, f64::MIN), |(low, high), end| (low.min(end), high.max(end)));
                assert!(((low + high) / 2.0 - middle).abs() < 0.011, "{marker}");
            }
        }
    }
}
