//! The picture: bars of commits per second, in one panel without durability and one with it.
//!
//! The picture is an SVG that needs no other files, fonts or scripts. It is narrow, so that its
//! text is legible on a small screen, and follows the reader's choice of a light or a dark page.

use std::fmt::Write;

use candide_harness::results::grouped;

use super::cli::Options;
use super::figures::{Durability, Figure, rounded};

const WIDTH: f64 = 440.0;

/// The width on a screen that has room for it.
const SHOWN: f64 = 500.0;

/// The left end of texts, of bars, and the right ends of bars, of rates and of ratios.
const TEXT: f64 = 14.0;
const BAR: f64 = 104.0;
const BAR_END: f64 = 266.0;
const RATE_END: f64 = 366.0;
const RATIO_END: f64 = 426.0;

/// The height of a bar, of the line that it is on, and of the gap behind a store.
const THICK: f64 = 11.0;
const LINE: f64 = 18.0;
const GAP: f64 = 7.0;

const STYLE: &str = "
  svg { color-scheme: light dark; --paper: #ffffff; --ink: #1c1f23; --soft: #5a626c; --rule: #c9ced6; --own: #0068a8; --other: #8a94a0; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14171b; --ink: #e6e9ed; --soft: #9aa4b0; --rule: #4a525c; --own: #4da3f5; --other: #79828d; }
  }
  .paper { fill: var(--paper) } .rule { stroke: var(--rule) } .range { stroke: var(--ink); stroke-width: 1.5 }
  .own { fill: var(--own) } .other { fill: var(--other) } .few { opacity: .6 }
  text { fill: var(--ink); font: 15px system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; font-variant-numeric: tabular-nums }
  .bold { font-weight: 700 } .soft { fill: var(--soft); font-size: 13px } .end { text-anchor: end }
";

/// The title, which is also the picture's name for readers that do not see it.
const TITLE: &str = "Transfers a second among {} accounts";

/// Draws the figures.
pub(crate) fn draw(figures: &[Figure], options: &Options) -> String {
    let mut body = String::new();
    let title = TITLE.replace("{}", &grouped(options.rows as f64));
    let mut y = 24.0;
    text(&mut body, (TEXT, y), "bold", &title);
    y += 19.0;
    text(&mut body, (TEXT, y), "soft", "The number in front of a bar is that of threads.");
    for durability in Durability::ALL {
        let panel: Vec<_> =
            figures.iter().filter(|figure| figure.durability == durability).collect();
        y += 28.0;
        text(&mut body, (TEXT, y), "bold", durability.words());
        text(&mut body, (RATIO_END, y), "soft end", "of Candide");
        y = bars(&mut body, y + 9.0, &panel, &options.threads);
    }
    y += 17.0;
    let notes = [
        format!("Medians of {} rounds in turns; lines: slowest to fastest.", options.rounds),
        "No ratio where rounds differ more than the stores do.".to_string(),
    ];
    for note in &notes {
        text(&mut body, (TEXT, y), "soft", note);
        y += 17.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{SHOWN}\" height=\"{:.0}\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n{body}</svg>\n",
        y * SHOWN / WIDTH
    )
}

/// Draws the bars of a panel, those of a store below one another. Returns where they end.
fn bars(body: &mut String, top: f64, panel: &[&Figure], threads: &[usize]) -> f64 {
    let sound = panel.iter().filter(|figure| figure.is_sound());
    let most = sound.map(|figure| figure.range().1).fold(0.0, f64::max).max(1.0);
    let right = |rate: f64| BAR + (BAR_END - BAR) * rate / most;
    let mut y = top;
    let stores = panel.iter().filter(|figure| figure.threads == threads[0]);
    for store in stores.map(|figure| figure.shown) {
        text(body, (TEXT, y + 13.0), if store == "Candide" { "bold" } else { "" }, store);
        let all = panel.iter().filter(|figure| figure.shown == store);
        for (place, figure) in all.enumerate() {
            let base = y + 13.0;
            text(body, (BAR - 8.0, base), "soft end", &figure.threads.to_string());
            if figure.is_sound() {
                let kind = if figure.is_candide() { "own" } else { "other" };
                let few = if place == 0 { " few" } else { "" };
                let (slowest, fastest) = figure.range();
                let middle = y + 3.0 + THICK / 2.0;
                let wide = (right(figure.per_second()) - BAR).max(1.0);
                writeln!(
                    body,
                    "<rect class=\"{kind}{few}\" x=\"{BAR}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{THICK}\"/>\
                     <line class=\"range\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>",
                    y + 3.0,
                    right(slowest),
                    right(fastest)
                )
                .expect("a String takes everything");
                text(body, (RATE_END, base), "end", &grouped(rounded(figure.per_second())));
                if let Some(Ok(ratio)) = figure.ratio {
                    text(body, (RATIO_END, base), "soft end", &format!("{}×", short_ratio(ratio)));
                }
            } else {
                text(
                    body,
                    (BAR + 5.0, base),
                    "soft",
                    "not drawn: a thread had under 0.8 of a core",
                );
            }
            y += LINE;
        }
        y += GAP;
    }
    writeln!(
        body,
        "<line class=\"rule\" x1=\"{BAR}\" x2=\"{BAR}\" y1=\"{top}\" y2=\"{:.1}\"/>",
        y - GAP
    )
    .expect("a String takes everything");
    y - GAP
}

/// Returns a ratio with two significant digits.
fn short_ratio(ratio: f64) -> String {
    match ratio {
        9.95.. => format!("{ratio:.0}"),
        0.995.. => format!("{ratio:.1}"),
        0.0995.. => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

fn text(body: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    writeln!(body, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>")
        .expect("a String takes everything");
}
