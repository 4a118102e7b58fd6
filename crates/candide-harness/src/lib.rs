//! Measures and checks any workload under any protocol.
//!
//! An [`AnyWorkload`] is a workload that can be measured, and a [`check::Recordable`] is one whose
//! transactions can be recorded. Both are used as trait objects, so that the drivers are compiled
//! only once, in this crate. [`measurable`] and [`check::recordable`] turn any
//! [workload](candide_workloads::Workload) into such an object. A call of [`measurable`] compiles
//! the workload for each protocol, so only the crate `candide-compiled` calls these two functions.
//!
//! [`Suite`] measures the combinations of a [`Matrix`]; [`figure`] measures the content of a
//! published figure. Both return a [`Report`], and [`report()`] prints it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layers, lowest first: interrupt, failure, results, output, progress, affinity, files, registry,
// any_workload, rules, run, suite, figure, show, check, crash, database.

mod affinity;
mod any_workload;
pub mod check;
pub mod crash;
pub mod database;
mod failure;
pub mod figure;
mod files;
pub mod interrupt;
pub mod output;
mod progress;
mod registry;
pub mod results;
mod rules;
mod run;
mod show;
mod suite;

pub use affinity::Cores;
pub use any_workload::{
    AnyWorkload, FillError, LoadedDatabase, PreparedWorker, Variant, measurable,
};
pub use failure::Failure;
pub use files::{Directory, Files, level_name};
pub use progress::Agenda;
pub use registry::{Choice, Choices, each_once};
pub use results::{Profile, Report};
pub use rules::Rules;
pub use run::CoreShare;
pub use show::{Outputs, explained_columns, laid_out, report, table};
pub use suite::{Matrix, Suite, crowding, unconcerned};
