//! kmeans on `fast-stm`.

use std::cell::Cell;
use std::sync::Arc;

use candide::Abort;
use candide_workloads::stamp::kmeans::{
    CHUNK, Centre, Client, DIMENSIONS_MAX, Found, Job, Kmeans, Program, Store,
};
use fast_stm::{TVar, atomically};

use crate::timed::{Failure, Lot, Sample, drive, expect};

/// The number of points of a cluster, and the sums of their coordinates.
type Sums = (u64, [i64; DIMENSIONS_MAX]);

/// The variables.
struct Variables {
    centres: Vec<TVar<Sums>>,
    next: TVar<u64>,
    changed: TVar<u64>,
}

impl Store for &Variables {
    fn run(&mut self, job: Job<'_>) -> Result<(u64, u64), Abort> {
        let attempts = Cell::new(0);
        let output = atomically(|tx| {
            attempts.set(attempts.get() + 1);
            match job {
                Job::Point(centre, point) => {
                    let centre = &self.centres[centre as usize];
                    let (mut count, mut sums) = tx.read(centre)?;
                    point.add(&mut count, &mut sums);
                    tx.write(centre, (count, sums))?;
                    Ok(0)
                }
                Job::Claim => {
                    let next = tx.read(&self.next)?;
                    tx.write(&self.next, next + CHUNK as u64)?;
                    Ok(next)
                }
                Job::End(changed) => {
                    let before = tx.read(&self.changed)?;
                    tx.write(&self.changed, before + changed)?;
                    Ok(0)
                }
            }
        });
        Ok((output, attempts.get() - 1))
    }

    fn exchange(&mut self, clusters: u32, next: u64) -> Result<Found, Abort> {
        Ok(atomically(|tx| {
            let mut centres = Vec::new();
            for (id, centre) in (0..clusters).zip(&self.centres) {
                let (count, sums) = tx.read(centre)?;
                tx.write(centre, (0, [0; DIMENSIONS_MAX]))?;
                centres.push(Centre { id, count, sums });
            }
            let found =
                Found { centres, next: tx.read(&self.next)?, changed: tx.read(&self.changed)? };
            tx.write(&self.next, next)?;
            tx.write(&self.changed, 0)?;
            Ok(found)
        }))
    }
}

/// Makes a run.
pub(crate) fn run(knobs: &Kmeans, lot: Lot) -> Result<Sample, Failure> {
    let program = Arc::new(Program::new(knobs, lot.seed, &|| false).expect("is not stopped"));
    let centres = (0..knobs.clusters).map(|_| TVar::new((0, [0; DIMENSIONS_MAX]))).collect();
    let variables = &Variables { centres, next: TVar::new(0), changed: TVar::new(0) };
    let threads = (0..lot.threads).map(|_| {
        let program = &program;
        move |running: &dyn Fn() -> bool| -> Result<(u64, u64), Failure> {
            let mut client = Client::join(program, variables);
            let (mut committed, mut retries) = (0, 0);
            while running() {
                retries += client.step()?.retries;
                committed += 1;
            }
            client.leave();
            Ok((committed, retries))
        }
    });
    let mut sample = drive(threads, lot.duration)?;
    sample.sequential_tps = program.sequential_tps();
    expect(&program.findings())?;
    Ok(sample)
}
