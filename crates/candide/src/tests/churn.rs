//! Ordered tables and indexes under more threads than cores: rows are inserted, deleted and changed
//! while they are read.
//!
//! `CANDIDE_STRESS=n` makes the tests n times as long.

use super::entries::{assert_entries_match_rows, linked_records};
use super::indexed_rows::Parcel;
use super::threads::spawn;
use crate::engine::Protocol;
use crate::index::{Found, TableIndex};
use crate::protocols::Occ;
use crate::sync::size::{is_short, stress};
use crate::sync::{AtomicBool, Ordering, Random};
use crate::{
    Abort, Database, Hashed, Index, IndexOptions, Ordered, Prefix, Session, Table, TableOptions,
    Tx, Whole,
};
use std::collections::BTreeMap;

const WRITERS: u64 = 4;
const CHECKERS: u64 = 2;
const DISTRICTS: u64 = 2;
const NUMBERS: u64 = 40;
const WEIGHT: i64 = 1_000;

type Key = (u8, u16);

/// A table with three indexes. The sum of all weights is [`WEIGHT`].
struct Yard<P: Protocol> {
    db: Database<P>,
    parcels: Table<Parcel, P>,
    by_code: Index<Parcel, u32, Hashed, P>,
    by_place: Index<Parcel, (u8, i8), Ordered, P>,
}

impl<P: Protocol> Yard<P> {
    fn new(splitting: bool, packed: bool) -> Yard<P> {
        let db = Database::<P>::builder().timestamp_splitting(splitting).build().unwrap();
        let options = TableOptions::default().contention_aware_keys(!packed);
        let parcels = db.table_with::<Parcel>("parcels", options).unwrap();
        let by_code =
            parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
        let by_place = parcels
            .create_index("by_place", (Parcel::SHELF, Parcel::OWNER), IndexOptions::ordered())
            .unwrap();
        parcels.create_index("by_colour", Parcel::COLOUR, IndexOptions::hashed()).unwrap();
        db.run(|tx| parcels.insert(tx, Parcel { weight: WEIGHT, ..Parcel::new(1, 0) })).unwrap();
        Yard { db, parcels, by_code, by_place }
    }

    /// Makes one change that keeps the sum of all weights. Most changes are of few rows.
    fn change(&self, session: &mut Session<P>, random: &mut Random) {
        let number = |random: &mut Random| {
            let few = random.below(2) == 0;
            random.below(if few { 6 } else { NUMBERS }) as u16
        };
        let key = |random: &mut Random| (1 + random.below(DISTRICTS) as u8, number(random));
        let (from, to) = (key(random), key(random));
        let (kind, amount) = (random.below(8), random.below(20) as i64);
        let (shelf, owner, colour) =
            (random.below(4) as u8, random.below(3) as i8, random.below(3) as u8);
        // There are so few codes that two rows sometimes want the same code.
        let code = random.below(200) as u32;
        let parcels = &self.parcels;
        let changed = session.run(|tx| match kind {
            0 | 1 => self.split_off(tx, from, to, amount),
            2 => self.merge(tx, from, to),
            3 => {
                let moved = parcels.update_if_present(tx, &from, Parcel::WEIGHT.sub(amount))?;
                let arrived =
                    moved && parcels.update_if_present(tx, &to, Parcel::WEIGHT.add(amount))?;
                if moved && !arrived { Err(Abort::NotFound) } else { Ok(()) }
            }
            4 => parcels
                .modify(tx, &from, (Parcel::SHELF, Parcel::OWNER), |place| *place = (shelf, owner)),
            5 => parcels.modify(tx, &from, Parcel::COLOUR, |old| *old = colour),
            6 => parcels
                .modify(tx, &from, (Parcel::CODE, Parcel::NOTE), |both| *both = (code, both.1 + 1)),
            _ => {
                // The row is deleted, then inserted elsewhere with other words.
                let Some(row) = parcels.get(tx, &from, Whole)? else { return Ok(()) };
                parcels.delete(tx, &from)?;
                let Parcel { weight, code, .. } = row;
                let moved =
                    Parcel { weight, code, shelf, owner, colour, ..Parcel::new(from.0, from.1) };
                parcels.insert(tx, moved)
            }
        });
        assert!(matches!(changed, Ok(()) | Err(Abort::NotFound | Abort::NotUnique)), "{changed:?}");
    }

