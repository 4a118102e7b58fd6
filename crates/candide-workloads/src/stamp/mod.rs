//! Programs of STAMP (MC08 in `docs/references.md`).
//!
//! A program of STAMP does a fixed amount of work and ends. Here it is repeated until the measured
//! time is over, and its transactions are counted. Beside each program is the same program without
//! transactions, for one thread. [`Loaded::sequential_tps`](crate::Loaded::sequential_tps) measures
//! that one, so that a report can give the speed-up over it.
//!
//! kmeans and vacation exist in two [forms](Form). The others have the transactions that STAMP
//! gives them, which read what they change, on transactional objects.

// Layers, lowest first: choices, kept, meeting, timed, repeated, kmeans, vacation, labyrinth,
// intruder, genome, bayes.
pub mod bayes;
mod choices;
pub mod genome;
pub mod intruder;
mod kept;
pub mod kmeans;
pub mod labyrinth;
mod meeting;
mod repeated;
mod timed;
pub mod vacation;

pub use choices::{Form, Mode, Scale};
pub use kept::Kept;
pub use repeated::{Objects, Program, Repeated, Thread, Turn};
use timed::timed;
