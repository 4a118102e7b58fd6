//! The program: once without transactions, for one thread, and once with them, for any number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use candide::Abort;

use super::clustering::{NO_CLUSTER, first_centres, goes_on, nearest, new_centres, recentre};
use super::findings::{Ended, Findings, Iteration, Part, Sums, totals};
use super::knobs::Kmeans;
use super::points::Points;
use super::tables::{AddPoint, CHUNK, Found, Job};
use crate::replay::Stopped;
use crate::stamp::meeting::{Meeting, Member};
use crate::stamp::timed;
use crate::{Consistency, Step};

/// Finds clusters on one thread, without transactions. Returns the end of each iteration; `None` if
/// it was told to stop.
fn sequential(points: &Points, knobs: &Kmeans, stopped: Stopped<'_>) -> Option<Vec<Ended>> {
    let (dimensions, clusters) = (points.dimensions(), knobs.clusters as usize);
    let mut centres = first_centres(points, knobs.clusters);
    let mut memberships = vec![NO_CLUSTER; points.len()];
    let mut counts = vec![0; clusters];
    let mut sums = vec![0; clusters * dimensions];
    let mut iterations = Vec::new();
    loop {
        counts.fill(0);
        sums.fill(0);
        let mut changed = 0;
        for (index, membership) in memberships.iter_mut().enumerate() {
            let centre = nearest(points.point(index), &centres);
            changed += u64::from(*membership != centre);
            *membership = centre;
            let centre = centre as usize;
            counts[centre] += 1;
            let sums = &mut sums[centre * dimensions..][..dimensions];
            let whole = points.whole(index);
            sums.iter_mut().zip(&whole).for_each(|(sum, &at)| *sum += i64::from(at));
        }
        let rows = counts.iter().zip(sums.chunks_exact(dimensions));
        for (centre, (&count, sums)) in centres.chunks_exact_mut(dimensions).zip(rows) {
            recentre(centre, count, sums);
        }
        let number = iterations.len();
        iterations.push(Ended { changed, centres: Arc::new(centres.clone()) });
        if stopped() {
            return None;
        }
        if !goes_on(changed, points.len(), knobs.threshold, number) {
            return Some(iterations);
        }
    }
}

/// The points, and what the sequential program has found.
pub(super) struct Prepared {
    pub(super) points: Points,
    totals: Sums,
    first: Arc<Vec<f32>>,
    iterations: Vec<Ended>,
    /// The time of one clustering by the sequential program.
    took: Duration,
}

impl Prepared {
    /// Generates the points, and measures the sequential program. Returns `None` if `stopped`
    /// returns `true` meanwhile.
    pub(super) fn new(knobs: &Kmeans, seed: u64, stopped: Stopped<'_>) -> Option<Prepared> {
        let points = Points::generate(knobs, seed);
        let first = Arc::new(first_centres(&points, knobs.clusters));
        let (iterations, took) = timed(|| sequential(&points, knobs, stopped))?;
        let totals = totals(&points);
        Some(Prepared { points, totals, first, iterations, took })
    }

    /// Returns how many transactions per second would have been committed in the time of the
    /// sequential program: one for each point, one for each chunk, and one at the end of each
    /// iteration.
    fn sequential_tps(&self) -> f64 {
        let points = self.points.len();
        let transactions = self.iterations.len() * (points + points.div_ceil(CHUNK) + 1);
        transactions as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// The program of some threads, but for the tables: what the threads share besides.
pub struct Program {
    pub(super) prepared: Arc<Prepared>,
    /// The cluster of each point. Only the thread that has claimed a point changes its cluster.
    pub(super) memberships: Vec<AtomicU32>,
    pub(super) meeting: Arc<Meeting<Iteration>>,
    findings: Findings,
    clusterings: AtomicU64,
    clusters: u32,
    threshold: f64,
}

impl Program {
    /// Generates the points, and runs the sequential program. Returns `None` if `stopped` returns
    /// `true` meanwhile.
    pub fn new(knobs: &Kmeans, seed: u64, stopped: Stopped<'_>) -> Option<Program> {
        let Kmeans { points, dimensions, sources, clusters, threshold, .. } = *knobs;
        let inputs = (seed, points, dimensions, sources, clusters, threshold);
        let prepare = || Prepared::new(knobs, seed, stopped).ok_or(());
        let prepared = knobs.kept.get_or(&inputs, prepare).ok()?;
        let memberships = (0..points).map(|_| AtomicU32::new(NO_CLUSTER)).collect();
        let meeting = Arc::new(Meeting::new(Iteration::first(prepared.first.clone())));
        let (findings, clusterings) = (Findings::default(), AtomicU64::new(0));
        Some(Program { prepared, memberships, meeting, findings, clusterings, clusters, threshold })
    }

    /// Returns how many transactions per second would have been committed in the time of the
    /// sequential program.
    pub fn sequential_tps(&self) -> f64 {
        self.prepared.sequential_tps()
    }

    /// Returns the number of clusterings that have ended.
    pub fn clusterings(&self) -> u64 {
        self.clusterings.load(Ordering::Relaxed)
    }

    /// Returns what was found at the ends of all iterations so far.
    pub fn findings(&self) -> Consistency {
        self.findings.all()
    }

    /// Checks an iteration that has ended, after which the tables held what was `found`. Returns
    /// the number and the centres of the next iteration. After the last iteration of a clustering a
    /// new clustering begins.
    fn end(&self, iteration: &Iteration, found: &Found) -> (usize, Arc<Vec<f32>>) {
        let Prepared { points, totals, first, iterations, .. } = &*self.prepared;
        let centres = new_centres(&iteration.centres, points.dimensions(), &found.centres);
        let ended = iterations.get(iteration.number);
        self.findings.settle(points.len(), totals, ended, iteration, found, &centres);
        if goes_on(found.changed, points.len(), self.threshold, iteration.number) {
            return (iteration.number + 1, Arc::new(centres));
        }
        self.clusterings.fetch_add(1, Ordering::Relaxed);
        self.memberships.iter().for_each(|of| of.store(NO_CLUSTER, Ordering::Relaxed));
        (0, first.clone())
    }
}

/// The next transaction of a thread.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Adding a point, of a chunk that ends before the second number.
    Point(usize, usize),
    /// Claiming a chunk.
    Claim,
    /// Ending the iteration.
    End,
}

/// The tables of the program in some store, as one thread uses them.
pub trait Store {
    /// Runs a transaction until it has committed. Returns the first of the claimed points, or any
    /// number if none are claimed, and the number of attempts before the last one.
    ///
    /// # Errors
    /// If the program cannot go on.
    fn run(&mut self, job: Job<'_>) -> Result<(u64, u64), Abort>;

    /// Ends an iteration: returns what the tables of `clusters` clusters hold, and sets them to
    /// zero, but the number of the next point to `next`.
    ///
    /// # Errors
    /// If the program cannot go on.
    fn exchange(&mut self, clusters: u32, next: u64) -> Result<Found, Abort>;
}

/// One thread of the program.
pub struct Client<S> {
    pub(super) store: S,
    program: Arc<Program>,
    centres: Arc<Vec<f32>>,
    next: Next,
    part: Part,
    member: Member<Iteration>,
}

impl<S: Store> Client<S> {
    /// Adds a thread, with its access to the tables. A thread may join at any time.
    pub fn join(program: &Arc<Program>, store: S) -> Self {
        let (member, Iteration { centres, .. }) = program.meeting.join();
        let (program, part) = (program.clone(), Part::default());
        Client { store, program, centres, next: Next::Claim, part, member }
    }

