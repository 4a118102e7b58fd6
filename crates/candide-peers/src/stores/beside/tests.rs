//! Tests of what is drawn and of what is not, and that the page shows the code that runs.

use clap::Parser;

use super::Options;
use super::figures::{Durability, Figure, STORES, compare};
use super::{page, picture, suite};
use crate::Role;
use crate::command::machine;
use crate::stores::about::About;

fn options(arguments: &[&str]) -> Options {
    let here = std::env::temp_dir();
    let all = ["beside", here.to_str().unwrap()];
    Options::parse_from(all.iter().chain(arguments))
}

/// Returns figures of all stores with one thread and two, in which each store has the rates that
/// `rates` says.
fn figures(rates: impl Fn(&str) -> [f64; 3]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for durability in Durability::ALL {
        for threads in [1, 2] {
            for (name, _) in STORES {
                let version = Some("1.2.3");
                let store = About {
                    name,
                    role: Role::Peer,
                    crate_name: None,
                    version,
                    usage: "",
                    threads_max: 2,
                };
                let mut figure = Figure::new(durability, threads, store).unwrap();
                rates(name).into_iter().for_each(|rate| figure.add(rate, Some(0.99)));
                figures.push(figure);
            }
        }
    }
    figures
}

#[test]
fn ratios_within_the_spread_of_the_rounds_are_neither_drawn_nor_printed() {
    let mut figures = figures(|store| match store {
        "candide-occ" => [1000.0, 1100.0, 1050.0],
        "mutex" => [900.0, 1200.0, 1050.0],
        "redb" => [100.0, 110.0, 106.0],
        _ => [2000.0, 2200.0, 2101.0],
    });
    compare(&mut figures);
    let options = options(&[]);
    let svg = picture::draw(&figures, &options);
    let table = page::figures(&figures, &options, &machine());
    // Two stores, two panels, two numbers of threads.
    assert_eq!(svg.matches('×').count(), 8, "{svg}");
    assert_eq!((svg.matches(">0.10×<").count(), svg.matches(">2.0×<").count()), (4, 4), "{svg}");
    assert_eq!(table.matches("(within the spread of the runs)").count(), 4, "{table}");
    assert!(table.contains("| redb 1.2.3 | 106 (100-110) **0.100** | 106 "), "{table}");
    assert!(table.contains("| Candide | 1,050 (1,000-1,100) | 1,050 "), "{table}");
}

#[test]
fn stores_whose_threads_had_no_core_are_not_drawn() {
    let mut figures = figures(|_| [100.0, 100.0, 100.0]);
    let starved = figures.iter_mut().find(|figure| figure.shown == "fjall").unwrap();
    starved.core_share = Some(0.79);
    starved.rounds = vec![9e9; 3];
    compare(&mut figures);
    let options = options(&[]);
    let svg = picture::draw(&figures, &options);
    assert_eq!(svg.matches("not drawn: a thread had under 0.8 of a core").count(), 1);
    assert_eq!(svg.matches("<line class=\"range\"").count(), figures.len() - 1);
    let table = page::figures(&figures, &options, &machine());
    assert!(table.contains("| fjall 1.2.3 | a thread had less than 0.8 of a core | 100 "));
    // Candide without its core leaves all ratios out.
    for figure in figures.iter_mut().filter(|figure| figure.is_candide()) {
        figure.core_share = Some(0.5);
    }
    compare(&mut figures);
    assert!(!picture::draw(&figures, &options).contains('×'));
}

#[test]
fn figures_replace_those_of_the_document() {
    let text = "# Beside\n\n<!-- figures -->\nold\n<!-- end of figures -->\nrest\n";
    let new = page::with_figures(text, "new\n").unwrap();
    assert_eq!(new, "# Beside\n\n<!-- figures -->\nnew\n<!-- end of figures -->\nrest\n");
    let error = page::with_figures("<!-- end of figures -->\n<!-- figures -->\n", "new");
    assert!(error.unwrap_err().contains("`<!-- figures -->` and `<!-- end of figures -->`"));
}

#[test]
fn the_document_shows_the_code_of_the_task() {
    let document = include_str!("../../../../../docs/beside-others.md");
    let code = include_str!("../workloads/transfer.rs");
    let (_, task) = code.split_once("    fn run<X: Write<i64>>").unwrap();
    let (task, _) = task.split_once("\n    }\n").unwrap();
    let task = format!("fn run<X: Write<i64>>{task}\n}}\n").replace("\n    ", "\n");
    assert!(document.contains(&task), "docs/beside-others.md does not show\n{task}");
}

#[test]
fn the_command_writes_a_picture_and_a_table_and_leaves_no_folder() {
    let folder = std::env::temp_dir().join(format!("candide-peers-beside-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (svg, document) = (folder.join("beside.svg"), folder.join("beside.md"));
    std::fs::write(&document, "<!-- figures -->\n<!-- end of figures -->\n").unwrap();
    let files = ["--picture", svg.to_str().unwrap(), "--page", document.to_str().unwrap()];
    let small = ["--rows", "1000", "--seconds", "0.01", "--rounds", "2"];
    let all = ["beside", folder.to_str().unwrap()];
    let ended = suite::run(&Options::parse_from(all.iter().chain(&files).chain(&small)));
    if cfg!(all(feature = "fjall", feature = "redb")) {
        ended.unwrap();
        let picture = std::fs::read_to_string(&svg).unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        let table = std::fs::read_to_string(&document).unwrap();
        assert_eq!(table.matches("\n| redb ").count(), 2, "{table}");
    } else {
        let error = ended.unwrap_err().to_string();
        assert!(error.ends_with("use `cargo run --features fjall,redb`"), "{error}");
    }
    std::fs::remove_file(svg).unwrap();
    std::fs::remove_file(document).unwrap();
    // Fails if a folder was left behind.
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn bad_arguments_are_refused_before_the_measurement() {
    let error = |arguments: &[&str]| {
        let here = std::env::temp_dir();
        let all = ["beside", here.to_str().unwrap()];
        Options::try_parse_from(all.iter().chain(arguments)).unwrap_err().to_string()
    };
    assert!(error(&["--rounds", "1"]).contains("2.."), "one round has no spread");
    assert!(error(&["--threads", "0"]).contains("use numbers from 1 to"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let error = suite::run(&options(&["--page", file])).unwrap_err().to_string();
    assert!(error.contains("Cargo.toml: it needs the lines `<!-- figures -->`"), "{error}");
    let error = suite::run(&options(&["--picture", "/no/such/place.svg"])).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/place.svg: "), "{error}");
}
