//! Two programs of STAMP, kmeans and vacation, in Candide and on the software transactional memory
//! `fast-stm`, beside the same programs without transactions.
//!
//! ```text
//! cd crates/candide-peers
//! cargo run --release --bin stamp
//! cargo run --release --bin stamp -- --mode high,drp-hi --threads 1,2,4 --duration 10s
//! ```
//!
//! The programs are those of `candide bench kmeans` and `bench vacation`. What is not a transaction
//! is the same code for all: the points, the nearest centre, the meeting of the threads, the tasks.
//! After each run the same checks are made.
//!
//! Papers compare with STM-TL2, which logs single words. `fast-stm` is **not word-based**: it
//! replaces whole values, which it allocates. So a centre is one variable here, not 33; of a car,
//! the price and the counters are two variables, and a customer's list of reservations is one. All
//! ids have variables from the beginning, so there is no index whose nodes could conflict.

pub mod cli;
mod kmeans;
mod vacation;

use std::error::Error;

use candide::{Database, Occ};
use candide_harness::results::{grouped, median};
use candide_harness::table;
use candide_workloads::stamp::kmeans::Kmeans;
use candide_workloads::stamp::vacation::Vacation;
use candide_workloads::stamp::{Form, Kept, Mode};
use candide_workloads::{Loading, Workload};

use crate::command::{build_note, machine, print_head};
use crate::timed::{Failure, Lot, Sample, drive, expect};
use cli::{Options, Program};

/// The ways in which a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Candide(Form),
    FastStm,
}

impl Side {
    const ALL: [Side; 3] =
        [Side::Candide(Form::Eager), Side::Candide(Form::Deferred), Side::FastStm];

    fn name(self) -> &'static str {
        match self {
            Side::Candide(Form::Eager) => "candide-occ, eager",
            Side::Candide(Form::Deferred) => "candide-occ, deferred",
            Side::FastStm => "fast-stm",
        }
    }
}

/// Measures what the options select, and prints a table for each program and number of threads.
///
/// # Errors
/// A check has failed, or a program could not go on.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    measure_all(options).map_err(|failure| -> Box<dyn Error> { failure })
}

fn measure_all(options: &Options) -> Result<(), Failure> {
    let facts = ["fast-stm is not word-based: it replaces whole values".to_string()];
    print_head(&machine(), facts, &build_note().into_iter().collect::<Vec<_>>());
    for program in &options.program {
        for &mode in &options.mode {
            let kept = Kept::default();
            for &threads in &options.threads {
                let mut samples = Side::ALL.map(|side| (side, Vec::new()));
                for _ in 0..options.runs {
                    for (side, samples) in &mut samples {
                        let sample = measure(*program, mode, *side, threads, &kept, options)?;
                        samples.push(sample);
                    }
                }
                print(*program, mode, threads, &samples);
            }
        }
    }
    Ok(())
}

/// Makes one run.
fn measure(
    program: Program,
    mode: Mode,
    side: Side,
    threads: usize,
    kept: &Kept,
    options: &Options,
) -> Result<Sample, Failure> {
    let form = match side {
        Side::Candide(form) => form,
        Side::FastStm => Form::Eager,
    };
    let lot = Lot { threads, duration: options.duration, seed: options.seed };
    let (kmeans, vacation) = (Kmeans::published(mode, form), Vacation::published(mode, form));
    let (kmeans, vacation) = (
        Kmeans { kept: kept.clone(), points: kmeans.points / options.shrink, ..kmeans },
        Vacation {
            kept: kept.clone(),
            relations: vacation.relations / options.shrink as u32,
            ..vacation
        },
    );
    match (program, side) {
        (Program::Kmeans, Side::Candide(_)) => in_database(&kmeans, lot),
        (Program::Vacation, Side::Candide(_)) => in_database(&vacation, lot),
        (Program::Kmeans, Side::FastStm) => kmeans::run(&kmeans, lot),
        (Program::Vacation, Side::FastStm) => vacation::run(&vacation, lot),
    }
}

/// Runs a program in a new database.
fn in_database<W: Workload>(workload: &W, lot: Lot) -> Result<Sample, Failure> {
    use candide_workloads::{Loaded, Worker};

    workload.validate()?;
    let db = Database::<Occ>::new();
    let loading = Loading { threads: 1, seed: lot.seed, progress: &|_| {}, stopped: &|| false };
    let loaded = workload.load(&db, &loading)?;
    loaded.expect_workers(lot.threads);
    let sessions = (0..lot.threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
    let threads = sessions.into_iter().enumerate().map(|(thread, session)| {
        let loaded = &loaded;
        move |running: &dyn Fn() -> bool| -> Result<(u64, u64), Failure> {
            let mut worker = loaded.worker(session, thread);
            let (mut committed, mut retries) = (0, 0);
            while running() {
                retries += worker.step()?.retries;
                committed += 1;
            }
            loaded.absorb(worker);
            Ok((committed, retries))
        }
    });
    let mut sample = drive(threads, lot.duration)?;
    sample.sequential_tps = loaded.sequential_tps(sample.committed, &|| false).unwrap_or(f64::NAN);
    expect(&loaded.check(db.session()?)?)?;
    Ok(sample)
}

fn print(program: Program, mode: Mode, threads: usize, samples: &[(Side, Vec<Sample>)]) {
    let plural = if threads == 1 { "" } else { "s" };
    println!("\n{} {}, {threads} thread{plural}", program.name(), cli::name(mode));
    let header = ["", "txn/s", "retries per 100", "of the sequential program"];
    let mut table = table(&header, 1..header.len());
    for (side, samples) in samples {
        let of =
            |figure: fn(&Sample) -> f64| median(&samples.iter().map(figure).collect::<Vec<_>>());
        table.add_row([
            side.name().to_string(),
            grouped(of(Sample::tps)),
            format!("{:.2}", of(Sample::retries_per_hundred)),
            format!("{:.2}", of(|sample| sample.tps() / sample.sequential_tps)),
        ]);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_programs_hold_on_every_side() {
        let options = Options {
            program: vec![Program::Kmeans, Program::Vacation],
            mode: vec![Mode::HighSim],
            threads: vec![1, 3],
            duration: Duration::from_millis(50),
            runs: 1,
            seed: 1,
            shrink: 16,
        };
        run(&options).expect("every check holds");
    }
}
