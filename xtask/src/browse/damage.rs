//! A test of the check itself. A correct page is damaged in each way that the check should notice,
//! and the check must notice it.

use std::fs;
use std::path::Path;

use super::browser::Browser;
use super::check::{VIEWS, problems};

/// A way to damage a page, and some words of the message that the check should give.
struct Damage {
    name: &'static str,
    complaint: &'static str,
    inflict: fn(&str) -> Option<String>,
}

const DAMAGES: &[Damage] = &[
    Damage {
        name: "another number in a table",
        complaint: "is shown",
        inflict: |page| edit_after(page, "data-field=\"committed\">", |rest| format!("7{rest}")),
    },
    Damage {
        name: "another number in the JSON",
        complaint: "/committed is",
        inflict: |page| edit_after(page, "\"committed\": ", |rest| format!("7{rest}")),
    },
    Damage {
        name: "a number of the JSON that no table has",
        complaint: "data/p95_us is shown nowhere",
        inflict: |page| {
            edit_after(page, "\"transactions\": {", |rest| {
                format!("\"data\": {{ \"p95_us\": 3 }}, {rest}")
            })
        },
    },
    Damage {
        name: "a table that is hidden",
        complaint: "is not visible",
        inflict: |page| insert_style(page, ".scroll { display: none }"),
    },
    Damage {
        name: "a number rounded until it says nothing",
        complaint: "is too coarse",
        inflict: |page| {
            edit_after(page, "data-field=\"threads\"", |rest| {
                let (_, rest) = rest.split_once('<').unwrap_or_default();
                format!(" data-scale=\"1000000000\">0<{rest}")
            })
        },
    },
    Damage {
        name: "an axis that does not start at zero",
        complaint: "does not start at zero",
        inflict: |page| {
            edit_after(page, "data-axis=\"y\" data-value=\"0\"", |rest| {
                rest.replacen(">0<", ">90k<", 1)
            })
        },
    },
    Damage {
        name: "a logarithmic axis with a false tick",
        complaint: "is not in its place",
        inflict: |page| {
            edit_after(
                page,
                "<g data-log=\"\" class=\"tick\" data-axis=\"x\" data-value=\"",
                |rest| format!("7{rest}"),
            )
        },
    },
    Damage {
        name: "a latency in the wrong place",
        complaint: "draws 1",
        inflict: |page| put_before(page, "/p50_us\"/>", "data-value=\"", "1"),
    },
    Damage {
        name: "another number in a sentence",
        complaint: "is shown",
        inflict: |page| {
            edit_after(page, "</nav>", |rest| {
                format!("<b data-places=\"0:committed|1:aborted\">0.5</b>{rest}")
            })
        },
    },
    Damage {
        name: "a ratio of a result to itself",
        complaint: "draws a ratio that is in doubt",
        inflict: |page| {
            edit_after(page, "<svg viewBox=\"0 0 400", |rest| {
                rest.replacen('>', "><rect data-told=\"results/0 results/0\"/>", 1)
            })
        },
    },
    Damage {
        name: "two headings alike",
        complaint: "two headings say \"Notes\"",
        inflict: |page| edit_after(page, "</nav>", |rest| format!("<h2>Notes</h2>{rest}")),
    },
    Damage {
        name: "two links alike",
        complaint: "two links say \"Notes\"",
        inflict: |page| {
            edit_after(page, "</nav>", |rest| {
                format!("<nav><a href=\"#notes\">Notes</a></nav>{rest}")
            })
        },
    },
    Damage {
        name: "a table that cuts off its sentences",
        complaint: "is cut off: ",
        inflict: |page| insert_style(page, "td.words { min-width: 3000px !important }"),
    },
    Damage {
        name: "charts in a corner of the page",
        complaint: "charts take ",
        inflict: |page| {
            insert_style(page, ".comparison { grid-template-columns: 20rem !important }")
        },
    },
    Damage {
        name: "a marker in the wrong place",
        complaint: "is not where the axis has it",
        inflict: |page| put_before(page, "data-field=\"throughput_tps\"", "cy=\"", "1"),
    },
    Damage {
        name: "a marker of another number",
        complaint: "draws 1",
        inflict: |page| put_before(page, "data-field=\"throughput_tps\"", "data-value=\"", "1"),
    },
    Damage {
        name: "a bar in the wrong colour",
        complaint: "filled otherwise",
        inflict: |page| {
            edit_after(page, "<circle class=\"mark\"", |rest| format!(" style=\"fill: red\"{rest}"))
        },
    },
    Damage {
        name: "two protocols in one colour",
        complaint: "the same colour",
        inflict: |page| insert_style(page, ".protocol { color: #123456 }"),
    },
    Damage {
        name: "a page that is too wide",
        complaint: "pixels wide",
        inflict: |page| insert_style(page, "h1 { width: 3000px }"),
    },
    Damage {
        name: "text that cannot be read",
        complaint: "pixels high",
        inflict: |page| insert_style(page, "svg text { font-size: 5px !important }"),
    },
    Damage {
        name: "a page that throws",
        complaint: "throws",
        inflict: |page| {
            edit_after(page, "<main>", |rest| {
                format!("<script>throw new Error('on purpose')</script>{rest}")
            })
        },
    },
    Damage {
        name: "a page that complains",
        complaint: "writes to the console",
        inflict: |page| {
            edit_after(page, "<main>", |rest| {
                format!("<script>console.error('on purpose')</script>{rest}")
            })
        },
    },
    Damage {
        name: "a page that fetches",
        complaint: "asks for \"http://localhost:9/picture.png\"",
        inflict: |page| {
            edit_after(page, "<main>", |rest| {
                format!("<img src=\"http://localhost:9/picture.png\">{rest}")
            })
        },
    },
];

