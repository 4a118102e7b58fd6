//! The results as one HTML page that needs no other file: charts, every number in tables, and the
//! JSON.
//!
//! No script runs in the page. The page follows the reader's choice of light or dark, fits a phone,
//! and unfolds its folded parts for print.

mod charts;
mod comparison;
mod facts;
mod figure;
mod markup;
mod number;
mod palette;
mod parameters;
mod tables;

use comparison::Comparison;
use markup::{escape, in_script, section};

use crate::failure::Failure;
use crate::results::Report;

const STYLE: &str = include_str!("style.css");

/// The explanation of the names of switches, for readers who begin with this page.
const SWITCHES: &str = "CU: commit-time updates, applied at commit without reading the row first. TS: timestamp splitting, a timestamp \
                        for each column group instead of one for the row.";

/// Returns the page.
pub(crate) fn render(report: &Report) -> Result<String, Failure> {
    let comparisons = comparison::comparisons(report);
    let json = in_script(&report.to_json()?);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Candide: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{head}{sections}</main>\n\
         <script type=\"application/json\" id=\"results\">\n{json}</script>\n</body>\n</html>\n",
        title = escape(&facts::title(report, &comparisons)),
        head = facts::head(report, &comparisons),
        sections = sections(report, &comparisons).concat(),
    ))
}

/// Returns the sections of the page, in their order.
fn sections(report: &Report, comparisons: &[Comparison<'_>]) -> Vec<String> {
    let figure = figure::figure(report).map(|body| ("figure".to_string(), FIGURE, body));
    let workloads = comparisons.iter().enumerate().map(|(index, comparison)| {
        (format!("workload-{index}"), comparison.title.as_str(), body(comparison))
    });
    let others = [
        ("baseline", "Compared with earlier results", tables::changes(report, comparisons)),
        ("notes", "Notes", facts::notes(report)),
        ("numbers", "Every number", tables::all(report, comparisons)),
        ("machine", "Machine and program", facts::machine(report)),
    ];
    let others = others.into_iter().map(|(id, title, body)| (id.to_string(), title, body));
    let parts: Vec<(String, &str, String)> =
        figure.into_iter().chain(workloads).chain(others).collect();
    let parts = parts.iter().filter(|(.., body)| !body.is_empty());
    let links: String = parts
        .clone()
        .map(|(id, title, _)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(title)))
        .collect();
    let contents = format!("<nav aria-label=\"Contents\"><ul>\n{links}</ul></nav>\n");
    let sections = parts.map(|(id, title, body)| section(id, title, body));
    [contents].into_iter().chain(sections).collect()
}

/// The heading of the section on the published figure, whose title is that of the page.
const FIGURE: &str = "The figure";

/// Returns the explanation of the switches, and the charts.
fn body(comparison: &Comparison<'_>) -> String {
    format!("{}<div class=\"comparison\">\n{}</div>\n", about(comparison), charts::all(comparison))
}

