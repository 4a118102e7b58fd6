//! Scans from both ends, while other threads fill and empty the ranges that they go through.

use crate::common::{Parcel, Random, database_with, spawn, stress};
use candide::{
    Abort, Column, Database, Index, IndexOptions, Ordered, Protocol, RunOptions, Session, Table,
    Tx, Versioned,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rows that a writer inserts or deletes in one transaction.
const ROWS: u16 = 30;
const WRITERS: u16 = 3;

/// A table to which each writer adds all its rows, or none.
struct Yard<P: Protocol> {
    db: Database<P>,
    parcels: Table<Parcel, P>,
    by_place: Index<Parcel, (u8, i8), Ordered, P>,
}

/// A row's key, its writer, and its shelf.
type Row = ((u8, u16), (i8, u8));

impl<P: Protocol> Yard<P> {
    fn new() -> Yard<P> {
        let (db, parcels) = database_with::<Parcel, P>("parcels");
        let place = (Parcel::SHELF, Parcel::OWNER);
        let by_place = parcels.create_index("by_place", place, IndexOptions::ordered()).unwrap();
        Yard { db, parcels, by_place }
    }

    /// Inserts the rows of a writer, deletes them, and inserts others. Some of them are inserted
    /// only after a part that has inserted them has been undone.
    fn write(&self, writer: u16) {
        let (mut session, mut random) = (self.db.session().unwrap(), Random::seeded(writer.into()));
        for _ in 0..40 * stress() {
            let first = random.below(4) as u16 * ROWS;
            let row = |number: u16| Parcel {
                owner: writer as i8,
                shelf: (number % 3) as u8,
                ..Parcel::new((number % 2) as u8, WRITERS * number + writer)
            };
            let rows = || (first..first + ROWS).map(row);
            let undone = random.below(3) as usize * 10;
            let filled = session.run(|tx| {
                let part = tx.attempt(|tx| {
                    self.parcels.insert_many(tx, rows().skip(undone).take(10))?;
                    Err::<(), _>(Abort::Indexed)
                });
                match part {
                    Err(Abort::Indexed) => self.parcels.insert_many(tx, rows()),
                    conflict => conflict,
                }
            });
            assert_eq!(filled, Ok(()), "{}", P::NAME);
            let emptied = session.run(|tx| {
                rows().try_for_each(|row| self.parcels.delete(tx, (row.district, row.number)))
            });
            assert_eq!(emptied, Ok(()), "{}", P::NAME);
        }
    }

    /// Takes the rows of a scan from both ends. Returns them in order, or what is wrong with them.
    fn take_all<K: Ord>(
        mut scan: impl DoubleEndedIterator<Item = Result<Row, Abort>>,
        place: impl Fn(&Row) -> K,
        random: &mut Random,
    ) -> Result<Result<Vec<Row>, String>, Abort> {
        let (mut front, mut back) = (Vec::new(), Vec::new());
        let chance = [1, 2, 9][random.below(3) as usize];
        let mut is_back = random.below(2) == 0;
        loop {
            is_back ^= random.below(chance) == 0;
            let row = if is_back { scan.next_back() } else { scan.next() };
            let Some(row) = row.transpose()? else { break };
            if is_back { back.push(row) } else { front.push(row) }
        }
        if scan.next().is_some() || scan.next_back().is_some() {
            return Ok(Err("it goes on after its end".to_string()));
        }
        front.extend(back.into_iter().rev());
        let is_sorted = front.windows(2).all(|two| place(&two[0]) < place(&two[1]));
        Ok(if is_sorted { Ok(front) } else { Err(format!("out of order: {front:?}")) })
    }

    /// Goes through the table and the index. Returns what is wrong; `None` if nothing is.
    fn look(&self, tx: &Tx<'_, P>, random: &mut Random) -> Result<Option<String>, Abort> {
        const COLUMNS: (Column<Parcel, i8>, Column<Parcel, u8>) = (Parcel::OWNER, Parcel::SHELF);
        let scan = self.parcels.scan(tx, .., COLUMNS);
        let rows = match Self::take_all(scan, |row| row.0, random)? {
            Ok(rows) => rows,
            Err(wrong) => return Ok(Some(wrong)),
        };
        let mut counts = BTreeMap::new();
        rows.iter().for_each(|(_, (owner, _))| *counts.entry(owner).or_insert(0) += 1);
        if counts.values().any(|&count| count != ROWS) {
            return Ok(Some(format!("a part of a transaction: {rows:?}")));
        }
        let scan = self.by_place.scan(tx, .., COLUMNS);
        let place = |&(key, (owner, shelf)): &Row| (shelf, owner, key);
        let mut by_place = match Self::take_all(scan, place, random)? {
            Ok(by_place) => by_place,
            Err(wrong) => return Ok(Some(wrong)),
        };
        by_place.sort_unstable();
        Ok((by_place != rows).then(|| format!("{rows:?}, by place {by_place:?}")))
    }

    /// Runs the writers, and `check` in two threads as long as they run.
    fn play(&self, check: impl Fn(&mut Session<P>, &mut Random) + Sync) {
        let left = AtomicU64::new(WRITERS.into());
        std::thread::scope(|scope| {
            let (left, check) = (&left, &check);
            for writer in 0..WRITERS {
                spawn(scope, move || {
                    let _end = OnDrop(left);
                    self.write(writer);
                });
            }
            for number in 0..2 {
                spawn(scope, move || {
                    let mut session = self.db.session().unwrap();
                    let mut random = Random::seeded(100 + number);
                    while left.load(Ordering::Relaxed) > 0 {
                        check(&mut session, &mut random);
                    }
                });
            }
        });
        let left =
            self.db.run(|tx| Ok((self.look(tx, &mut Random::seeded(0))?, self.parcels.len(tx)?)));
        assert_eq!(left, Ok((None, 0)));
    }
}

/// Counts down when a writer ends, also if it fails.
struct OnDrop<'a>(&'a AtomicU64);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

protocol_tests!(concurrent: both_ends_of_a_scan_see_a_transaction_whole_or_not_at_all);
fn both_ends_of_a_scan_see_a_transaction_whole_or_not_at_all<P: Protocol>() {
    let yard = Yard::<P>::new();
    yard.play(|session, random| {
        let only_reads = random.below(2) == 0;
        let options = RunOptions::new();
        let options = if only_reads { options.read_only() } else { options };
        // What is wrong is reported after the commit, since only then the reads are valid.
        let wrong = session.with(options).run(|tx| yard.look(tx, random));
        assert_eq!(wrong, Ok(None), "{}: {only_reads}", P::NAME);
    });
}

protocol_tests!(versioned: both_ends_of_a_snapshot_see_a_transaction_whole_or_not_at_all);
fn both_ends_of_a_snapshot_see_a_transaction_whole_or_not_at_all<P: Versioned>() {
    let yard = Yard::<P>::new();
    yard.play(|session, random| {
        let snapshot = yard.db.snapshot();
        for _ in 0..1 + random.below(4) {
            let wrong = snapshot.run(|tx| yard.look(tx, random));
            assert_eq!(wrong, Ok(None), "{}", P::NAME);
            // Meanwhile rows that the snapshot sees leave the main index.
            session.run(|_| Ok(())).unwrap();
            std::thread::yield_now();
        }
    });
}