    /// Moves `amount` of a row's weight to a new row.
    fn split_off(&self, tx: &Tx<'_, P>, from: Key, to: Key, amount: i64) -> Result<(), Abort> {
        if !self
            .parcels
            .insert_if_absent(tx, Parcel { weight: amount, ..Parcel::new(to.0, to.1) })?
        {
            return Ok(());
        }
        self.parcels.update(tx, &from, Parcel::WEIGHT.sub(amount))
    }

    /// Adds the whole weight of row `from` to row `to`, and deletes row `from`.
    fn merge(&self, tx: &Tx<'_, P>, from: Key, to: Key) -> Result<(), Abort> {
        let Some(weight) = self.parcels.get(tx, &from, Parcel::WEIGHT)? else { return Ok(()) };
        if from != to && self.parcels.update_if_present(tx, &to, Parcel::WEIGHT.add(weight))? {
            self.parcels.delete(tx, &from)?;
        }
        Ok(())
    }

    /// Checks all rows and indexes in one transaction. Errors are reported after the transaction
    /// has committed, since only then its reads are valid.
    fn check(&self, session: &mut Session<P>, random: &mut Random) {
        let kind = random.below(4);
        let wrong = session.run(|tx| {
            let mut rows: Vec<(Key, Parcel)> = match kind {
                0 => self.parcels.iter(tx, Whole).collect::<Result<_, _>>()?,
                1 => {
                    let mut rows: Vec<_> =
                        self.parcels.scan_rev(tx, .., Whole).collect::<Result<_, _>>()?;
                    rows.reverse();
                    rows
                }
                _ => {
                    let districts = (1..=DISTRICTS as u8).map(|district| Prefix((district,)));
                    let scans =
                        districts.flat_map(|district| self.parcels.scan(tx, district, Whole));
                    scans.collect::<Result<_, _>>()?
                }
            };
            let sum: i64 = rows.iter().map(|(_, row)| row.weight).sum();
            if sum != WEIGHT || !rows.is_sorted_by_key(|row| row.0) {
                return Ok(Some(format!("weight {sum} in {rows:?}")));
            }
            // All rows are read again, by an index.
            let mut found: Vec<(Key, Parcel)> = match kind {
                0 => self.by_place.scan_rev(tx, .., Whole).collect::<Result<_, _>>()?,
                _ => self.by_place.scan(tx, .., Whole).collect::<Result<_, _>>()?,
            };
            let place = |row: &(Key, Parcel)| (row.1.shelf, row.1.owner, row.0);
            if kind != 0 && !found.is_sorted_by_key(place) {
                return Ok(Some(format!("out of order: {found:?}")));
            }
            rows.sort_by_key(place);
            found.sort_by_key(place);
            if rows != found {
                return Ok(Some(format!("rows {rows:?}, by place {found:?}")));
            }
            for &(key, Parcel { code, .. }) in &rows {
                let by_code = self.by_code.get(tx, &code, (Parcel::DISTRICT, Parcel::NUMBER))?;
                if by_code != Some(key) {
                    return Ok(Some(format!("row {key:?}, by its code {code} {by_code:?}")));
                }
            }
            Ok(None)
        });
        assert_eq!(wrong, Ok(None));
    }

    /// Makes an index, checks it, and drops it.
    fn make_and_drop(&self, session: &mut Session<P>, round: u64) {
        fn check<I: crate::schema::IndexKind, P: Protocol>(
            yard: &Yard<P>,
            session: &mut Session<P>,
            index: &Index<Parcel, u8, I, P>,
        ) {
            let counts = session.run(|tx| {
                let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
                for row in yard.parcels.iter(tx, Parcel::SHELF) {
                    *counts.entry(row?.1).or_default() += 1;
                }
                let mut found = BTreeMap::new();
                for shelf in 0..4 {
                    let rows = index.rows(tx, &shelf, ()).collect::<Result<Vec<_>, _>>()?.len();
                    found.extend((rows > 0).then_some((shelf, rows)));
                }
                Ok((counts, found))
            });
            let (counts, found) = counts.unwrap();
            assert_eq!(counts, found);
        }
        if round.is_multiple_of(2) {
            let index = self
                .parcels
                .create_index("ordered", Parcel::SHELF, IndexOptions::ordered())
                .unwrap();
            check(self, session, &index);
            self.parcels.drop_index("ordered").unwrap();
        } else {
            let index =
                self.parcels.create_index("hashed", Parcel::SHELF, IndexOptions::hashed()).unwrap();
            check(self, session, &index);
            self.parcels.drop_index("hashed").unwrap();
        }
    }
}

