//! Running a workload: the driver of one run, and all runs of a workload on one database.

mod admission;
mod barrier;
mod driver;
mod experiment;
mod pace;
mod preemption;
mod setting;
mod signals;
mod slices;
mod thread;

pub(crate) use admission::{admit, expect_room};
pub(crate) use barrier::Barrier;
pub(crate) use experiment::{Experiment, Turn};
pub use preemption::CoreShare;
pub(crate) use slices::expect_few;
