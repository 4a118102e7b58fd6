//! Scans that are held open while the transaction writes, and while parts of it are undone, beside
//! a model.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::Parcel;
use super::transactions::run;
use crate::engine::Protocol;
use crate::sync::Random;
use crate::sync::size::share;
use crate::{Abort, Column, Database, Index, IndexOptions, Ordered, Session, Table, Tx};
use std::collections::{BTreeMap, VecDeque};

type Key = (u8, u16);
type Row = (Key, (u32, i64));

/// The columns that scans return.
const COLUMNS: (Column<Parcel, u32>, Column<Parcel, i64>) = (Parcel::CODE, Parcel::WEIGHT);

/// The order of a scan's rows: by the table's key, by a unique index, or by another index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Key,
    Code,
    Weight,
}

/// The place of a row in an order.
type Place = (i64, Key);

impl Order {
    fn place(self, (key, (code, weight)): Row) -> Place {
        match self {
            Order::Key => (key.0.into(), key),
            // A key of a unique index has one place, whichever row has it.
            Order::Code => (code.into(), (0, 0)),
            Order::Weight => (weight, key),
        }
    }
}

/// A begun exchange of codes: the first row has been given the code of the second row, and waits
/// for the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exchange {
    first: Key,
    second: Key,
    /// The code that the first row has given up.
    free: u32,
}

#[derive(Debug, Clone, Default)]
struct Model {
    rows: BTreeMap<Key, (u32, i64)>,
    exchange: Option<Exchange>,
}

impl Model {
    /// Returns the rows of a scan in their order. `bounds` are the least and the largest number
    /// with which a place in the order begins.
    fn rows_in(&self, order: Order, bounds: (i64, i64)) -> Vec<Row> {
        let waits = |key: Key| self.exchange.is_some_and(|exchange| exchange.first == key);
        let rows = self.rows.iter().map(|(&key, &columns)| (key, columns));
        let mut rows: Vec<Row> = rows
            .filter(|&(key, _)| order != Order::Code || !waits(key))
            .filter(|&row| (bounds.0..=bounds.1).contains(&order.place(row).0))
            .collect();
        rows.sort_by_key(|&row| order.place(row));
        rows
    }

    fn is_exchanged(&self, key: Key) -> bool {
        self.exchange.is_some_and(|it| it.first == key || it.second == key)
    }
}

/// A scan, and the rows that it has still to return.
struct Held<'t> {
    scan: Box<dyn DoubleEndedIterator<Item = Result<Row, Abort>> + 't>,
    order: Order,
    bounds: (i64, i64),
    /// The places of the rows that the scan has returned last, from each end.
    passed: (Place, Place),
    left: VecDeque<Row>,
    is_over: bool,
}

impl Held<'_> {
    fn step(&mut self, from_the_end: bool) -> Result<(), Abort> {
        let (row, wanted) = match from_the_end {
            true => (self.scan.next_back(), self.left.pop_back()),
            false => (self.scan.next(), self.left.pop_front()),
        };
        assert_eq!(row.transpose()?, wanted, "{:?} {:?}", self.order, self.passed);
        match wanted.map(|row| self.order.place(row)) {
            Some(place) if from_the_end => self.passed.1 = place,
            Some(place) => self.passed.0 = place,
            None => self.is_over = true,
        }
        Ok(())
    }

    /// Notes that the part of the transaction has been undone that has made the scan. From now on
    /// the scan shows the rows as they were before.
    fn is_left_by_undone_part(&mut self, before: &Model) {
        if !self.is_over {
            let (front, back) = self.passed;
            let is_left =
                |row: &Row| (front < self.order.place(*row)) && self.order.place(*row) < back;
            self.left =
                before.rows_in(self.order, self.bounds).into_iter().filter(is_left).collect();
        }
    }
}

struct Play<'a, P: Protocol> {
    parcels: &'a Table<Parcel, P>,
    by_code: &'a Index<Parcel, u32, Ordered, P>,
    by_weight: &'a Index<Parcel, i64, Ordered, P>,
    random: Random,
    codes: u32,
}