protocol_tests!(concurrent: sums_and_indexes_hold_while_rows_come_and_go);
fn sums_and_indexes_hold_while_rows_come_and_go<P: Protocol>() {
    for (splitting, packed) in [(true, false), (false, true)] {
        let yard = Yard::<P>::new(splitting, packed);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (yard, done) = (&yard, &done);
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    spawn(scope, move || {
                        let (mut session, mut random) =
                            (yard.db.session().unwrap(), Random::seeded(number));
                        (0..800 * stress()).for_each(|_| yard.change(&mut session, &mut random));
                    })
                })
                .collect();
            for number in 0..CHECKERS {
                spawn(scope, move || {
                    let (mut session, mut random) =
                        (yard.db.session().unwrap(), Random::seeded(50 + number));
                    while !done.load(Ordering::Relaxed) {
                        yard.check(&mut session, &mut random);
                    }
                });
            }
            spawn(scope, move || {
                let mut session = yard.db.session().unwrap();
                let mut round = 0;
                while !done.load(Ordering::Relaxed) {
                    yard.make_and_drop(&mut session, round);
                    round += 1;
                }
            });
            let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, Ordering::Relaxed);
            ends.into_iter()
                .for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        });
        let mut session = yard.db.session().unwrap();
        yard.check(&mut session, &mut Random::seeded(1));
        assert_entries_match_rows(&mut session, &yard.parcels);
        let mut sum = 0;
        yard.parcels.for_each_quiescent(|row| sum += row.weight).unwrap();
        assert_eq!(sum, WEIGHT);
    }
}

