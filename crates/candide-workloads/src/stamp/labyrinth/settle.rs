//! The program but for its objects, and the check.

use std::sync::Arc;
use std::time::Duration;

use super::Labyrinth;
use super::maze::{Maze, Path};
use crate::Consistency;
use crate::replay::Stopped;
use crate::stamp::repeated::Program;
use crate::stamp::timed;

/// The maze, and what the sequential program has found.
struct Prepared {
    maze: Maze,
    paths: Vec<Path>,
    took: Duration,
}

/// The program but for its objects.
pub struct Labyrinths(Arc<Prepared>);

/// The contents of the objects.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The grid.
    pub grid: Vec<u32>,
    /// The numbers of the pairs that no thread has taken.
    pub waiting: Vec<u32>,
    /// The paths.
    pub paths: Vec<Path>,
}

impl Labyrinths {
    /// Draws the pairs and runs the sequential program. Returns `None` if `stopped` returns `true`
    /// meanwhile.
    pub(super) fn new(knobs: &Labyrinth, seed: u64, stopped: Stopped<'_>) -> Option<Labyrinths> {
        let prepare = || {
            let maze = Maze::draw(knobs, seed);
            let (paths, took) = timed(|| maze.sequential(stopped)).ok_or(())?;
            Ok::<_, ()>(Prepared { maze, paths, took })
        };
        knobs.kept.get_or(&(seed, knobs.sides, knobs.paths), prepare).ok().map(Labyrinths)
    }

    pub(super) fn maze(&self) -> &Maze {
        &self.0.maze
    }

    /// Returns the paths of the sequential program, with the numbers of their pairs.
    pub fn sequential_paths(&self) -> &[Path] {
        &self.0.paths
    }

    /// Returns what the grid must hold with these paths, and a sentence on each that is not one
    /// between the ends of its pair through cells of its own.
    fn draw(&self, paths: &[Path]) -> (Vec<u32>, Vec<String>) {
        let (maze, mut wrong) = (self.maze(), Vec::new());
        let (mut grid, mut is_drawn) = (maze.ends.clone(), vec![false; maze.pairs.len()]);
        for (number, way) in paths {
            let pair = maze.pairs.get(*number as usize);
            if pair != way.first().zip(way.last()).map(|(&from, &to)| [from, to]).as_ref() {
                wrong.push(format!("path {number} does not connect the cells of its pair"));
                continue;
            }
            if std::mem::replace(&mut is_drawn[*number as usize], true) {
                wrong.push(format!("pair {number} has two paths"));
            }
            let is_beside =
                |step: &[u32]| maze.neighbours(step[0]).any(|(next, _)| next == step[1]);
            if !way.windows(2).all(is_beside) {
                wrong.push(format!("path {number} has a gap"));
            }
            for &cell in way.get(1..way.len() - 1).unwrap_or_default() {
                match grid.get_mut(cell as usize) {
                    Some(at) if *at == 0 => *at = number + 1,
                    Some(at) => wrong.push(format!("paths {number} and {} meet", *at - 1)),
                    None => wrong.push(format!("path {number} leaves the grid")),
                }
            }
        }
        (grid, wrong)
    }
}

impl Program for Labyrinths {
    type Found = Found;

    fn stages(&self) -> usize {
        1
    }

    fn sequential_tps(&self) -> f64 {
        let Prepared { maze, paths, took } = &*self.0;
        (2 * maze.pairs.len() + paths.len()) as f64 / took.as_secs_f64().max(1e-9)
    }

    fn settle(&self, found: &Found, _: usize, counts: &[u64; 4], has_ended: bool) -> Consistency {
        let mut consistency = Consistency::default();
        let [connected, without, ..] = *counts;
        let (maze, Found { grid, waiting, paths }) = (self.maze(), found);
        let (drawn, wrong) = self.draw(paths);
        consistency.expect(wrong.is_empty(), || wrong.join("; "));
        let differ = drawn.iter().zip(grid).filter(|(drawn, at)| drawn != at).count();
        consistency.expect(differ == 0 && drawn.len() == grid.len(), || {
            format!("{differ} cells of the grid do not hold what the paths say")
        });
        let listed = paths.len() as u64;
        consistency.expect(listed == connected, || {
            format!("there are {listed} paths where {connected} were claimed")
        });
        let all = waiting.len() as u64 + connected + without;
        consistency.expect(all == maze.pairs.len() as u64, || {
            format!("{all} pairs wait or were taken where there are {}", maze.pairs.len())
        });
        if has_ended {
            let numbers = 0..maze.pairs.len() as u32;
            let is_listed = |number: &u32| paths.iter().any(|(of, _)| of == number);
            let missing = numbers.filter(|number| !is_listed(number));
            let has_way = |&number: &u32| {
                maze.route(&mut drawn.clone(), maze.pairs[number as usize]).is_some()
            };
            let forgotten = missing.filter(has_way).count();
            consistency.expect(waiting.is_empty() && forgotten == 0, || {
                format!("{forgotten} pairs have a way and no path; {} wait", waiting.len())
            });
        }
        consistency
    }

    fn begin(&self, _: usize) {}
}
