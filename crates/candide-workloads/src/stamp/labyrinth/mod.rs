//! labyrinth: paths between pairs of cells of a three-dimensional grid, which must not meet.
//!
//! A thread takes a pair of cells from a queue and copies the grid, in transactions of one row
//! each, so that the copy need not be of one moment. In the copy it finds a shortest way (Lee's
//! algorithm: numbers spread from the source, and the way goes back from the destination to
//! smaller ones). One transaction then claims the cells of the way in the grid. If another path has
//! taken one of them, the thread begins again with a new copy, which counts as a retry. Another
//! transaction adds the path to a list.
//!
//! Sources and destinations are in the grid from the beginning. Cells are only ever taken, so a
//! pair that has no way in a copy has none in the grid: the check routes these pairs again at the
//! end.

mod maze;
mod objects;
mod settle;

use candide::{Database, Protocol};
use serde::Serialize;

use super::choices::Scale;
use super::kept::Kept;
use super::repeated::Repeated;
use crate::workload::{require, require_range};
use crate::{Failure, Loading, Size, Workload};
pub use maze::Path;
pub use objects::Labyrinthine;
pub use settle::{Found, Labyrinths};

/// The types of transactions.
const KINDS: [&str; 3] = ["take", "claim", "list"];

/// The bytes of a cell.
const CELL_BYTES: u64 = 60;
/// The largest number of cells in one direction.
const SIDE_MAX: u32 = 1 << 11;
/// The largest number of cells.
const CELLS_MAX: u64 = 1 << 24;

/// The knobs.
#[derive(Debug, Clone, Serialize)]
pub struct Labyrinth {
    /// The published configuration from which the other knobs come.
    pub mode: Scale,
    /// The numbers of cells in the three directions.
    pub sides: [u32; 3],
    /// The number of pairs to be connected.
    pub paths: u32,
    /// What databases with these knobs share; empty at first.
    #[serde(skip)]
    pub kept: Kept,
}

impl Labyrinth {
    /// Returns a published configuration.
    pub fn published(mode: Scale) -> Self {
        let (sides, paths) = match mode {
            Scale::Sim => ([32, 32, 3], 96),
            Scale::Real => ([512, 512, 7], 512),
        };
        Labyrinth { mode, sides, paths, kept: Kept::default() }
    }

    /// Returns the number of cells.
    fn cells(&self) -> u64 {
        self.sides.iter().map(|&side| u64::from(side)).product()
    }
}

impl Workload for Labyrinth {
    type Loaded<P: Protocol> = Repeated<P, Labyrinthine<P>>;

    const KINDS: &'static [&'static str] = &KINDS;
    const TABLES: &'static [&'static str] = &[];

    fn name(&self) -> String {
        "labyrinth".to_string()
    }

    fn keys(&self) -> u64 {
        1
    }

    fn size(&self) -> Size {
        Size::of(self.cells(), "cells", CELL_BYTES)
    }

    fn unchecked(&self) -> Option<&'static str> {
        None
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "the same pairs are connected again and again, and one thread empties the grid meanwhile",
        ]
    }

    fn validate(&self) -> Result<(), String> {
        for side in self.sides {
            require_range("the number of cells in each direction", 1..=SIDE_MAX, side)?;
        }
        let cells = self.cells();
        require_range("the number of cells", 2..=CELLS_MAX, cells)?;
        require(self.paths >= 1 && u64::from(self.paths) <= cells / 2, || {
            let most = cells / 2;
            format!(
                "the number of paths must be from 1 to {most}, half of the cells, not {}",
                self.paths
            )
        })
    }

    fn load<P: Protocol>(
        &self,
        db: &Database<P>,
        loading: &Loading<'_>,
    ) -> Result<Self::Loaded<P>, Failure> {
        let program = Labyrinths::new(self, loading.seed, loading.stopped);
        Repeated::load(db, loading, program.ok_or(Failure::Stopped)?)
    }
}
