//! The order of the measurements.

use std::error::Error;

use super::about::{About, verdict};
use super::cli::{Choice, Options};
use super::driver::{Contender, Lots, Turn};
use super::figures::{Figure, compare};
use super::progress::Progress;
use super::report::Report;
use super::{peers, table};
use crate::command::{print_head, write_json};

/// The number of transactions that are drawn for each thread. Their inputs exceed the caches near
/// the core. So reading an input costs a cache miss, as reading an input from outside would.
const REQUESTS: usize = 1 << 16;

/// Measures what the options select, prints tables as they become ready, and writes the file.
///
/// # Errors
/// A peer's transactions have left rows that serializable transactions cannot leave, or a peer has
/// failed in another way, or the file cannot be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let mut peers = peers::all();
    peers.retain(|peer| options.wants(peer.about().name));
    let report = measure(options, &peers)?;
    write_json(&report, options.json.as_deref())?;
    examined(&report.results)
}

/// Returns an error if a measurement failed.
pub(crate) fn examined(results: &[Figure]) -> Result<(), Box<dyn Error>> {
    verdict(results.iter().filter_map(|figure| {
        let failure = figure.failure.as_ref()?;
        Some(format!("{}, {}, {} threads: {failure}", figure.peer, figure.workload, figure.threads))
    }))
}

/// Measures some peers. Failures are recorded in the figures.
pub(crate) fn measure(
    options: &Options,
    peers: &[Box<dyn Contender>],
) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::new(options, peers.iter().map(|peer| peer.about()).collect());
    for &threads in &options.threads {
        for peer in peers.iter().filter(|peer| peer.about().threads_max < threads) {
            report.notes.push(format!("{} cannot be used by {threads} threads", peer.about().name));
        }
    }
    print_head(&report.machine, report.peers.iter().map(About::line), &report.notes);
    let turns = options.workload.len() * usize::from(options.runs);
    let at = |threads| peers.iter().filter(|peer| peer.about().threads_max >= threads).count();
    let mut progress =
        Progress::new(turns * options.threads.iter().map(|&threads| at(threads)).sum::<usize>());
    for &workload in &options.workload {
        for &threads in &options.threads {
            let able = peers.iter().filter(|peer| peer.about().threads_max >= threads);
            let figures =
                turns_of(options, workload, threads, able.map(AsRef::as_ref), &mut progress);
            progress.clear();
            table::print(&figures);
            report.results.extend(figures);
        }
    }
    if report.results.is_empty() {
        return Err("none of these peers can be used by so many threads".into());
    }
    Ok(report)
}

/// Measures one workload with one number of threads. In each run, all peers take their turns one
/// after another.
fn turns_of<'p>(
    options: &Options,
    workload: Choice,
    threads: usize,
    peers: impl Iterator<Item = &'p dyn Contender>,
    progress: &mut Progress,
) -> Vec<Figure> {
    let job = workload.draw(options.rows, Lots { threads, each: REQUESTS, seed: options.seed });
    let runs = usize::from(options.runs);
    let mut lanes: Vec<_> =
        peers.map(|peer| (peer, Figure::new(&job, threads, peer.about()))).collect();
    for run in 0..runs {
        for (peer, figure) in &mut lanes {
            progress.begin(&format!(
                "{}, {threads} threads, run {} of {runs}, {}",
                job.name(),
                run + 1,
                figure.peer
            ));
            if figure.failure.is_some() {
                continue;
            }
            match peer.measure(&job, Turn { threads, duration: options.duration, run }) {
                Ok(sample) => figure.add(sample),
                Err(failure) => figure.failure = Some(failure.to_string()),
            }
        }
    }
    let mut figures: Vec<Figure> = lanes.into_iter().map(|(_, figure)| figure).collect();
    compare(&mut figures);
    figures
}
