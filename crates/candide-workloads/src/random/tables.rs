//! The two tables: one with an ordered index and one with a hash index.

use candide::policy::Policy;
use candide::{Abort, Database, Error, Protocol, Record, Table, Tx};

/// A row of the ordered table: three groups and two indexes.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
pub struct Item {
    /// The item's key.
    #[key]
    pub id: u32,
    /// A value that several items have in common.
    #[index]
    pub kind: u8,
    /// A value that no other item has.
    #[unique]
    pub tag: u32,
    /// A number that operations increment and decrement.
    #[group(count)]
    pub count: i64,
    /// A value that operations replace.
    #[group(note)]
    pub note: u64,
}

/// A row of the hash table.
#[derive(Record, Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The piece's key.
    #[key]
    pub id: u32,
    /// A number that operations increment and decrement.
    pub count: i64,
    /// A value that operations replace.
    #[group(note)]
    pub note: u64,
}

/// The tables of the random workload.
pub struct Tables<P: Protocol> {
    /// The ordered table.
    pub items: Table<Item, P>,
    /// The hash table.
    pub pieces: Table<Piece, P>,
}

impl<P: Protocol> Clone for Tables<P> {
    fn clone(&self) -> Self {
        Tables { items: self.items.clone(), pieces: self.pieces.clone() }
    }
}

impl Item {
    /// Returns an item whose columns other than the key follow from `tag`.
    pub(super) fn new(id: u32, tag: u32) -> Item {
        Item { id, kind: (tag % 4) as u8, tag, count: 5, note: u64::from(tag) }
    }
}

impl<P: Protocol> Tables<P> {
    pub(super) fn create(db: &Database<P>) -> Result<Self, Error> {
        let tables = Tables { items: db.table("items")?, pieces: db.table("pieces")? };
        if tables.items.policy() == Policy::Pipelined {
            // Keys of pieces follow from items.
            tables.items.set_rank(1)?;
        }
        Ok(tables)
    }

    /// Inserts the initial rows of `key`, in both tables; there are none if `key` is odd.
    pub(super) fn load(&self, tx: &Tx<'_, P>, key: u32) -> Result<(), Abort> {
        if key.is_multiple_of(2) {
            self.items.insert(tx, Item::new(key, key))?;
            self.pieces.insert(tx, Piece { id: key, count: 5, note: 0 })?;
        }
        Ok(())
    }
}