/// Returns explanations of the switches and bad choices that were used.
fn about(comparison: &Comparison<'_>) -> String {
    let handicaps = &comparison.first().factors;
    let switches = if comparison.is_switched() {
        format!("<p class=\"note\">{}</p>\n", escape(SWITCHES))
    } else {
        String::new()
    };
    match handicaps.as_slice() {
        [] => switches,
        handicaps => format!(
            "{switches}<p class=\"note\">Handicapped: {}.</p>\n",
            escape(&handicaps.join(", "))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Choices;
    use crate::results::sample::{Sample, measurement, report};

    const SAMPLE: Sample = Sample { protocol: 0, cu: true, ts: true, threads: 1, tps: 1000.0 };

    fn page(samples: &[Sample]) -> String {
        let results = samples.iter().map(|&sample| measurement("ycsb-a", sample)).collect();
        render(&report(results)).expect("renders")
    }

    /// Returns the `data-value` of every tag whose `data-field` is `field`, in the page's order.
    fn marks<'a>(page: &'a str, field: &str) -> Vec<&'a str> {
        let end = format!("data-field=\"{field}\"/");
        let tags = page.split("data-value=\"").skip(1).filter_map(|rest| rest.split('>').next());
        tags.filter(|tag| tag.ends_with(&end)).filter_map(|tag| tag.split('"').next()).collect()
    }

    #[test]
    fn a_failed_invariant_is_shown_and_is_no_markup() {
        let sample = Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1.0 };
        let mut result = measurement("smallbank", sample);
        result.consistency.failed.push("1 < 2 </script> is no longer true".to_string());
        let page = render(&report(vec![result])).expect("renders");
        assert!(
            page.contains("1 &lt; 2 &lt;/script&gt; is no longer true"),
            "shown, and no markup"
        );
        assert_eq!(page.matches("</script>").count(), 1, "the JSON cannot end its script");
    }

    #[test]
    fn one_number_of_threads_is_drawn_as_bars_and_several_as_lines() {
        let alone = page(&[SAMPLE, Sample { protocol: 1, tps: 3000.0, ..SAMPLE }]);
        assert!(
            alone.contains("YCSB-A, 2,000 rows: committed transactions per second with 1 thread")
        );
        assert!(
            !alone.contains("<polyline") && marks(&alone, "throughput_tps") == ["1000", "3000"]
        );
        let both = page(&[SAMPLE, Sample { threads: 2, tps: 1500.0, ..SAMPLE }]);
        assert!(both.contains(
            "YCSB-A, 2,000 rows: committed transactions per second by number of threads"
        ));
        assert!(both.contains("<polyline") && marks(&both, "throughput_tps") == ["1000", "1500"]);
        assert!(
            both.contains("Most: 1,500 txn/s under")
                && both.contains("1.50\u{d7} as many as with one")
        );
        assert_eq!(
            both.matches("data-low=\"990\" data-high=\"1010\"").count(),
            1,
            "from the slowest to the fastest"
        );
    }

    #[test]
    fn points_of_all_protocols_lie_nearest_to_their_own_number_of_threads() {
        let Choices(all) = "all".parse().expect("the list of all");
        let of = |threads: usize| {
            (0..all.len()).map(move |protocol| Sample { protocol, threads, ..SAMPLE })
        };
        let page = page(&of(1).chain(of(2)).chain(of(4)).collect::<Vec<_>>());
        let lines = page.split("<polyline class=\"series\" points=\"").skip(1);
        let places = lines.map(|line| {
            let (points, _) = line.split_once('"').expect("the end of the points");
            let left = |point: &str| point.split_once(',')?.0.parse().ok();
            points.split_whitespace().filter_map(left).collect::<Vec<f64>>()
        });
        let places: Vec<_> = places.collect();
        assert!(places.len() >= all.len());
        for (left, right) in [(0, 1), (1, 2)] {
            let most = places.iter().map(|line| line[left]).fold(f64::MIN, f64::max);
            let least = places.iter().map(|line| line[right]).fold(f64::MAX, f64::min);
            assert!(most + 10.0 < least, "{most} and {least}");
        }
    }

    #[test]
    fn gains_are_drawn_if_there_is_a_base_to_compare_with() {
        let with = |cu: bool, ts: bool, tps: f64| Sample { cu, ts, tps, ..SAMPLE };
        let page_of_three = page(&[
            with(true, true, 2500.0),
            with(true, false, 1200.0),
            with(false, false, 1000.0),
        ]);
        assert!(page_of_three.contains("From 1.20\u{d7} to 2.50\u{d7}: most with CU and TS under"));
        assert!(
            page_of_three.contains("data-mark=\"x-end\" data-value=\"1.2\"")
                && !page_of_three.contains(">TS</text>")
        );
        assert!(page_of_three.contains("<figcaption>CU off, TS off</figcaption>"));
        let page_of_two = page(&[with(true, true, 2400.0), with(true, false, 1200.0)]);
        assert!(
            page_of_two.contains("From 2.00\u{d7} to 2.00\u{d7}: most with TS under"),
            "CU is on in both"
        );
        assert_eq!(page_of_two.matches("data-mark=\"x-end\" data-value=\"2\"").count(), 1);
        let page_without = page(&[with(true, false, 2400.0), Sample { protocol: 1, ..SAMPLE }]);
        assert!(!page_without.contains("as a multiple of without"), "of different protocols");
        let page_of_one = page(&[SAMPLE]);
        assert!(
            !page_of_one.contains("CU on, TS on") && !page_of_one.contains(SWITCHES),
            "no switch was touched"
        );
    }

    #[test]
    fn each_workload_has_a_section_and_a_distinct_name() {
        let mut other = measurement("ycsb-a", Sample { tps: 10.0, ..SAMPLE });
        other.params["theta"] = 0.5.into();
        let results = vec![measurement("ycsb-a", SAMPLE), other, measurement("predicate", SAMPLE)];
        let page = render(&report(results)).expect("renders");
        for title in
            ["YCSB-A, 2,000 rows", "YCSB-A, 2,000 rows, theta 0.5", "predicate, 2,000 rows"]
        {
            assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
        }
        assert!(page.contains("<th scope=\"col\">workload</th>"));
    }

    #[test]
    fn texts_of_results_are_escaped_on_the_page() {
        let page = page(&[SAMPLE]);
        let (shown, _) = page.split_once("<script type=\"application/json\"").expect("the JSON");
        assert!(!shown.contains("<kind>") && !shown.contains("<note>"));
        assert!(shown.contains("&lt;kind&gt;") && shown.contains("a &lt;note&gt;"));
    }

    #[test]
    fn a_failed_invariant_is_the_first_thing_to_be_seen() {
        let mut failed = measurement("ycsb-a", SAMPLE);
        failed.consistency.failed.push("a row is lost".to_string());
        let page = render(&report(vec![failed])).expect("renders");
        let (head, _) = page.split_once("</header>").expect("a head");
        assert!(
            head.contains("Invariants failed")
                && head.contains("a row is lost")
                && !head.contains("Every invariant held")
        );
    }
}