/// Damages the page of `file` in each of the ways. Returns an error if the check does not notice
/// one of them.
pub(super) fn refuse_all(browser: &mut Browser, file: &Path) -> Result<(), String> {
    let page = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let damaged = file.with_extension("damaged.html");
    for Damage { name, complaint, inflict } in DAMAGES {
        let text = inflict(&page)
            .ok_or_else(|| format!("{} has nothing to damage for {name:?}", file.display()))?;
        fs::write(&damaged, text).map_err(|error| format!("{}: {error}", damaged.display()))?;
        let found = problems(browser, &damaged, VIEWS[0])?.problems;
        let noticed = found.iter().find(|problem| problem.contains(complaint));
        let noticed = noticed.ok_or_else(|| format!("{name:?} is not noticed, only {found:?}"))?;
        println!("refused, {name}: {noticed}");
    }
    fs::remove_file(&damaged).map_err(|error| format!("{}: {error}", damaged.display()))?;
    println!("{} ways to damage {} were noticed", DAMAGES.len(), file.display());
    Ok(())
}

/// Returns the page, with the text after the first `marker` changed by `edit`. Returns `None` if
/// the page has no `marker`.
fn edit_after(page: &str, marker: &str, edit: impl Fn(&str) -> String) -> Option<String> {
    let (before, after) = page.split_once(marker)?;
    Some(format!("{before}{marker}{}", edit(after)))
}

/// Returns the page with `addition` inserted behind the last `place` that comes before the first
/// `marker`. Returns `None` if the page has no such place.
fn put_before(page: &str, marker: &str, place: &str, addition: &str) -> Option<String> {
    let (before, _) = page.split_once(marker)?;
    let (before, after) = page.split_at(before.rfind(place)? + place.len());
    Some(format!("{before}{addition}{after}"))
}

fn insert_style(page: &str, rule: &str) -> Option<String> {
    let (before, after) = page.split_once("</style>")?;
    Some(format!("{before}{rule}\n</style>{after}"))
}
