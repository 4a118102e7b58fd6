//! Random transactions of every kind. The histories of the transactions are checked.

use super::indexed_rows::Parcel;
use super::rows::Item;
use crate::engine::{Protocol, Versioned};
use crate::protocols::{Batch, Recorded};
use crate::sync::{Random, thread};
use crate::{
    Abort, Database, Hashed, Index, IndexOptions, Ordered, RunOptions, Session, Snapshot, Table,
    Tx, Whole,
};
use candide_check::{Checker, Options, Verdict};

/// An ordered table with two indexes, and a hash table. Both tables have few keys.
pub(crate) struct Mix<P: Protocol> {
    pub(crate) db: Database<Recorded<P>>,
    pub(crate) items: Table<Item, Recorded<P>>,
    parcels: Table<Parcel, Recorded<P>>,
    by_code: Index<Parcel, u32, Hashed, Recorded<P>>,
    by_place: Index<Parcel, (u8, i8), Ordered, Recorded<P>>,
    keys: u64,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Commit,
    Fail,
    Panic,
}

/// Whether operations are a part of their transaction, and whether the part is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    /// A part that is undone if one of its operations fails.
    Undoable,
    /// A part that is undone.
    Undone,
}

/// The number of operations; the first number drawn for an operation is below it.
const OPERATIONS: u64 = 32;
/// The numbers of the operations that only read.
const READS: [u64; 12] = [0, 1, 9, 10, 11, 19, 20, 21, 22, 23, 24, 30];

fn any(random: &mut Random) -> u64 {
    random.below(OPERATIONS)
}

fn a_read(random: &mut Random) -> u64 {
    READS[random.below(READS.len() as u64) as usize]
}

impl<P: Protocol> Mix<P> {
    /// Makes tables without rows. The transactions will use `keys` different numbers as keys.
    pub(crate) fn new(db: Database<Recorded<P>>, keys: u64) -> Mix<P> {
        let (items, parcels) = (db.table("items").unwrap(), db.table::<Parcel>("parcels").unwrap());
        let by_code =
            parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
        let by_place = parcels
            .create_index("by_place", (Parcel::SHELF, Parcel::OWNER), IndexOptions::ordered())
            .unwrap();
        Mix { db, items, parcels, by_code, by_place, keys }
    }

    /// Inserts a row for each key.
    pub(crate) fn fill(&self, session: &mut Session<Recorded<P>>) {
        let filled = session.run(|tx| {
            (0..self.keys).try_for_each(|key| {
                self.items.insert(tx, Item::new(key, 1))?;
                self.parcels.insert(tx, Parcel::new((key % 2) as u8, (key / 2) as u16))
            })
        });
        filled.unwrap_or_else(|abort: Abort| panic!("{}: {abort}", P::NAME));
    }

    /// Draws a transaction of up to `most` operations and runs it. One transaction in eight has the
    /// read-only option.
    pub(crate) fn step(&self, session: &mut Session<Recorded<P>>, random: &mut Random, most: u64) {
        // A transaction that fails this often has met a defect.
        let options = RunOptions::new().attempts_max(20_000);
        if random.below(8) == 0 {
            self.play(random, most, a_read, |body| session.with(options.read_only()).run(body));
        } else {
            self.play(random, most, any, |body| session.with(options).run(body));
        }
    }

    /// Draws a transaction and runs it.
    fn play(
        &self,
        random: &mut Random,
        most: u64,
        kind: fn(&mut Random) -> u64,
        run: impl FnOnce(&mut dyn FnMut(&Tx<'_, Recorded<P>>) -> Result<(), Abort>) -> Result<(), Abort>,
    ) {
        let script: Vec<_> = (0..1 + random.below(most))
            .map(|_| (kind(random), random.below(self.keys), random.below(self.keys)))
            .collect();
        let turn = match random.below(12) {
            0 => Turn::Panic,
            1 => Turn::Fail,
            _ => Turn::Commit,
        };
        let stops = random.below(4) == 0;
        let parts: Vec<_> = (0..script.len())
            .map(|_| match random.below(6) {
                0 => Part::Undone,
                1 | 2 => Part::Undoable,
                _ => Part::None,
            })
            .collect();
        let mut body = |tx: &Tx<'_, Recorded<P>>| {
            for (operations, part) in script.chunks(2).zip(&parts) {
                match self.carry_out_part(tx, operations, *part) {
                    Err(
                        Abort::NotFound
                        | Abort::Duplicate
                        | Abort::NotUnique
                        | Abort::Guard
                        | Abort::NotYet,
                    ) if !stops => {}
                    done => done?,
                }
            }
            match turn {
                Turn::Commit => Ok(()),
                Turn::Fail => Err(Abort::NotFound),
                Turn::Panic => std::panic::resume_unwind(Box::new(turn)),
            }
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mut body))) {
            Ok(
                Ok(())
                | Err(
                    Abort::NotFound
                    | Abort::Duplicate
                    | Abort::NotUnique
                    | Abort::Guard
                    | Abort::NotYet,
                ),
            ) => {}
            Ok(Err(abort)) => panic!("{}: {abort}", P::NAME),
            Err(panic) if panic.is::<Turn>() => {}
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Carries out operations, as a part of the transaction if `part` is set.
    fn carry_out_part(
        &self,
        tx: &Tx<'_, Recorded<P>>,
        operations: &[(u64, u64, u64)],
        part: Part,
    ) -> Result<(), Abort> {
        let carry_out = |tx: &Tx<'_, Recorded<P>>| {
            operations.iter().try_for_each(|operation| self.carry_out(tx, *operation))
        };
        match part {
            Part::None => carry_out(tx),
            Part::Undoable => tx.attempt(carry_out),
            Part::Undone => {
                let undone = tx.attempt(|tx| {
                    tx.attempt(carry_out)?;
                    Err::<(), _>(Abort::Indexed)
                });
                if undone == Err(Abort::Indexed) { Ok(()) } else { undone }
            }
        }
    }