protocol_tests!(concurrent: concurrent_inserts_and_deletes_of_ranges_are_atomic);
fn concurrent_inserts_and_deletes_of_ranges_are_atomic<P: Protocol>() {
    // Each thread fills and empties ranges of its own, so that leaves are split and removed, and
    // hash indexes grow. Meanwhile each scan of a range must find either all rows of the range or
    // none.
    const ROWS: u16 = 60;
    let db = Database::<P>::builder().build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    let by_owner =
        parcels.create_index("by_owner", Parcel::OWNER, IndexOptions::ordered()).unwrap();
    let owner = |thread: u8| Parcel { owner: thread as i8, ..Parcel::new(1, 0) }.owner;
    std::thread::scope(|scope| {
        for thread in 0..WRITERS as u8 {
            let (db, parcels, by_owner) = (&db, &parcels, &by_owner);
            spawn(scope, move || {
                let (mut session, mut random) =
                    (db.session().unwrap(), Random::seeded(thread.into()));
                // Two threads share a district. Each of the two uses every other number.
                let row = |number: u16| {
                    let parcel = Parcel::new(1 + thread / 2, 2 * number + u16::from(thread % 2));
                    Parcel { owner: owner(thread), ..parcel }
                };
                for round in 0..12 * stress() {
                    let base = ROWS * (round % 3) as u16;
                    session
                        .run(|tx| parcels.insert_many(tx, (base..base + ROWS).map(row)))
                        .unwrap();
                    let other = random.below(WRITERS) as u8;
                    let counts = session.run(|tx| {
                        let count = |row: Result<(Key, i8), Abort>| {
                            row.map(|row| usize::from(row.1 == owner(other)))
                        };
                        let district = Prefix((1 + other / 2,));
                        let forward = parcels
                            .scan(tx, district, Parcel::OWNER)
                            .map(count)
                            .sum::<Result<usize, _>>()?;
                        let back = parcels
                            .scan_rev(tx, district, Parcel::OWNER)
                            .map(count)
                            .sum::<Result<usize, _>>()?;
                        let rows =
                            by_owner.rows(tx, &owner(other), ()).collect::<Result<Vec<_>, _>>()?;
                        Ok((forward, back, rows.len()))
                    });
                    let (forward, back, rows) = counts.unwrap();
                    assert_eq!((back, rows), (forward, forward));
                    assert!(forward % usize::from(ROWS) == 0, "{forward}");
                    session
                        .run(|tx| {
                            (base..base + ROWS).try_for_each(|number| {
                                let row = row(number);
                                parcels.delete(tx, &(row.district, row.number))
                            })
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(parcels.for_each_quiescent(|_| {}).unwrap(), 0);
    assert_entries_match_rows(&mut db.session().unwrap(), &parcels);
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: memory_is_flat_when_a_table_is_filled_and_cleared
);
fn memory_is_flat_when_a_table_is_filled_and_cleared<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    parcels
        .create_index("by_place", (Parcel::SHELF, Parcel::OWNER), IndexOptions::ordered())
        .unwrap();
    parcels.create_index("by_colour", Parcel::COLOUR, IndexOptions::hashed()).unwrap();
    let mut session = db.session().unwrap();
    let mut reserved = Vec::new();
    let count: u16 = if is_short() { 1_000 } else { 2_000 };
    for round in 0..10 * stress() as u16 {
        let rows = |number| Parcel {
            shelf: (number % 7) as u8,
            colour: number as u8,
            ..Parcel::new(1, number)
        };
        session
            .run(|tx| parcels.insert_many(tx, (0..count).map(|number| rows(number + 100 * round))))
            .unwrap();
        assert_eq!(session.run(|tx| parcels.clear(tx)), Ok(usize::from(count)));
        drain(&mut session, &epochs);
        reserved.push(db.memory().reserved_bytes);
    }
    // Hash indexes may grow later, when a bucket happens to be full. If no memory were reused, each
    // round would take as much memory as the first.
    let (settled, last) = (reserved[4], *reserved.last().expect("ten rounds"));
    assert!(last <= settled + reserved[0] / 4, "{reserved:?}");
    // In the end, only existing rows have records.
    let mut drains = 0;
    while db.memory().garbage > 0 || linked_records(&mut session, &parcels) > 0 {
        drain(&mut session, &epochs);
        let left = linked_records(&mut session, &parcels);
        drains += 1;
        assert!(drains < 10_000, "{left} records, {:?}", db.memory());
    }
    for index in parcels.core().indexes.kept() {
        if let TableIndex::Hash(hash) = &index.entries.index {
            assert_eq!(hash.all_overflow_lines(), 0, "{:?} is empty", index.name);
        }
    }
    session.run(|tx| parcels.insert(tx, Parcel::new(1, 1))).unwrap();
    assert_eq!(linked_records(&mut session, &parcels), 4);
}

/// Lets epochs pass, and lets the session collect its garbage.
fn drain<P: Protocol>(session: &mut Session<P>, epochs: &crate::epoch::Epochs) {
    for _ in 0..4 {
        epochs.pass();
        session.run(|_| Ok(())).unwrap();
    }
}

/// A record is read after it was unlinked: its memory must wait for the reader's pin. A sanitizer
/// reports memory that is freed too early here on each run, since no other thread takes part.
#[test]
fn a_record_that_was_unlinked_after_a_reader_found_it_is_freed_after_the_reader() {
    let db = Database::<Occ>::builder().manual_epochs(10).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let (mut reader, mut writer) = (db.session().unwrap(), db.session().unwrap());
    writer.run(|tx| parcels.insert_many(tx, [1, 2].map(|number| Parcel::new(1, number)))).unwrap();
    writer.run(|tx| parcels.delete(tx, &(1, 1))).unwrap();
    let is_linked = || {
        parcels
            .in_words(&(1, 1), |words| matches!(parcels.core().index.find(words), Found::Record(_)))
    };
    (0..2).for_each(|_| epochs.pass());
    let mut attempts = 0;
    let present = reader.run(|tx| {
        attempts += 1;
        let first = parcels.contains(tx, &(1, 1))?;
        if attempts == 1 {
            assert!(is_linked(), "the reader has found the absent record");
            // Unlinks the record in the epoch of the reader's pin.
            writer.run(|_| Ok(())).unwrap();
            assert!(!is_linked(), "the writer has unlinked the record");
            drain(&mut writer, &epochs);
            writer.run(|tx| parcels.update(tx, &(1, 2), Parcel::COUNT.set(1))).unwrap();
        }
        // The row is newer than the first read, which is validated: the record's TID word is read.
        Ok((first, parcels.get(tx, &(1, 2), Parcel::COUNT)?))
    });
    assert_eq!((present, attempts), (Ok((false, Some(1))), 2));
}
