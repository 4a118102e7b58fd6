//! Measures and checks any workload under any protocol.
//!
//! An [`AnyWorkload`] is a workload that can be measured, and a [`check::Recordable`] is one whose
//! transactions can be recorded. Both are used as trait objects, so that the drivers are compiled
//! only once, in this crate. [`measurable`] and [`check::recordable`] turn any
//! [workload](candide_workloads::Workload) into such an object. A call of [`measurable`] compiles
//! the workload for each protocol, so only the crate `candide-compiled` calls these two functions.
//!
//! [`Suite`] measures the combinations of a [`Matrix`]; [`figure`] measures the content of a
//! published figure. Both return a [`Report`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod affinity;
mod any_workload;
mod barrier;
pub mod check;
pub mod crash;
pub mod database;
mod driver;
mod experiment;
mod failure;
pub mod figure;
mod files;
mod hottest;
pub mod interrupt;
mod locks;
mod machine;
mod measurement;
mod mixtures;
pub mod output;
mod pace;
mod page;
mod plan;
mod preemption;
mod progress;
mod registry;
mod report;
mod room;
mod sets;
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
pub use files::{Directory, Files, level_name};
pub use measurement::Profile;
pub use plan::{Matrix, crowding, unconcerned};
pub use progress::Agenda;
pub use registry::{Choice, Choices, each_once};
pub use report::{Report, report};
pub use suite::Suite;
