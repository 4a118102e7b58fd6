//! The engine below all protocols: the contract that each of them meets, and what it works with.

mod common;
mod conflict_note;
mod context;
mod contract;
mod garbage;
mod observation;
pub(crate) mod own_thread;
mod shared_queue;
mod table_core;
mod wanted;
mod worker;

pub(crate) use common::{Common, Engine, Options, Token};
pub(crate) use conflict_note::ConflictNote;
pub use context::Context;
pub use contract::{Properties, Protocol, Versioned};
pub use garbage::{Due, Fate, GcOutcome, UndoEntry};
pub(crate) use garbage::{Retired, VERSIONS_AT_ONCE};
pub(crate) use observation::ReadView;
pub use observation::{Committed, Missing, Seen};
pub(crate) use shared_queue::Hot;
pub use table_core::TableCore;
pub(crate) use table_core::{
    BlockSize, INDEXES_MAX, IndexCore, IndexPlan, Indexes, KeyOrigin, Stage,
};
pub(crate) use worker::Local;
