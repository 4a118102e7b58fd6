//! The objects, and the transactions on them.

use candide::objects::{Boxed, TArray, TQueue, TVec};
use candide::{Abort, Database, Protocol, Session};

use super::maze::Path;
use super::settle::{Found, Labyrinths};
use crate::Failure;
use crate::load::run_unmeasured;
use crate::stamp::repeated::{Objects, Turn, in_batches};
use crate::workload::run_counted;

/// The grid, the pairs that wait, and the paths.
pub struct Labyrinthine<P: Protocol> {
    /// What each cell holds: 0 if it is free, and otherwise one more than the number of its pair.
    pub grid: TArray<u32, P>,
    /// The numbers of pairs to be connected.
    pub pairs: TQueue<u32, P>,
    /// The paths that have been claimed.
    pub paths: TVec<Boxed<Path>, P>,
}

impl<P: Protocol> Clone for Labyrinthine<P> {
    fn clone(&self) -> Self {
        let Labyrinthine { grid, pairs, paths } = self;
        Labyrinthine { grid: grid.clone(), pairs: pairs.clone(), paths: paths.clone() }
    }
}

/// What a thread has in hand.
#[derive(Debug, Default)]
pub enum Hand {
    /// Nothing.
    #[default]
    Empty,
    /// The number of a pair.
    Pair(u32),
    /// A path whose cells are claimed.
    Claimed(Path),
}

impl<P: Protocol> Labyrinthine<P> {
    /// Appends the grid to `copy`, in a transaction for each row.
    fn copy(&self, session: &mut Session<P>, row: usize, copy: &mut Vec<u32>) -> Result<(), Abort> {
        copy.clear();
        while copy.len() < self.grid.len() {
            let first = copy.len();
            run_unmeasured(session, &mut |tx| {
                copy.truncate(first);
                (first..first + row).try_for_each(|cell| {
                    copy.push(self.grid.get(tx, cell)?);
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    /// Finds a way in a copy of the grid and claims it, until no other path has taken its cells.
    /// Returns the way, if there is one, and the number of attempts before the last one.
    fn connect(
        &self,
        session: &mut Session<P>,
        program: &Labyrinths,
        number: u32,
    ) -> Result<(Option<Vec<u32>>, u64), Abort> {
        let (maze, mut copy, mut retries) = (program.maze(), Vec::new(), 0);
        loop {
            self.copy(session, maze.row(), &mut copy)?;
            let way = maze.route(&mut copy, maze.pairs[number as usize]);
            let Some(way) = way else { return Ok((None, retries)) };
            let inner = &way[1..way.len() - 1];
            let (is_free, repeated) = run_counted(session, |tx| {
                for &cell in inner {
                    if self.grid.get(tx, cell as usize)? != 0 {
                        return Ok(false);
                    }
                }
                let mut all = inner.iter();
                all.try_for_each(|&cell| self.grid.set(tx, cell as usize, number + 1))?;
                Ok::<_, Abort>(true)
            });
            retries += repeated;
            if is_free? {
                return Ok((Some(way), retries));
            }
            retries += 1;
        }
    }
}

impl<P: Protocol> Objects<P> for Labyrinthine<P> {
    type Program = Labyrinths;
    type Hand = Hand;

    fn create(db: &Database<P>, program: &Labyrinths) -> Result<Self, Failure> {
        let ends = &program.maze().ends;
        let grid = TArray::new(db, ends.len(), |cell| ends[cell])?;
        Ok(Labyrinthine { grid, pairs: TQueue::new(db)?, paths: TVec::new(db)? })
    }

    fn fill(&self, session: &mut Session<P>, program: &Labyrinths) -> Result<(), Abort> {
        let numbers: Vec<u32> = (0..).take(program.maze().pairs.len()).collect();
        in_batches(session, &numbers, &mut |tx, &number| self.pairs.push(tx, number))
    }

    fn clear(
        &self,
        session: &mut Session<P>,
        program: &Labyrinths,
        found: &Found,
    ) -> Result<(), Abort> {
        let ends = &program.maze().ends;
        let changed = found.grid.iter().zip(ends).enumerate().filter(|(_, (at, end))| at != end);
        let changed: Vec<usize> = changed.map(|(cell, _)| cell).collect();
        in_batches(session, &changed, &mut |tx, &cell| self.grid.set(tx, cell, ends[cell]))?;
        run_unmeasured(session, &mut |tx| {
            self.pairs.clear(tx)?;
            self.paths.clear(tx)
        })
    }

    fn read(&self, session: &mut Session<P>, program: &Labyrinths) -> Result<Found, Abort> {
        let mut found = Found::default();
        self.copy(session, program.maze().row(), &mut found.grid)?;
        run_unmeasured(session, &mut |tx| {
            found.waiting = self.pairs.iter(tx)?.collect::<Result<_, _>>()?;
            found.paths =
                self.paths.iter(tx)?.map(|path| path.cloned()).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        Ok(found)
    }

    fn step(
        &self,
        turn: Turn<'_, P, Labyrinths>,
        hand: &mut Hand,
    ) -> Result<Option<(usize, u64)>, Abort> {
        let Turn { session, program, counts, .. } = turn;
        let (kind, retries) = match std::mem::take(hand) {
            Hand::Empty => {
                let (taken, retries) = run_counted(session, |tx| self.pairs.pop(tx));
                let Some(number) = taken? else { return Ok(None) };
                *hand = Hand::Pair(number);
                (0, retries)
            }
            Hand::Pair(number) => {
                let (way, retries) = self.connect(session, program, number)?;
                counts[usize::from(way.is_none())] += 1;
                *hand = way.map_or(Hand::Empty, |way| Hand::Claimed((number, way)));
                (1, retries)
            }
            Hand::Claimed(path) => {
                let (added, retries) = run_counted(session, |tx| self.paths.push(tx, path.clone()));
                added?;
                (2, retries)
            }
        };
        Ok(Some((kind, retries)))
    }

    fn is_busy(hand: &Hand) -> bool {
        !matches!(hand, Hand::Empty)
    }
}
