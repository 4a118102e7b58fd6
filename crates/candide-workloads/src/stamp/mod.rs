//! Two programs of STAMP (MC08 in `docs/references.md`).
//!
//! A program of STAMP does a fixed amount of work and ends. Here it is repeated until the measured
//! time is over, and its transactions are counted. Beside each program is the same program without
//! transactions, for one thread. [`Loaded::sequential_tps`](crate::Loaded::sequential_tps) measures
//! that one, so that a report can give the speed-up over it.
//!
//! Both exist in two [forms](Form).

mod choices;
mod kept;
pub mod kmeans;
pub mod vacation;

pub use choices::{Form, Mode};
pub use kept::Kept;
