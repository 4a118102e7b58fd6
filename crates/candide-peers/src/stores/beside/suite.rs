//! The order of the measurements.

use std::error::Error;
use std::fs;
use std::path::Path;

use super::cli::Options;
use super::figures::{Durability, Figure, STORES, compare};
use super::{page, picture};
use crate::command::{build_note, machine};
use crate::stores::about::About;
use crate::stores::driver::{self, Lots, Turn};
use crate::stores::durable::{self, Shape};
use crate::stores::progress::Progress;
use crate::stores::workloads::Transfer;
use crate::stores::{Failure, peers};

/// The number of transactions that are drawn for each thread. The thread runs them in a cycle.
const REQUESTS: usize = 1 << 16;

/// Measures, prints the table, and writes the picture and the page.
///
/// # Errors
/// If a store is not built in, if it lost or tore transactions or failed in another way, or if a
/// file cannot be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // Read before the measurement, since it is too late afterwards to name another file.
    let named = |path: &Path, error: &dyn Error| format!("{}: {error}", path.display());
    let document = options.page.as_ref().map(|path| {
        let text = fs::read_to_string(path).map_err(|error| named(path, &error))?;
        page::with_figures(&text, "").map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>((path, text))
    });
    let document = document.transpose()?;
    if let Some(path) = &options.picture {
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| named(path, &error))?;
    }
    let machine = machine();
    build_note().iter().for_each(|note| println!("note: {note}"));
    let figures = measure(options)?;
    let table = page::figures(&figures, options, &machine);
    println!("{table}");
    if let Some(path) = &options.picture {
        fs::write(path, picture::draw(&figures, options)).map_err(|error| named(path, &error))?;
    }
    if let Some((path, text)) = document {
        fs::write(path, page::with_figures(&text, &table)?).map_err(|error| named(path, &error))?;
    }
    Ok(())
}

/// A function that gives a store a turn. Returns the commits per second, and the least share of a
/// core that a thread had, if the system reports it.
type Give<'a> = Box<dyn Fn(Turn) -> Result<(f64, Option<f64>), Failure> + 'a>;

/// A store, and the function that gives it a turn.
struct Lane<'a> {
    figure: Figure,
    turn: Give<'a>,
}

/// Measures all stores. In each round, they take their turns one after another.
pub(crate) fn measure(options: &Options) -> Result<Vec<Figure>, Box<dyn Error>> {
    let (peers, durables) = (peers::all(), durable::all());
    let jobs: Vec<_> = options.threads.iter().map(|&threads| draw(options, threads)).collect();
    let mut lanes = Vec::new();
    for durability in Durability::ALL {
        for (&threads, (in_memory, synced)) in options.threads.iter().zip(&jobs) {
            for (name, _) in STORES {
                let peer = peers.iter().find(|peer| peer.about().name == name);
                let durable = durables.iter().find(|durable| durable.about().name == name);
                let (Some(peer), Some(durable)) = (peer, durable) else {
                    let how = "use `cargo run --features fjall,redb`";
                    return Err(format!("{name} is not built in: {how}").into());
                };
                let (about, turn): (About, Give<'_>) = match durability {
                    Durability::InMemory => (
                        peer.about(),
                        Box::new(move |turn| {
                            let sample = peer.measure(in_memory, turn)?;
                            Ok((sample.per_second, sample.core_share))
                        }),
                    ),
                    Durability::Synced => (
                        durable.about(),
                        Box::new(move |turn| {
                            let sample = durable.measure(synced, turn, &options.directory)?;
                            Ok((sample.per_second, sample.core_share))
                        }),
                    ),
                };
                let figure = Figure::new(durability, threads, about);
                lanes.extend(figure.map(|figure| Lane { figure, turn }));
            }
        }
    }
    let mut progress = Progress::new(lanes.len() * usize::from(options.rounds));
    for run in 0..usize::from(options.rounds) {
        for Lane { figure, turn } in &mut lanes {
            let (threads, store) = (figure.threads, figure.shown);
            let what = figure.durability.words();
            let place = format!("{what}, {threads} threads, round {}, {store}", run + 1);
            progress.begin(&place);
            let (per_second, core_share) = turn(Turn { threads, duration: options.seconds, run })
                .map_err(|failure| format!("{place}: {failure}"))?;
            figure.add(per_second, core_share);
        }
    }
    progress.clear();
    let mut figures: Vec<Figure> = lanes.into_iter().map(|lane| lane.figure).collect();
    compare(&mut figures);
    Ok(figures)
}

/// Draws the inputs of some threads, in memory and synced. They are the same.
fn draw(options: &Options, threads: usize) -> (driver::Job, durable::Job) {
    let lots = Lots { threads, each: REQUESTS, seed: options.seed };
    let transfer = Transfer { accounts: options.rows };
    (
        driver::Job::Transfer(driver::Drawn::new(transfer, lots)),
        durable::Job::draw(Shape::Transfer, options.rows, lots),
    )
}
