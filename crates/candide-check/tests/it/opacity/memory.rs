//! What transactions share: the epoch, three cells, a node of the index, the reader's slot.

use super::scene::{Key, Scene};

pub type Epoch = u8;

/// The number of a cell.
pub type At = u8;

/// The cells 0 and 1 are those of rows that are always there; this one's row may be missing.
pub const KEY: At = 2;

/// The name of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Id(pub u8);

impl Id {
    /// The one that wrote what was there at first.
    pub const FIRST: Id = Id(0);
    /// The reader, where it writes; writers are numbered from one.
    pub const READER: Id = Id(4);
}

/// A set of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ids(u8);

impl Ids {
    pub fn add(&mut self, id: Id) {
        self.0 |= 1 << id.0;
    }

    pub fn has(self, id: Id) -> bool {
        self.0 >> id.0 & 1 == 1
    }
}

impl FromIterator<Id> for Ids {
    fn from_iter<I: IntoIterator<Item = Id>>(ids: I) -> Self {
        let mut set = Ids::default();
        ids.into_iter().for_each(|id| set.add(id));
        set
    }
}

/// A version of a cell. No transaction writes a cell twice, so its writer says which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version {
    pub by: Id,
    pub epoch: Epoch,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lock {
    #[default]
    Free,
    /// LOCK alone: held by a read for update.
    Held(Id),
    /// LOCK and INSTALL: its owner is committing.
    Installing(Id),
    /// The record is buried.
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cell {
    pub version: Version,
    pub lock: Lock,
}

/// The node of the index through which the record of `KEY` is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Rises when a record is linked; burial leaves it.
    pub version: u8,
    pub linked: bool,
}

impl Node {
    pub fn link(&mut self) {
        self.linked = true;
        self.version += 1;
    }
}

/// An entry of a look-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// The version of a cell.
    Cell(At, Version),
    /// Whether a row is there, as the version of its cell says.
    Row(At, Version),
    /// The version of the node, which led to no record.
    Node(u8),
}

impl Default for Look {
    fn default() -> Self {
        Look::Node(0)
    }
}

impl Look {
    /// Returns the epoch of what was looked at; a missing key has none.
    pub fn epoch(self) -> Option<Epoch> {
        match self {
            Look::Cell(_, version) | Look::Row(_, version) => Some(version.epoch),
            Look::Node(_) => None,
        }
    }
}

/// All that steps access, and the pass of the epoch that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    pub epoch: Epoch,
    /// How often the epoch may still pass by itself.
    pub ticks: u8,
    pub cells: [Cell; 3],
    pub node: Node,
    /// The reader's slot.
    pub pin: Option<Epoch>,
    /// The epoch of a pass that has not looked at the slot yet.
    pub pass: Option<Epoch>,
    /// Records deleted in an epoch below it may be buried.
    pub horizon: Epoch,
}

impl Memory {
    pub fn new(scene: &Scene) -> Self {
        let node = Node { version: 0, linked: scene.key != Key::Missing };
        Memory { epoch: scene.epoch, ticks: scene.ticks, node, ..Memory::default() }
    }

    pub fn cell(&self, at: At) -> Cell {
        self.cells[usize::from(at)]
    }

    pub fn cell_mut(&mut self, at: At) -> &mut Cell {
        &mut self.cells[usize::from(at)]
    }

    /// Returns the first cell that a transaction has locked in either way.
    pub fn locked_by(&self, id: Id) -> Option<At> {
        let is_own = |cell: &Cell| cell.lock == Lock::Held(id) || cell.lock == Lock::Installing(id);
        self.cells.iter().position(is_own).map(|at| at as At)
    }

    /// Returns whether a look finds what was found before, and a lock that `passes` lets pass. Of a
    /// row that was peeked at, another version in which it is there as before must be one that
    /// `accepts` takes.
    pub fn agrees(
        &self,
        scene: &Scene,
        look: Look,
        passes: impl Fn(At, Lock) -> bool,
        accepts: impl Fn(Cell) -> bool,
    ) -> bool {
        match look {
            Look::Node(version) => self.node.version == version,
            Look::Cell(at, version) => {
                let cell = self.cell(at);
                cell.version == version && passes(at, cell.lock)
            }
            Look::Row(at, version) => {
                let cell = self.cell(at);
                let as_before = scene.has_row(at, cell.version.by) == scene.has_row(at, version.by);
                (cell.version == version || as_before && accepts(cell)) && passes(at, cell.lock)
            }
        }
    }
}
