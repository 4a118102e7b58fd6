//! The table of the figures, as a part of a document.

use candide_harness::results::{Machine, grouped};

use super::cli::Options;
use super::figures::{Durability, Figure, rounded};
use crate::command::short;

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Returns the document `text`, in which `figures` replace what is between the two marks.
pub(crate) fn with_figures(text: &str, figures: &str) -> Result<String, String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| {
        format!("it needs the lines `{}` and `{}`, in this order", BEGIN.trim(), END.trim())
    })?;
    Ok(format!("{before}{BEGIN}{figures}{END}{after}"))
}

/// Returns the table, and the sentences that say how it was measured.
pub(crate) fn figures(figures: &[Figure], options: &Options, machine: &Machine) -> String {
    let numbers = |threads: &usize| format!(" {threads} thread{} |", plural(*threads));
    let mut text = "\n| commits a second |".to_string();
    text.extend(options.threads.iter().map(numbers));
    text += "\n|---|";
    text.extend(options.threads.iter().map(|_| "---:|"));
    for durability in Durability::ALL {
        let rows = figures.iter().filter(|figure| figure.durability == durability);
        let rows: Vec<&Figure> = rows.collect();
        text += &format!("\n| **{}** |", durability.words());
        text.extend(options.threads.iter().map(|_| " |"));
        for figure in rows.iter().filter(|figure| figure.threads == options.threads[0]) {
            let store = figure.store;
            let version = store.version.filter(|_| !figure.is_candide());
            let version = version.map_or(String::new(), |version| format!(" {version}"));
            text += &format!("\n| {}{version} |", figure.shown);
            let same = rows.iter().filter(|other| other.shown == figure.shown);
            text.extend(same.map(|other| cell(other)));
        }
    }
    let (rounds, seconds) = (options.rounds, options.seconds.as_secs_f64());
    let day = machine.time.split('T').next().unwrap_or_default();
    text += &format!(
        "\n\nMedians of {rounds} rounds of {seconds} s each, with the slowest and the fastest, and, in bold,\n\
         the part of Candide's rate. {}, {} cores, {day}.\n\n",
        machine.cpu, machine.cores
    );
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn cell(figure: &Figure) -> String {
    if !figure.is_sound() {
        return " a thread had less than 0.8 of a core |".to_string();
    }
    let (slowest, fastest) = figure.range();
    let ratio = match figure.ratio {
        None => String::new(),
        Some(Ok(ratio)) => format!(" **{}**", short(ratio)),
        Some(Err(doubt)) => format!(" ({})", doubt.words()),
    };
    let rates = [figure.per_second(), slowest, fastest].map(|rate| grouped(rounded(rate)));
    format!(" {} ({}-{}){ratio} |", rates[0], rates[1], rates[2])
}
