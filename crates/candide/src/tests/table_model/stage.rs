//! The engine's side: each operation as a call.

use super::Key;
use super::goods::{Goods, Indexes};
use super::model::{is_present, scaled};
use super::words::{Blind, Change, Operation, Order, Reading, Seen, Shown, Source, WithProjection};
use crate::engine::Protocol;
use crate::schema::{Projection, Refused, Updater};
use crate::{Abort, Column, Prefix, Table, Tx, Whole};
use std::marker::PhantomData;

/// An updater that doubles the count, and refuses to go beyond 1,000.
#[derive(Debug, Clone, Copy)]
struct Double<G>(PhantomData<fn() -> G>);

impl<G: Goods> Updater<G> for Double<G> {
    type Target = Column<G, i16>;

    fn target(&self) -> Self::Target {
        G::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), Refused> {
        *count = count.wrapping_mul(2);
        if *count > 1_000 { Err(Refused) } else { Ok(()) }
    }
}

/// An updater that changes the count, and never fails.
#[derive(Debug, Clone, Copy)]
struct Scale<G>(i16, i16, PhantomData<fn() -> G>);

impl<G: Goods> Updater<G> for Scale<G> {
    type Target = Column<G, i16>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        G::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), Refused> {
        *count = scaled(*count, self.0, self.1);
        Ok(())
    }
}

type Open<'t> = Box<dyn Iterator<Item = Result<(Key, Seen), Abort>> + 't>;

/// An open scan, and the rows it has shown.
pub(super) struct Held<'t> {
    pub(super) scan: Open<'t>,
    pub(super) shown: Vec<Result<(Key, Seen), Abort>>,
}

/// The engine's side of a running transaction.
pub(super) struct Stage<'t, G: Goods, P: Protocol> {
    pub(super) table: &'t Table<G, P>,
    pub(super) indexes: Option<&'t Indexes<G, P>>,
    pub(super) tx: &'t Tx<'t, P>,
    pub(super) open: Vec<Held<'t>>,
}

struct Get<'a, 't, G: Goods, P: Protocol> {
    pub(super) stage: &'a Stage<'t, G, P>,
    pub(super) key: Key,
    pub(super) for_update: bool,
}

impl<G: Goods, P: Protocol> WithProjection<G> for Get<'_, '_, G, P> {
    type Output = Result<Option<Seen>, Abort>;

    fn with<Pr: Projection<G>>(self, projection: Pr, see: fn(Pr::Value) -> Seen) -> Self::Output {
        let Stage { table, tx, .. } = self.stage;
        let value = match self.for_update {
            true => table.get_for_update(tx, &self.key, projection),
            false => table.get(tx, &self.key, projection),
        };
        Ok(value?.map(see))
    }
}

struct GetByCode<'a, 't, G: Goods, P: Protocol> {
    pub(super) stage: &'a Stage<'t, G, P>,
    pub(super) code: u32,
}

impl<G: Goods, P: Protocol> WithProjection<G> for GetByCode<'_, '_, G, P> {
    type Output = Result<Option<Seen>, Abort>;

    fn with<Pr: Projection<G>>(self, projection: Pr, see: fn(Pr::Value) -> Seen) -> Self::Output {
        let by_code = &self.stage.indexes.expect("left out otherwise").by_code;
        let value = match by_code.read(self.stage.tx, &self.code, projection) {
            Err(Abort::NotFound) => None,
            value => Some(value?),
        };
        Ok(value.map(see))
    }
}

struct OpenScan<'a, 't, G: Goods, P: Protocol> {
    pub(super) stage: &'a Stage<'t, G, P>,
    pub(super) source: Source,
    pub(super) order: Order,
}