impl<'a, P: Protocol> Play<'a, P> {
    /// Plays some random operations.
    fn play<'t>(
        &mut self,
        tx: &'t Tx<'t, P>,
        model: &mut Model,
        scans: &mut Vec<Held<'t>>,
        level: u32,
    ) -> Result<(), Abort>
    where
        'a: 't,
    {
        let before = model.exchange;
        for _ in 0..self.random.below(if level == 0 { 60 } else { 15 }) {
            self.step(tx, model, scans, level)?;
        }
        if level == 0 || model.exchange != before {
            self.end_exchange(tx, model)?;
        }
        Ok(())
    }

    fn fresh(&mut self) -> (u32, i64) {
        self.codes += 1;
        (self.codes, self.random.below(4) as i64)
    }

    fn step<'t>(
        &mut self,
        tx: &'t Tx<'t, P>,
        model: &mut Model,
        scans: &mut Vec<Held<'t>>,
        level: u32,
    ) -> Result<(), Abort>
    where
        'a: 't,
    {
        let parcels = self.parcels;
        let key = (self.random.below(2) as u8, self.random.below(50) as u16);
        match self.random.below(14) {
            0 | 1 if !model.is_exchanged(key) => {
                let (code, weight) = self.fresh();
                parcels.put(tx, Parcel { code, weight, ..Parcel::new(key.0, key.1) })?;
                model.rows.insert(key, (code, weight));
            }
            2 if !model.is_exchanged(key) => {
                let is_there = model.rows.remove(&key).is_some();
                assert_eq!(parcels.delete_if_present(tx, key)?, is_there);
            }
            3 => {
                let weight = self.random.below(4) as i64;
                let changed =
                    parcels.modify_if_present(tx, key, Parcel::WEIGHT, |old| *old = weight)?;
                let row = model.rows.get_mut(&key);
                assert_eq!(changed.is_some(), row.is_some());
                row.into_iter().for_each(|row| row.1 = weight);
            }
            4 => drop(parcels.update_if_present(tx, key, Parcel::NOTE.add(1))?),
            5 => self.begin_exchange(tx, model)?,
            6 => self.end_exchange(tx, model)?,
            7 | 8 => scans.push(self.scan(tx, model)),
            9..13 if !scans.is_empty() => {
                let scan = self.random.below(scans.len() as u64) as usize;
                let from_the_end = self.random.below(2) == 0;
                for _ in 0..1 + self.random.below(9) {
                    scans[scan].step(from_the_end)?;
                }
            }
            13 if level < 3 => {
                let (before, made) = (model.clone(), scans.len());
                let is_undone = self.random.below(2) == 0;
                let end = tx.attempt(|_| {
                    self.play(tx, model, scans, level + 1)?;
                    if is_undone { Err(Abort::Indexed) } else { Ok(()) }
                });
                match end {
                    Err(abort) if abort.is_conflict() => return Err(abort),
                    end => assert_eq!(end, if is_undone { Err(Abort::Indexed) } else { Ok(()) }),
                }
                if is_undone {
                    *model = before;
                    scans[made..].iter_mut().for_each(|scan| scan.is_left_by_undone_part(model));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn scan<'t>(&mut self, tx: &'t Tx<'t, P>, model: &Model) -> Held<'t>
    where
        'a: 't,
    {
        let order = [Order::Key, Order::Code, Order::Weight][self.random.below(3) as usize];
        let most = match order {
            Order::Key => 1,
            Order::Code => i64::from(self.codes),
            Order::Weight => 3,
        };
        let bounds = match self.random.below(2) {
            0 => (0, most),
            _ => {
                let first = self.random.below(most as u64 + 1) as i64;
                (first, first + self.random.below((most - first) as u64 + 1) as i64)
            }
        };
        let (from, to) = bounds;
        let scan: Box<dyn DoubleEndedIterator<Item = Result<Row, Abort>> + 't> = match order {
            Order::Key => {
                Box::new(self.parcels.scan(tx, (from as u8, 0)..=(to as u8, u16::MAX), COLUMNS))
            }
            Order::Code => Box::new(self.by_code.scan(tx, from as u32..=to as u32, COLUMNS)),
            Order::Weight => Box::new(self.by_weight.scan(tx, from..=to, COLUMNS)),
        };
        let passed = ((i64::MIN, (0, 0)), (i64::MAX, (0, 0)));
        let left = model.rows_in(order, bounds).into();
        Held { scan, order, bounds, passed, left, is_over: false }
    }

    /// Gives a row the code of another one.
    fn begin_exchange(&mut self, tx: &Tx<'_, P>, model: &mut Model) -> Result<(), Abort> {
        let count = model.rows.len() as u64;
        if model.exchange.is_some() || count < 2 {
            return Ok(());
        }
        let places = (self.random.below(count) as usize, self.random.below(count) as usize);
        let row_at =
            |place| model.rows.iter().nth(place).expect("both scans have the same number of rows");
        let ((&first, &(free, _)), (&second, &(code, _))) = (row_at(places.0), row_at(places.1));
        if first == second {
            return Ok(());
        }
        self.parcels.modify(tx, first, Parcel::CODE, |old| *old = code)?;
        model.rows.get_mut(&first).expect("it is there").0 = code;
        model.exchange = Some(Exchange { first, second, free });
        Ok(())
    }

    fn end_exchange(&mut self, tx: &Tx<'_, P>, model: &mut Model) -> Result<(), Abort> {
        let Some(Exchange { second, free, .. }) = model.exchange.take() else { return Ok(()) };
        self.parcels.modify(tx, second, Parcel::CODE, |old| *old = free)?;
        model.rows.get_mut(&second).expect("it is there").0 = free;
        Ok(())
    }
}

protocol_tests!(all: scans_from_both_ends_are_of_one_moment_whichever_parts_are_undone);
fn scans_from_both_ends_are_of_one_moment_whichever_parts_are_undone<P: Protocol>() {
    for seed in 0..share(40) {
        let db = Database::<P>::builder().build().unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        let unique = IndexOptions::ordered().unique();
        let by_code = parcels.create_index("by_code", Parcel::CODE, unique).unwrap();
        let by_weight =
            parcels.create_index("by_weight", Parcel::WEIGHT, IndexOptions::ordered()).unwrap();
        let mut session: Session<P> = db.session().unwrap();
        let mut model = Model::default();
        let (parcels, by_code, by_weight) = (&parcels, &by_code, &by_weight);
        let random = Random::seeded(seed);
        let mut play = Play { parcels, by_code, by_weight, random, codes: 0 };
        run(&mut session, |tx| {
            for number in 0..40 {
                let (key, (code, weight)) = ((number as u8 % 2, number), play.fresh());
                parcels.insert(tx, Parcel { code, weight, ..Parcel::new(key.0, key.1) })?;
                model.rows.insert(key, (code, weight));
            }
            Ok(())
        });
        for _ in 0..4 {
            // The collector may take a record of a deleted row away meanwhile, which is a conflict.
            let before = (model.clone(), play.codes);
            let seed = play.random.next();
            let ended = session.run(|tx| {
                (model, play.codes) = before.clone();
                play.random = Random::seeded(seed);
                let mut scans = Vec::new();
                play.play(tx, &mut model, &mut scans, 0)?;
                for scan in &mut scans {
                    (0..200).try_for_each(|step| scan.step(step % 3 == 0))?;
                }
                Ok(())
            });
            assert_eq!(ended, Ok(()), "{}: seed {seed}", P::NAME);
            let mut rows = BTreeMap::new();
            let each = |row: &Parcel| {
                rows.insert((row.district, row.number), (row.code, row.weight));
            };
            parcels.for_each_quiescent(each).unwrap();
            assert_eq!(rows, model.rows, "{}: seed {seed}", P::NAME);
            assert_entries_match_rows(&mut session, parcels);
        }
    }
}
