//! A queue of jobs: an ordered table by the time at which a job is due. Workers claim the next one,
//! do it, and delete it; a job that fails comes again later, and one whose worker has vanished is
//! claimed again after its lease.
//!
//! ```sh
//! cargo run --release -p candide --example queue
//! ```

use candide::{Abort, Database, Error, Record, Sequence, Table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const JOBS: u64 = 3_000;
const WORKERS: u64 = 3;
/// The time that a worker has for a job, in the units of the queue's clock.
const LEASE: u64 = 1_000;
const ATTEMPTS_MAX: u32 = 3;

/// A job. The key begins with the time at which it is due, so the next job is the first row. It
/// moves on when it is claimed: then it is due when the lease ends.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
struct Job {
    #[key]
    due: u64,
    #[key]
    id: u64,
    attempts: u32,
    amount: i64,
}

/// What the jobs add up to.
#[derive(Record, Clone, Copy, Debug)]
struct Total {
    #[key]
    id: u32,
    done: u64,
    failed: u64,
    amount: i64,
}

struct Queue {
    db: Database,
    jobs: Table<Job>,
    totals: Table<Total>,
    numbers: Sequence,
    clock: AtomicU64,
}

impl Queue {
    fn open(db: Database) -> Result<Queue, Error> {
        let (jobs, totals) = (db.table("jobs")?, db.table("totals")?);
        db.run(|tx| totals.put(tx, Total { id: 0, done: 0, failed: 0, amount: 0 }))?;
        let numbers = db.sequence("jobs")?;
        Ok(Queue { db, jobs, totals, numbers, clock: AtomicU64::new(1) })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn push(&self, amount: i64) -> Result<(), Abort> {
        let due = self.now();
        self.db.run(|tx| {
            let id = self.numbers.next(tx)?;
            self.jobs.insert(tx, Job { due, id, attempts: 0, amount })
        })
    }

    /// Claims the next job that is due. Two workers that meet at the same job conflict, and the
    /// second one is repeated and gets the next job.
    fn claim(&self) -> Result<Option<Job>, Abort> {
        let now = self.now();
        self.db.run(|tx| {
            let mut due = self.jobs.scan(tx, ..=(now, u64::MAX), candide::Whole);
            let Some((_, job)) = due.next().transpose()? else { return Ok(None) };
            self.move_to(tx, &job, now + LEASE, job.attempts + 1).map(Some)
        })
    }

    /// Ends a claimed job. Does nothing if its lease is over and another worker has claimed it.
    fn finish(&self, job: &Job, is_done: bool) -> Result<bool, Abort> {
        let now = self.now();
        self.db.run(|tx| {
            if !self.jobs.contains(tx, (job.due, job.id))? {
                return Ok(false);
            }
            if is_done {
                self.jobs.delete(tx, (job.due, job.id))?;
                // Updates read nothing, so workers do not conflict at this row.
                self.totals.update(tx, 0, (Total::DONE.add(1), Total::AMOUNT.add(job.amount)))?;
            } else if job.attempts < ATTEMPTS_MAX {
                self.move_to(tx, job, now + 10, job.attempts)?;
            } else {
                self.jobs.delete(tx, (job.due, job.id))?;
                self.totals.update(tx, 0, Total::FAILED.add(1))?;
            }
            Ok(true)
        })
    }

    /// Gives a job another key.
    fn move_to(
        &self,
        tx: &candide::Tx<'_>,
        job: &Job,
        due: u64,
        attempts: u32,
    ) -> Result<Job, Abort> {
        let moved = Job { due, attempts, ..*job };
        self.jobs.delete(tx, (job.due, job.id))?;
        self.jobs.insert(tx, moved)?;
        Ok(moved)
    }
}

fn main() -> Result<(), Error> {
    let queue = Queue::open(Database::new())?;
    thread::scope(|scope| {
        scope.spawn(|| {
            for amount in 1..=JOBS as i64 {
                queue.push(amount).expect("nothing limits it");
            }
        });
        for _ in 0..WORKERS {
            scope.spawn(|| work(&queue));
        }
    });
    let total = queue.db.run(|tx| queue.totals.read(tx, 0, candide::Whole))?;
    println!("{total:?}");
    assert_eq!(total.done + total.failed, JOBS, "nothing is done twice, nothing is lost");
    assert_eq!(queue.db.run(|tx| queue.jobs.is_empty(tx)), Ok(true));
    Ok(())
}

/// Does jobs until all have ended. Each thirteenth attempt fails, and each hundredth worker forgets
/// its job.
fn work(queue: &Queue) {
    let mut claimed = 0;
    loop {
        let Some(job) = queue.claim().expect("nothing limits it") else {
            let total = queue.db.run(|tx| queue.totals.read(tx, 0, (Total::DONE, Total::FAILED)));
            let (done, failed) = total.expect("the row is there");
            if done + failed == JOBS {
                return;
            }
            thread::yield_now();
            continue;
        };
        claimed += 1;
        if claimed % 100 != 0 {
            queue.finish(&job, claimed % 13 != 0).expect("nothing limits it");
        }
    }
}
