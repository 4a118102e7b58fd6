//! The grid, and how a way is found in a copy of it.

use std::collections::VecDeque;

use super::Labyrinth;
use crate::replay::Stopped;
use crate::rng;

/// The random stream from which pairs are drawn.
const STREAM: u64 = 1 << 32;

/// The number of a free cell in a copy that is not reached yet.
const FREE: u32 = u32::MAX - 1;
/// The number of a cell in a copy that is taken.
const TAKEN: u32 = u32::MAX;

/// What a step to a neighbour costs in each direction.
const COSTS: [u32; 3] = [1, 1, 2];
/// What it costs to go on in another direction.
const BEND: u32 = 1;

/// A path, with the number of its pair.
pub type Path = (u32, Vec<u32>);

/// The grid's shape, and the pairs of cells to be connected.
#[derive(Debug)]
pub struct Maze {
    sides: [u32; 3],
    /// The sources and destinations, those first that are near to each other.
    pub(super) pairs: Vec<[u32; 2]>,
    /// What the grid holds at first: for each cell 0 if it is free, and otherwise one more than the
    /// number of the pair of which it is an end.
    pub(super) ends: Vec<u32>,
}

impl Maze {
    /// Draws pairs of which no two have a cell in common.
    pub(super) fn draw(knobs: &Labyrinth, seed: u64) -> Maze {
        let sides = knobs.sides;
        let mut cells: Vec<u32> = (0..sides.iter().product()).collect();
        let mut ends = vec![0; cells.len()];
        rng::stream(seed, STREAM).shuffle(&mut cells);
        let pairs = cells.chunks_exact(2).take(knobs.paths as usize);
        let mut pairs: Vec<[u32; 2]> = pairs.map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_by_key(|&pair| distance(sides, pair));
        for (number, pair) in (1..).zip(&pairs) {
            pair.iter().for_each(|&cell| ends[cell as usize] = number);
        }
        Maze { sides, pairs, ends }
    }

    /// Returns the number of cells in a row.
    pub(super) fn row(&self) -> usize {
        self.sides[0] as usize
    }

    /// Returns the neighbours of a cell, each with the direction in which it is.
    pub(super) fn neighbours(&self, cell: u32) -> impl Iterator<Item = (u32, usize)> {
        let mut strides = [1, self.sides[0], self.sides[0] * self.sides[1]].into_iter();
        let along = self.sides.map(|side| {
            let stride = strides.next().expect("three directions");
            (stride, cell / stride % side, side)
        });
        let directions = along.into_iter().enumerate();
        directions.flat_map(move |(direction, (stride, at, side))| {
            let before = (at > 0).then(|| (cell - stride, direction * 2));
            let after = (at + 1 < side).then(|| (cell + stride, direction * 2 + 1));
            before.into_iter().chain(after)
        })
    }

    /// Returns a way between the ends of a pair, with both ends, if there is one in `copy`, which
    /// has the numbers of the grid and is used up.
    pub(super) fn route(
        &self,
        copy: &mut [u32],
        [source, destination]: [u32; 2],
    ) -> Option<Vec<u32>> {
        copy.iter_mut().for_each(|cell| *cell = if *cell == 0 { FREE } else { TAKEN });
        copy[destination as usize] = FREE;
        copy[source as usize] = 0;
        let mut reached = VecDeque::from([source]);
        loop {
            let cell = reached.pop_front()?;
            if cell == destination {
                break;
            }
            let at = copy[cell as usize];
            for (next, direction) in self.neighbours(cell) {
                let (old, new) = (copy[next as usize], at + COSTS[direction / 2]);
                if old != TAKEN && new < old {
                    copy[next as usize] = new;
                    reached.push_back(next);
                }
            }
        }
        Some(self.way_back(copy, destination))
    }

    /// Goes from the destination to ever smaller numbers. Returns the cells in the other order.
    fn way_back(&self, copy: &[u32], destination: u32) -> Vec<u32> {
        let (mut way, mut cell, mut last) = (vec![destination], destination, None);
        while copy[cell as usize] > 0 {
            let smaller = |&(next, _): &(u32, usize)| copy[next as usize] < copy[cell as usize];
            let cost = |&(next, direction): &(u32, usize)| {
                copy[next as usize]
                    + if last.is_none_or(|last| last == direction) { 0 } else { BEND }
            };
            let next = self.neighbours(cell).filter(smaller).min_by_key(cost);
            let (next, direction) = next.expect("a number comes from a smaller one beside it");
            way.push(next);
            (cell, last) = (next, Some(direction));
        }
        way.reverse();
        way
    }

    /// Connects all pairs on one thread, without transactions. Returns the paths with the numbers
    /// of their pairs; `None` if it was told to stop.
    pub(super) fn sequential(&self, stopped: Stopped<'_>) -> Option<Vec<Path>> {
        let (mut grid, mut copy, mut paths) = (self.ends.clone(), Vec::new(), Vec::new());
        for (number, &pair) in (0..).zip(&self.pairs) {
            copy.clone_from(&grid);
            if let Some(way) = self.route(&mut copy, pair) {
                way.iter().for_each(|&cell| grid[cell as usize] = number + 1);
                paths.push((number, way));
            }
            if stopped() {
                return None;
            }
        }
        Some(paths)
    }
}

/// Returns the square of the distance between two cells.
fn distance(sides: [u32; 3], pair: [u32; 2]) -> u64 {
    let place = |cell: u32| {
        [cell % sides[0], cell / sides[0] % sides[1], cell / sides[0] / sides[1]].map(u64::from)
    };
    let [source, destination] = pair.map(place);
    source.iter().zip(destination).map(|(&from, to)| from.abs_diff(to).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::choices::Scale;

    #[test]
    fn ways_go_around_what_is_taken_and_bend_little() {
        let knobs = Labyrinth { sides: [4, 3, 1], paths: 1, ..Labyrinth::published(Scale::Sim) };
        let maze = Maze { pairs: vec![[0, 3]], ..Maze::draw(&knobs, 5) };
        let mut free = vec![0; 12];
        assert_eq!(maze.route(&mut free.clone(), [0, 3]), Some(vec![0, 1, 2, 3]));
        free[1] = 9;
        assert_eq!(maze.route(&mut free.clone(), [0, 3]), Some(vec![0, 4, 5, 6, 2, 3]));
        free[5] = 9;
        free[9] = 9;
        assert_eq!(maze.route(&mut free.clone(), [0, 3]), None);
        assert_eq!(maze.route(&mut free.clone(), [0, 8]), Some(vec![0, 4, 8]));
    }

    #[test]
    fn pairs_follow_from_the_seed_and_near_ones_come_first() {
        let knobs = Labyrinth::published(Scale::Sim);
        let [maze, same, other] = [5, 5, 6].map(|seed| Maze::draw(&knobs, seed));
        assert!(maze.pairs == same.pairs && maze.pairs != other.pairs);
        assert_eq!(maze.ends.iter().filter(|&&cell| cell > 0).count(), 2 * 96);
        assert!(maze.pairs.is_sorted_by_key(|&pair| distance(knobs.sides, pair)));
        let paths = maze.sequential(&|| false).expect("not stopped");
        assert!(paths.len() > 48, "most pairs have a way");
        assert_eq!(maze.sequential(&|| true), None);
    }
}