    /// Works on the points that the thread has claimed, and leaves. The other threads go on without
    /// it.
    pub fn leave(mut self) {
        let left = || -> Result<(), Abort> {
            while let Next::Point(..) = self.next {
                self.step()?;
            }
            if self.part.changed > 0 {
                self.store.run(Job::End(self.part.changed))?;
            }
            self.member.enter(|iteration| iteration.enter(self.part));
            Ok(())
        }();
        if let Err(abort) = left {
            self.program.findings.fail(format!("a thread could not end its work: {abort}"));
        }
    }

    /// Assigns a point to the nearest centre.
    fn assign(&mut self, index: usize) -> Result<u64, Abort> {
        let Program { prepared, memberships, .. } = &*self.program;
        let centre = nearest(prepared.points.point(index), &self.centres);
        let before = memberships[index].load(Ordering::Relaxed);
        memberships[index].store(centre, Ordering::Relaxed);
        let point = AddPoint(prepared.points.whole(index));
        let (_, retries) = self.store.run(Job::Point(centre, &point))?;
        self.part.changed += u64::from(before != centre);
        Ok(retries)
    }

    /// Waits for the other threads at the end of the iteration. Then the next one begins, in which
    /// the thread has a chunk that it need not claim.
    fn meet(&mut self) -> Result<(), Abort> {
        let Client { store, program, .. } = self;
        let part = std::mem::take(&mut self.part);
        self.member.enter(|iteration| iteration.enter(part));
        let (place, Iteration { centres, .. }) = self.member.arrive(|iteration, members| {
            let next = members * CHUNK as u64;
            let found = store.exchange(program.clusters, next)?;
            let (number, centres) = program.end(iteration, &found);
            Ok(Iteration { number, given: members, ..Iteration::first(centres) })
        })?;
        self.centres = centres;
        self.next = self.beginning_at(place as usize * CHUNK);
        Ok(())
    }

    /// Returns the transaction that follows when the thread has the points from `first` on.
    fn beginning_at(&self, first: usize) -> Next {
        let points = self.program.prepared.points.len();
        if first < points { Next::Point(first, points.min(first + CHUNK)) } else { Next::End }
    }

    /// Runs the next transaction. After the last one of an iteration, waits for the other threads.
    ///
    /// # Errors
    /// Those of the [`Store`].
    pub fn step(&mut self) -> Result<Step, Abort> {
        let (kind, retries) = match self.next {
            Next::Point(index, end) => {
                let retries = self.assign(index)?;
                self.next = if index + 1 < end { Next::Point(index + 1, end) } else { Next::Claim };
                (Job::POINT, retries)
            }
            Next::Claim => {
                let (first, retries) = self.store.run(Job::Claim)?;
                self.part.claims += 1;
                self.next = self.beginning_at(usize::try_from(first).unwrap_or(usize::MAX));
                (Job::CLAIM, retries)
            }
            Next::End => {
                let (_, retries) = self.store.run(Job::End(self.part.changed))?;
                self.meet()?;
                (Job::END, retries)
            }
        };
        Ok(Step { kind, committed: true, retries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::{Form, Mode};

    #[test]
    fn the_sequential_program_finds_the_centres_of_the_sources() {
        let knobs = Kmeans {
            sources: 4,
            clusters: 4,
            points: 400,
            dimensions: 2,
            ..Kmeans::published(Mode::LowSim, Form::Eager)
        };
        let points = Points::generate(&knobs, 5);
        let iterations = sequential(&points, &knobs, &|| false).expect("not stopped");
        let last = iterations.last().expect("at least one");
        assert_eq!(iterations[0].changed, 400);
        assert!(last.changed as f64 <= 0.05 * 400.0, "{last:?}");
        assert_eq!(sequential(&points, &knobs, &|| false), Some(iterations));
        assert_eq!(sequential(&points, &knobs, &|| true), None);
    }
}
