//! The data of results: the counts of a run, the report of all runs, and the numbers and notes of
//! both.

mod baseline;
mod doubt;
mod figure;
mod finding;
mod hottest;
mod kind;
mod locks;
mod machine;
mod measurement;
mod memory;
mod noise;
mod notes;
mod number;
mod report;
mod run;
#[cfg(test)]
pub(crate) mod sample;
mod sets;
mod slices;
mod speed_up;
mod timeline;

pub(crate) use baseline::{Baseline, Change};
pub(crate) use doubt::{CORE_SHARE_MIN, DOUBTS};
pub use doubt::{Doubt, least_share};
pub(crate) use figure::{Figure, Grade, MeasuredLine, PhaseResult, Point, Verdict};
pub use figure::{Published, Shown};
pub use finding::Finding;
pub(crate) use hottest::{Hottest, Probes};
pub(crate) use kind::{Kind, Transactions};
pub(crate) use locks::Locks;
pub use machine::Machine;
pub use measurement::Profile;
pub(crate) use measurement::{Aborted, LogUse, Measurement, plain};
pub(crate) use memory::{Footprint, Memory};
pub(crate) use noise::Noise;
pub(crate) use notes::{label, protocol};
pub(crate) use number::{MEBIBYTE, abort_ratio};
pub use number::{grouped, median, range};
pub use report::Report;
pub(crate) use run::Run;
pub(crate) use sets::{SetSizes, SetSums};
pub(crate) use slices::{NumberedSlice, RunSlice};
pub(crate) use speed_up::SpeedUp;
pub(crate) use timeline::{NamedPhase, Phase, Slice, Timeslices};