impl<'t, G: Goods, P: Protocol> WithProjection<G> for OpenScan<'_, 't, G, P> {
    type Output = Open<'t>;

    fn with<Pr: Projection<G> + 'static>(
        self,
        projection: Pr,
        see: fn(Pr::Value) -> Seen,
    ) -> Open<'t> {
        let OpenScan { stage: &Stage { table, indexes, tx, .. }, source, order } = self;
        let see =
            move |row: Result<(Key, Pr::Value), Abort>| row.map(|(key, value)| (key, see(value)));
        let indexes = || indexes.expect("no others are read then");
        match source {
            Source::All => Box::new(table.iter(tx, projection).map(see)),
            Source::Code(code) => Box::new(indexes().by_code.rows(tx, code, projection).map(see)),
            Source::Codes(lower, upper) => {
                let scan = G::codes(&indexes().by_code, tx, (lower, upper), order, projection);
                Box::new(scan.expect("is ordered").map(see))
            }
            Source::Colour(colour) => {
                Box::new(indexes().by_colour.rows(tx, colour, projection).map(see))
            }
            Source::Place(place) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.rows(tx, place, projection),
                    || by_place.scan_rev(tx, place..=place, projection),
                );
                Box::new(rows.map(see))
            }
            Source::Places(lower, upper) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.scan(tx, (lower, upper), projection),
                    || by_place.scan_rev(tx, (lower, upper), projection),
                );
                Box::new(rows.map(see))
            }
            Source::Shelf(shelf) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.scan(tx, Prefix((shelf,)), projection),
                    || by_place.scan_rev(tx, Prefix((shelf,)), projection),
                );
                Box::new(rows.map(see))
            }
            Source::Range(..) | Source::District(_) => Box::new(
                G::range(table, tx, &source, order, projection).expect("has ranges").map(see),
            ),
        }
    }
}

