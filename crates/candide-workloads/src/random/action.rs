//! The operations of a transaction. The operations are drawn before the transaction begins, so that
//! every attempt does the same.

use std::ops::Bound;
use std::thread;

use candide::{Abort, Later, Protocol, Tx, Whole};
use fastrand::Rng;

use super::knobs::Random;
use super::tables::{Item, Piece, Tables};

/// A transaction.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) actions: Vec<Action>,
    /// Whether the transaction ends at the first missing key or duplicate. Otherwise it continues.
    pub(super) stops: bool,
    pub(super) turn: Turn,
}

/// The planned end of a transaction, unless an error ends it earlier.
#[derive(Debug)]
pub(super) enum Turn {
    Commit,
    Fail,
    Panic,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Action {
    what: What,
    key: u32,
    other: u32,
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
enum What {
    ReadCount,
    ReadNote,
    ReadAll,
    ReadMany,
    ReadForUpdate,
    Forward,
    Backward,
    Nothing,
    Everything,
    OfKind,
    OfKindsBackward,
    ByTag,
    Insert,
    InsertMany,
    Put,
    Upsert,
    Delete,
    DeleteAndInsert,
    Add,
    TakeGuarded,
    SetNote,
    Modify,
    Retag,
    DeferAdd,
    DeferMove,
    DeferInsert,
    DeferAt,
    DeferInsertAt,
    DeferDeleteAt,
    PieceRead,
    PieceAdd,
    PieceModify,
    PieceInsert,
    PiecePut,
    PieceDelete,
    PieceEvery,
    Yield,
}

const ALL: [What; 37] = [
    What::ReadCount,
    What::ReadNote,
    What::ReadAll,
    What::ReadMany,
    What::ReadForUpdate,
    What::Forward,
    What::Backward,
    What::Nothing,
    What::Everything,
    What::OfKind,
    What::OfKindsBackward,
    What::ByTag,
    What::Insert,
    What::InsertMany,
    What::Put,
    What::Upsert,
    What::Delete,
    What::DeleteAndInsert,
    What::Add,
    What::TakeGuarded,
    What::SetNote,
    What::Modify,
    What::Retag,
    What::DeferAdd,
    What::DeferMove,
    What::DeferInsert,
    What::DeferAt,
    What::DeferInsertAt,
    What::DeferDeleteAt,
    What::PieceRead,
    What::PieceAdd,
    What::PieceModify,
    What::PieceInsert,
    What::PiecePut,
    What::PieceDelete,
    What::PieceEvery,
    What::Yield,
];

impl Script {
    pub(super) fn draw(knobs: &Random, rng: &mut Rng) -> Script {
        let count = rng.usize(1..=knobs.operations);
        let actions = (0..count).map(|_| Action::draw(knobs, rng)).collect();
        let turn = match rng.u8(0..20) {
            0 => Turn::Panic,
            1 | 2 => Turn::Fail,
            _ => Turn::Commit,
        };
        Script { actions, stops: rng.u8(0..4) == 0, turn }
    }
}

impl Action {
    fn draw(knobs: &Random, rng: &mut Rng) -> Action {
        // Operations on a whole table conflict with all others, so three in four of them are
        // replaced by a read.
        let what = match ALL[rng.usize(..ALL.len())] {
            What::Everything | What::PieceEvery if rng.u8(0..4) > 0 => What::ReadCount,
            what => what,
        };
        // Half of the draws are from the first eighth of the keys.
        let hot = (knobs.keys / 8).max(1);
        let key = if rng.bool() { rng.u32(0..hot) } else { rng.u32(0..knobs.keys) };
        Action { what, key, other: rng.u32(0..knobs.keys * 2), limit: rng.usize(1..5) }
    }

    /// Returns the range between the keys `key` and `other`, cut to about eight keys.
    fn range(&self) -> (Bound<u32>, Bound<u32>) {
        let (from, to) = (self.key.min(self.other), self.key.max(self.other).min(self.key + 8));
        let to =
            if self.limit.is_multiple_of(2) { Bound::Excluded(to) } else { Bound::Included(to) };
        (Bound::Included(from), to)
    }
}

impl<P: Protocol> Tables<P> {
    /// Runs one operation. A missing key or a duplicate ends the transaction only if `stops` is
    /// set; otherwise the operation is a part of the transaction that is undone.
    pub(super) fn carry_out(
        &self,
        tx: &Tx<'_, P>,
        action: &Action,
        stops: bool,
    ) -> Result<(), Abort> {
        if stops {
            return self.attempt(tx, action);
        }
        match tx.attempt(|tx| self.attempt(tx, action)) {
            Err(Abort::NotFound | Abort::Duplicate | Abort::NotUnique | Abort::NotYet) => Ok(()),
            done => done,
        }
    }

    /// Changes the count of an item, and returns the key of a piece near `other` that follows from
    /// it, or none.
    fn defer_id(&self, tx: &Tx<'_, P>, key: u32, other: u32) -> Result<Later<Option<u32>>, Abort> {
        self.items.defer(tx, key, Item::COUNT, (), move |count, ()| {
            *count = (*count + 1) % 8;
            (*count > 0).then(|| other / 2 + *count as u32 % 2)
        })
    }

    fn attempt(&self, tx: &Tx<'_, P>, action: &Action) -> Result<(), Abort> {
        let Tables { items, pieces } = self;
        let &Action { what, key, other, limit } = action;
        match what {
            What::ReadCount => items.get(tx, &key, Item::COUNT).map(drop),
            What::ReadNote => items.read(tx, &key, Item::NOTE).map(drop),
            What::ReadAll => items.get(tx, &key, Whole).map(drop),
            What::ReadMany => {
                let rows = items.find_many(tx, &[key, other, key + 1])?;
                rows.iter().try_for_each(|row| row.get((Item::COUNT, Item::KIND)).map(drop))
            }
            What::ReadForUpdate => items.get_for_update(tx, &key, Item::COUNT).map(drop),
            What::Forward => items
                .scan(tx, action.range(), Item::COUNT)
                .take(limit)
                .try_for_each(|row| row.map(drop)),
            What::Backward => items
                .scan_rev(tx, action.range(), Item::NOTE)
                .take(limit)
                .try_for_each(|row| row.map(drop)),
            What::Nothing => items.scan(tx, key..key, Item::COUNT).for_each(drop),
            What::Everything => items.iter(tx, ()).for_each(drop),
            What::OfKind => {
                let by_kind = items.index(Item::BY_KIND);
                by_kind
                    .rows(tx, &((other % 4) as u8), Item::COUNT)
                    .take(limit)
                    .try_for_each(|row| row.map(drop))
            }
            What::OfKindsBackward => {
                let by_kind = items.index(Item::BY_KIND);
                by_kind
                    .scan_rev(tx, 1..3u8, Item::TAG)
                    .take(limit)
                    .try_for_each(|row| row.map(drop))
            }
            What::ByTag => items.index(Item::BY_TAG).get(tx, &other, Item::NOTE).map(drop),
            What::Insert => items.insert(tx, Item::new(key, other)),
            What::InsertMany => {
                items.insert_many(tx, [Item::new(key, other), Item::new(key + 1, other + 1)])
            }
            What::Put => items.put(tx, Item::new(key, other)),
            What::Upsert => items.upsert(tx, Item::new(key, other), Item::COUNT.add(1)).map(drop),
            What::Delete => items.delete(tx, &key),
            What::DeleteAndInsert => {
                items.delete(tx, &key)?;
                items.insert(tx, Item::new(key, other))
            }
            What::Add => items.update(tx, &key, Item::COUNT.add(1)),
            What::TakeGuarded => items.update(tx, &key, Item::COUNT.sub(2).at_least(0)),
            What::SetNote => items.update(tx, &key, Item::NOTE.set(u64::from(other))),
            What::Modify => items.modify(tx, &key, Item::COUNT, |count| *count += 1),
            What::Retag => items.modify(tx, &key, Item::TAG, |tag| *tag = other),
            What::DeferAdd => {
                items.defer(tx, key, Item::COUNT, (), |count, ()| *count += 1).map(drop)
            }
            // From an item to a piece, and on to the item's other group.
            What::DeferMove => {
                let taken = items.defer(tx, key, Item::COUNT, (), |count, ()| {
                    let taken = *count / 2;
                    *count -= taken;
                    taken
                })?;
                let give = |count: &mut i64, taken: &i64| {
                    *count += taken;
                    count.unsigned_abs()
                };
                let given = pieces.defer(tx, other, Piece::COUNT, &taken, give)?;
                items.defer(tx, key, Item::NOTE, &given, |note, given| *note = *given).map(drop)
            }
            What::DeferInsert => {
                let count = items.defer(tx, key, Item::COUNT, (), |count, ()| *count)?;
                let piece = count.map(move |&count| Piece { id: other, count, note: 0 });
                pieces.defer_insert(tx, other, piece)
            }
            What::DeferAt => {
                let id = self.defer_id(tx, key, other)?;
                pieces.defer_at(tx, &id, Piece::COUNT, (), |count, ()| *count += 1).map(drop)
            }
            What::DeferInsertAt => {
                let id = self.defer_id(tx, key, other)?;
                let row = id.map(|id| Piece { id: id.unwrap_or_default(), count: 1, note: 1 });
                pieces.defer_insert_at(tx, &id, row)
            }
            What::DeferDeleteAt => {
                let id = self.defer_id(tx, key, other)?;
                pieces.defer_delete_at(tx, &id)
            }
            What::PieceRead => pieces.get(tx, &key, (Piece::COUNT, Piece::NOTE)).map(drop),
            What::PieceAdd => pieces.update(tx, &key, (Piece::COUNT.add(1), Piece::NOTE.set(1))),
            What::PieceModify => pieces.modify(tx, &key, Piece::NOTE, |note| *note += 1),
            What::PieceInsert => {
                pieces.insert_if_absent(tx, Piece { id: key, count: 5, note: 0 }).map(drop)
            }
            What::PiecePut => pieces.put(tx, Piece { id: key, count: 1, note: 1 }),
            What::PieceDelete => pieces.delete_if_present(tx, &key).map(drop),
            What::PieceEvery => pieces.iter(tx, Piece::COUNT).for_each(drop),
            What::Yield => {
                thread::yield_now();
                Ok(())
            }
        }
    }
}
