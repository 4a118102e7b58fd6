//! The tables, and the transactions on them.

use candide::{Abort, Database, Error, Later, Protocol, Record, Session, Table, TableOptions, Tx};

use crate::load::run_unmeasured;

/// The largest number of coordinates of a point. Every centre has room for as many.
pub const DIMENSIONS_MAX: usize = 32;

/// The number of points that a thread claims at once.
pub const CHUNK: usize = 3;

/// The points that an iteration has assigned to a cluster so far. The whole row is one unit, so
/// that one operation adds a point.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Centre {
    /// The cluster's number.
    #[key]
    pub id: u32,
    /// The number of points.
    pub count: u64,
    /// The sum of the points' coordinates, which are multiples of 1/65536, in each dimension. Those
    /// of dimensions that the points do not have are 0.
    pub sums: [i64; DIMENSIONS_MAX],
}

/// A counter of the current iteration.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub struct Counter {
    /// The counter's number: [`NEXT`] or [`CHANGED`].
    #[key]
    pub id: u32,
    /// The value.
    pub value: u64,
}

/// The number of the counter whose value is the first point that has not been claimed.
pub const NEXT: u32 = 0;
/// The number of the counter of points that have changed their clusters.
pub const CHANGED: u32 = 1;

/// All tables.
pub struct Clusters<P: Protocol> {
    /// The centres.
    pub centres: Table<Centre, P>,
    /// The two counters.
    pub counters: Table<Counter, P>,
}

impl<P: Protocol> Clone for Clusters<P> {
    fn clone(&self) -> Self {
        Clusters { centres: self.centres.clone(), counters: self.counters.clone() }
    }
}

/// A point to be added to a centre, given by its coordinates as whole numbers.
#[derive(Debug, Clone, Copy)]
pub struct AddPoint(pub(super) [i32; DIMENSIONS_MAX]);

impl AddPoint {
    /// Adds one to `count`, and the point's coordinates to `sums`.
    #[inline]
    pub fn add(&self, count: &mut u64, sums: &mut [i64; DIMENSIONS_MAX]) {
        *count = count.wrapping_add(1);
        for (sum, &at) in sums.iter_mut().zip(&self.0) {
            *sum = sum.wrapping_add(i64::from(at));
        }
    }
}

/// One of the program's three transactions.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// Adds a point to the centre with this number.
    Point(u32, &'a AddPoint),
    /// Claims the next points.
    Claim,
    /// Adds a number of points that have changed their clusters.
    End(u64),
}

impl Job<'_> {
    /// The indexes of the three into the workload's transaction types.
    pub(super) const POINT: usize = 0;
    pub(super) const CLAIM: usize = 1;
    pub(super) const END: usize = 2;
}

/// The contents of the tables at the end of an iteration.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The centres, in the order of their numbers.
    pub centres: Vec<Centre>,
    /// The first point that has not been claimed.
    pub next: u64,
    /// The number of points that have changed their clusters.
    pub changed: u64,
}

impl<P: Protocol> Clusters<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>, clusters: u32) -> Result<Self, Error> {
        let room = TableOptions::default().capacity(clusters as usize);
        Ok(Clusters {
            centres: db.table_with("centres", room)?,
            counters: db.table_with("counters", TableOptions::default().capacity(2))?,
        })
    }

    /// Inserts the row of a centre or, above their numbers, of a counter.
    pub(super) fn insert(&self, tx: &Tx<'_, P>, number: u32, clusters: u32) -> Result<(), Abort> {
        match number.checked_sub(clusters) {
            None => self.centres.insert(tx, empty(number)),
            Some(id) => self.counters.insert(tx, Counter { id, value: 0 }),
        }
    }

    /// Does the work of one transaction eagerly. Returns the first of the claimed points, or any
    /// number if none are claimed.
    pub(super) fn run(&self, tx: &Tx<'_, P>, job: Job<'_>) -> Result<u64, Abort> {
        match job {
            Job::Point(centre, point) => {
                let columns = (Centre::COUNT, Centre::SUMS);
                let add = |(count, sums): &mut (u64, _)| point.add(count, sums);
                self.centres.modify(tx, centre, columns, add).map(|()| 0)
            }
            Job::Claim => self.fetch_add(tx, NEXT, CHUNK as u64),
            Job::End(changed) => self.fetch_add(tx, CHANGED, changed),
        }
    }

    /// Leaves the work of one transaction to its commit: nothing is read before. Returns the first
    /// of the claimed points, if any are claimed.
    pub(super) fn defer(&self, tx: &Tx<'_, P>, job: Job<'_>) -> Result<Option<Later<u64>>, Abort> {
        match job {
            Job::Point(centre, &point) => {
                let columns = (Centre::COUNT, Centre::SUMS);
                let add = move |(count, sums): &mut (u64, _), ()| point.add(count, sums);
                self.centres.defer(tx, centre, columns, (), add).map(|_| None)
            }
            Job::Claim => {
                let claim = |next: &mut u64, ()| std::mem::replace(next, *next + CHUNK as u64);
                self.counters.defer(tx, NEXT, Counter::VALUE, (), claim).map(Some)
            }
            Job::End(changed) => {
                let add = Counter::VALUE.wrapping_add(changed);
                self.counters.update(tx, CHANGED, add).map(|()| None)
            }
        }
    }

    /// Adds to a counter, and returns the value before.
    fn fetch_add(&self, tx: &Tx<'_, P>, counter: u32, summand: u64) -> Result<u64, Abort> {
        self.counters.modify(tx, counter, Counter::VALUE, |value| {
            let before = *value;
            *value += summand;
            before
        })
    }

    /// Ends an iteration: returns what the tables hold, and empties them. The points below `next`
    /// are given to threads that need not claim them.
    pub(super) fn exchange(
        &self,
        session: &mut Session<P>,
        clusters: u32,
        next: u64,
    ) -> Result<Found, Abort> {
        let mut found = Found::default();
        run_unmeasured(session, &mut |tx| {
            found.centres.clear();
            for id in 0..clusters {
                found.centres.push(self.centres.read(tx, id, candide::Whole)?);
                self.centres.put(tx, empty(id))?;
            }
            found.next = self.counters.read(tx, NEXT, Counter::VALUE)?;
            found.changed = self.counters.read(tx, CHANGED, Counter::VALUE)?;
            self.counters.put(tx, Counter { id: NEXT, value: next })?;
            self.counters.put(tx, Counter { id: CHANGED, value: 0 })
        })?;
        Ok(found)
    }
}

/// Returns the row of a centre without points.
fn empty(id: u32) -> Centre {
    Centre { id, count: 0, sums: [0; DIMENSIONS_MAX] }
}