impl<'t, G: Goods, P: Protocol> Stage<'t, G, P> {
    pub(super) fn scan(&self, Reading { source, order, look }: Reading) -> Open<'t> {
        look.with(OpenScan { stage: self, source, order })
    }

    pub(super) fn update(&self, key: &Key, blind: Blind) -> Result<(), Abort> {
        let Stage { table, tx, .. } = *self;
        match blind {
            Blind::Weight(weight) => table.update(tx, key, G::WEIGHT.add(weight)),
            Blind::Guarded(weight) => table.update(tx, key, G::WEIGHT.sub(weight).at_least(0)),
            Blind::Count(count) => table.update(tx, key, G::COUNT.add(count)),
            Blind::Note(note) => table.update(tx, key, G::NOTE.max(note)),
            Blind::Three(weight, note) => {
                table.update(tx, key, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Double => table.update_with(tx, key, Double(PhantomData)),
            Blind::Scale(factor, summand) => {
                table.update_with(tx, key, Scale(factor, summand, PhantomData))
            }
        }
    }

    pub(super) fn update_if_present(&self, key: &Key, blind: Blind) -> Result<bool, Abort> {
        let Stage { table, tx, .. } = *self;
        match blind {
            Blind::Weight(weight) => table.update_if_present(tx, key, G::WEIGHT.add(weight)),
            Blind::Guarded(weight) => {
                table.update_if_present(tx, key, G::WEIGHT.sub(weight).at_least(0))
            }
            Blind::Count(count) => table.update_if_present(tx, key, G::COUNT.add(count)),
            Blind::Note(note) => table.update_if_present(tx, key, G::NOTE.max(note)),
            Blind::Three(weight, note) => {
                table.update_if_present(tx, key, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Double | Blind::Scale(..) => is_present(self.update(key, blind)),
        }
    }

    pub(super) fn upsert(&self, row: G, blind: Blind) -> Result<bool, Abort> {
        let Stage { table, tx, indexes, .. } = *self;
        match blind {
            Blind::Weight(weight) if indexes.is_none() => {
                table.upsert(tx, row, G::WEIGHT.add(weight))
            }
            Blind::Note(note) => tx.attempt(|tx| table.upsert(tx, row, G::NOTE.max(note))),
            Blind::Three(weight, note) if indexes.is_none() => {
                table.upsert(tx, row, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Guarded(weight) if indexes.is_none() => {
                table.upsert(tx, row, G::WEIGHT.sub(weight).at_least(0))
            }
            Blind::Count(count) if indexes.is_none() => table.upsert(tx, row, G::COUNT.add(count)),
            // The insertion alone is a part, since a part ends in the failure of its updates.
            _ => {
                let inserted = tx.attempt(|tx| table.insert_if_absent(tx, row))?;
                if !inserted {
                    self.update(&row.key(), blind)?;
                }
                Ok(inserted)
            }
        }
    }

    pub(super) fn modify(row: &crate::Row<'_, G, P>, change: Change) -> Result<(), Abort> {
        match change {
            Change::Weight(more) => row.modify(G::WEIGHT, |weight| *weight += more),
            Change::Code(new) => row.modify(G::CODE, |code| *code = new),
            Change::Place(shelf, owner) => {
                row.modify((G::SHELF, G::OWNER), |place| *place = (shelf, owner))
            }
            Change::Colour(new) => row.modify(G::COLOUR, |colour| *colour = new),
            Change::CodeAndNote(code, note) => {
                row.modify((G::CODE, G::NOTE), |both| *both = (code, note))
            }
            Change::Whole(_) => row.modify(Whole, |row| *row = change.of(&(*row).into()).into()),
        }
    }

    pub(super) fn modify_if_present(&self, key: &Key, change: Change) -> Result<bool, Abort> {
        let Stage { table, tx, .. } = *self;
        let done = match change {
            Change::Weight(more) => {
                table.modify_if_present(tx, key, G::WEIGHT, |weight| *weight += more)
            }
            Change::Code(new) => table.modify_if_present(tx, key, G::CODE, |code| *code = new),
            Change::Place(shelf, owner) => {
                table.modify_if_present(tx, key, (G::SHELF, G::OWNER), |place| {
                    *place = (shelf, owner)
                })
            }
            Change::Colour(new) => {
                table.modify_if_present(tx, key, G::COLOUR, |colour| *colour = new)
            }
            Change::CodeAndNote(code, note) => {
                table.modify_if_present(tx, key, (G::CODE, G::NOTE), |both| *both = (code, note))
            }
            Change::Whole(_) => table
                .modify_if_present(tx, key, Whole, |row| *row = change.of(&(*row).into()).into()),
        };
        done.map(|done| done.is_some())
    }

    pub(super) fn perform(&mut self, operation: &Operation) -> Shown {
        let Stage { table, tx, .. } = *self;
        match *operation {
            Operation::Get(key, look) => {
                Shown::Row(look.with(Get { stage: self, key, for_update: false }))
            }
            Operation::GetForUpdate(key, look) => {
                Shown::Row(look.with(Get { stage: self, key, for_update: true }))
            }
            // An operation that may meet a unique key of another row runs as a part, so that it is
            // refused at once.
            Operation::Insert(row) => Shown::Done(tx.attempt(|tx| table.insert(tx, row.into()))),
            Operation::InsertIfAbsent(row) => {
                Shown::Whether(tx.attempt(|tx| table.insert_if_absent(tx, row.into())))
            }
            Operation::InsertMany(ref rows) => Shown::Done(match self.indexes {
                None => table.insert_many(tx, rows.iter().map(|&row| G::from(row))),
                Some(_) => rows.chunks(1).try_for_each(|row| {
                    tx.attempt(|tx| table.insert_many(tx, row.iter().map(|&row| G::from(row))))
                }),
            }),
            Operation::Put(row) => Shown::Done(tx.attempt(|tx| table.put(tx, row.into()))),
            Operation::Upsert(row, blind) => Shown::Whether(self.upsert(row.into(), blind)),
            Operation::Update(key, blind) => Shown::Done(self.update(&key, blind)),
            Operation::UpdateIfPresent(key, blind) => {
                Shown::Whether(self.update_if_present(&key, blind))
            }
            Operation::UpdateCode(key, code) => {
                Shown::Done(G::set_code(table, tx, &key, code).expect("left out otherwise"))
            }
            Operation::Modify(key, change) => {
                let found = table.find(tx, &key);
                Shown::Done(found.and_then(|row| tx.attempt(|_| Self::modify(&row, change))))
            }
            Operation::ModifyIfPresent(key, change) => {
                Shown::Whether(tx.attempt(|_| self.modify_if_present(&key, change)))
            }
            Operation::ModifyByCode(code, change) => {
                let by_code = &self.indexes.expect("left out otherwise").by_code;
                let found = by_code.find(tx, &code).and_then(|row| row.ok_or(Abort::NotFound));
                Shown::Done(found.and_then(|row| tx.attempt(|_| Self::modify(&row, change))))
            }
            Operation::GetByCode(code, look) => {
                Shown::Row(look.with(GetByCode { stage: self, code }))
            }
            Operation::Delete(key) => Shown::Done(table.delete(tx, &key)),
            Operation::DeleteIfPresent(key) => Shown::Whether(table.delete_if_present(tx, &key)),
            Operation::Clear => Shown::Number(table.clear(tx)),
            Operation::Take(reading, at_most) => {
                Shown::Rows(self.scan(reading).take(at_most).collect())
            }
            Operation::Open(reading) => {
                let scan = self.scan(reading);
                self.open.push(Held { scan, shown: Vec::new() });
                Shown::Done(Ok(()))
            }
            Operation::Step(number, rows) => {
                let count = self.open.len().max(1);
                if let Some(Held { scan, shown }) = self.open.get_mut(number % count) {
                    shown.extend(scan.take(rows));
                }
                Shown::Done(Ok(()))
            }
        }
    }
}
