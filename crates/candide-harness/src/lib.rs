//! Measures and checks workloads, whichever they are and whichever protocol runs them.
//!
//! A [`AnyWorkload`] is a workload that can be measured, and a [`check::Recordable`] one whose
//! transactions can be recorded. Both are trait objects, so that the drivers are compiled once,
//! here. [`measurable`] and [`check::recordable`] make them of any
//! [workload](candide_workloads::Workload), which compiles it for each protocol: the crates in
//! `crates/workloads` call them, and nothing else does.
//!
//! [`Suite`] measures the combinations that a [`Matrix`] gives; [`figure`], what a published figure
//! shows. What comes of it is a [`Report`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod affinity;
mod any_workload;
mod barrier;
pub mod check;
mod driver;
mod experiment;
mod failure;
pub mod figure;
mod hottest;
pub mod interrupt;
mod machine;
mod measurement;
pub mod output;
mod pace;
mod page;
mod plan;
mod progress;
mod registry;
mod report;
mod room;
mod sink;
mod slices;
mod suite;
mod table;
mod timeline;

pub use affinity::Cores;
pub use any_workload::{
    AnyWorkload, FillError, LoadedDatabase, PreparedWorker, Variant, measurable,
};
pub use experiment::Rules;
pub use failure::Failure;
pub use machine::free_memory;
pub use measurement::Profile;
pub use plan::{Matrix, crowding};
pub use progress::Agenda;
pub use registry::{Choice, Choices, each_once};
pub use report::{Report, report};
pub use suite::Suite;
