//! The order of the measurements.

use std::error::Error;
use std::fs::File;
use std::io::{self, Seek, Write};

use super::cli::Options;
use super::driver::{Contender, Job, Shape};
use super::figures::{Figure, compare};
use super::report::Report;
use super::{contenders, floor, table};
use crate::command::print_head;
use crate::stores::about::{About, verdict};
use crate::stores::driver::{Lots, Turn};
use crate::stores::progress::Progress;

/// The number of transactions that are drawn for each thread. The thread runs them in a cycle.
const REQUESTS: usize = 1 << 14;

/// Measures what the options select, prints tables as they become ready, and writes the file.
///
/// # Errors
/// If a store has lost rows, if it failed in another way, or if the file cannot be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // Made before the measurement, since it is too late afterwards to name another file.
    let json = options
        .json
        .as_ref()
        .map(|path| File::create(path).map(|file| (path, file)).map_err(|error| (path, error)));
    let json = json.transpose().map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let mut stores = contenders::all();
    stores.retain(|store| options.wants(store.about().name));
    let report = measure(options, &stores, |report| match &json {
        Some((path, file)) => {
            save(report, file).map_err(|error| format!("{}: {error}", path.display()).into())
        }
        None => Ok(()),
    })?;
    examined(&report.results)
}

/// Replaces the contents of the file by the report.
fn save(report: &Report, mut file: &File) -> io::Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Returns an error if a measurement failed.
pub(crate) fn examined(results: &[Figure]) -> Result<(), Box<dyn Error>> {
    verdict(results.iter().filter_map(|figure| {
        let failure = figure.failure.as_ref()?;
        Some(format!("{}, {}, {} threads: {failure}", figure.store, figure.shape, figure.threads))
    }))
}

/// Measures some stores. Failures are recorded in the figures. Calls `save` after each table, so
/// that an interruption loses only later results.
pub(crate) fn measure(
    options: &Options,
    stores: &[Box<dyn Contender>],
    save: impl Fn(&Report) -> Result<(), Box<dyn Error>>,
) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::new(options, stores.iter().map(|store| store.about()).collect())?;
    let facts = [report.disk.to_string()].into_iter().chain(report.stores.iter().map(About::line));
    print_head(&report.machine, facts, &report.notes);
    let experiments = options.shapes.len() * options.threads.len() * usize::from(options.rounds);
    let mut progress = Progress::new(experiments * (stores.len() + 1));
    for &shape in &options.shapes {
        for &threads in &options.threads {
            let figures = turns_of(options, shape, threads, stores, &mut progress);
            progress.clear();
            table::print(&figures, options.rows);
            report.results.extend(figures);
            save(&report)?;
        }
    }
    Ok(report)
}

/// Measures one shape with one number of threads. In each round, the floor and all stores take
/// their turns one after another.
fn turns_of(
    options: &Options,
    shape: Shape,
    threads: usize,
    stores: &[Box<dyn Contender>],
    progress: &mut Progress,
) -> Vec<Figure> {
    let lots = Lots { threads, each: REQUESTS, seed: options.seed };
    let job = Job::draw(shape, options.rows, lots);
    let contenders = std::iter::once(None).chain(stores.iter().map(Some));
    let mut lanes: Vec<_> = contenders
        .map(|store| (store, Figure::new(job.name(), threads, store.map(|store| store.about()))))
        .collect();
    for round in 0..usize::from(options.rounds) {
        for (store, figure) in &mut lanes {
            progress.begin(&format!(
                "{}, {threads} threads, round {} of {}, {}",
                job.name(),
                round + 1,
                options.rounds,
                figure.store
            ));
            if figure.failure.is_some() {
                continue;
            }
            let turn = Turn { threads, duration: options.seconds, run: round };
            let sample = match store {
                Some(store) => store.measure(&job, turn, &options.directory),
                None => floor::measure(&options.directory, options.seconds / 5),
            };
            match sample {
                Ok(sample) => figure.add(sample),
                Err(failure) => figure.failure = Some(failure.to_string()),
            }
        }
    }
    let mut figures: Vec<Figure> = lanes.into_iter().map(|(_, figure)| figure).collect();
    compare(&mut figures);
    figures
}