    fn carry_out(
        &self,
        tx: &Tx<'_, Recorded<P>>,
        (what, key, other): (u64, u64, u64),
    ) -> Result<(), Abort> {
        let Mix { items, parcels, by_code, by_place, .. } = self;
        let parcel = ((key % 2) as u8, (key / 2) as u16);
        let row = Parcel {
            code: other as u32,
            shelf: (other % 2) as u8,
            ..Parcel::new(parcel.0, parcel.1)
        };
        let range = (0, 0)..=(1, other as u16 / 2);
        match what {
            0 => items.get(tx, &key, Item::COUNT).map(drop),
            1 => items.get(tx, &key, Item::OTHER).map(drop),
            2 => items.insert_if_absent(tx, Item::new(key, 1)).map(drop),
            3 => items.put(tx, Item::new(key, 2)),
            4 => items.update(tx, &key, Item::COUNT.add(1)),
            5 => items.update(tx, &key, Item::COUNT.sub(1).at_least(0)),
            6 => items.modify(tx, &key, Item::OTHER, |other| *other += 1),
            7 => items.delete(tx, &key),
            8 => items.get_for_update(tx, &key, Whole).map(drop),
            9 => items.iter(tx, ()).for_each(drop),
            10 => parcels.get(tx, &parcel, Parcel::WEIGHT).map(drop),
            11 => parcels.get(tx, &parcel, (Parcel::NOTE, Parcel::COUNT)).map(drop),
            12 => parcels.insert(tx, row),
            13 => parcels.put(tx, row),
            14 => parcels.delete_if_present(tx, &parcel).map(drop),
            15 => {
                parcels.delete(tx, &parcel)?;
                parcels.insert(tx, row)
            }
            16 => parcels.update_if_present(tx, &parcel, Parcel::NOTE.set(other)).map(drop),
            17 => parcels.update_if_present(tx, &parcel, Parcel::WEIGHT.add(1)).map(drop),
            18 => parcels
                .modify_if_present(tx, &parcel, Parcel::OWNER, |owner| *owner = other as i8)
                .map(drop),
            19 => parcels.scan(tx, range, Parcel::WEIGHT).take(2).try_for_each(|row| row.map(drop)),
            20 => {
                parcels.scan_rev(tx, range, Parcel::COUNT).take(1).try_for_each(|row| row.map(drop))
            }
            21 => parcels.scan(tx, parcel..parcel, ()).for_each(drop),
            22 => by_code.get(tx, &(other as u32), Parcel::NOTE).map(drop),
            23 => by_place.scan(tx, .., Parcel::WEIGHT).take(3).try_for_each(|row| row.map(drop)),
            24 => by_place.rows(tx, &((other % 2) as u8, 0), ()).for_each(drop),
            25 => {
                items.put(tx, Item::new(key, 3))?;
                thread::yield_now();
                assert!(items.contains(tx, key)?, "{}: a row that was just put", P::NAME);
                Ok(())
            }
            26 => {
                parcels.put(tx, Parcel { note: other, ..Parcel::new(parcel.0, parcel.1) })?;
                thread::yield_now();
                let found = parcels.scan(tx, parcel..=parcel, Parcel::NOTE).next().transpose()?;
                assert_eq!(found, Some((parcel, other)), "{}: a row that was just put", P::NAME);
                Ok(())
            }
            27 => items.defer(tx, key, Item::COUNT, (), |count, ()| *count += 1).map(drop),
            28 => {
                let count = items.defer(tx, key, Item::COUNT, (), |count, ()| *count)?;
                let add = |sum: &mut u64, count: &i64| *sum = sum.wrapping_add_signed(*count);
                items.defer(tx, other, Item::OTHER, &count, add).map(drop)
            }
            29 => {
                let count = items.defer(tx, key, Item::COUNT, (), |count, ()| *count)?;
                items.defer_insert(tx, other, count.map(move |&count| Item::new(other, count)))
            }
            30 => items.is_within(tx, key, Item::COUNT, 1..3 + other as i64 % 2).map(drop),
            _ => {
                thread::yield_now();
                Ok(())
            }
        }
    }
}

impl<P: Versioned> Mix<P> {
    /// Draws a transaction of up to `most` operations that only read, and runs it on a snapshot.
    pub(crate) fn read_view(
        &self,
        session: &mut Session<Recorded<P>>,
        snapshot: &Snapshot<Recorded<P>>,
        random: &mut Random,
        most: u64,
    ) {
        self.play(random, most, a_read, |body| snapshot.run_in(session, body));
    }
}

/// A checker that gets a history part by part, while the history is recorded.
pub(crate) struct Judge {
    checker: Checker,
    title: String,
}

impl Judge {
    /// Makes a judge for the history named `title`.
    pub(crate) fn new(options: Options, title: String) -> Judge {
        Judge { checker: Checker::new(options), title }
    }

    pub(crate) fn hear(&mut self, batch: &Batch) {
        batch.events.iter().for_each(|event| self.checker.feed(event));
        self.checker.advance(batch.complete_before);
    }

    /// Asserts that the whole history is serializable, and returns its number of transactions.
    pub(crate) fn judge(self) -> u64 {
        let summary = self.checker.finish();
        match summary.verdict {
            Verdict::Serializable => summary.transactions,
            Verdict::Violated(violation) => panic!("{}: {violation}", self.title),
            Verdict::Inconclusive(doubt) => panic!("{}: inconclusive, {doubt}", self.title),
        }
    }
}
