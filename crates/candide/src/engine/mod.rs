//! The engine below all protocols: the contract that each protocol implements, and the parts that
//! protocols share.

mod absence;
mod common;
mod conflict_note;
mod context;
mod contract;
mod following;
mod garbage;
mod in_place;
mod index_key;
mod late_scratch;
mod name;
mod observation;
pub(crate) mod own_thread;
mod parts;
mod properties;
mod shared_queue;
mod snapshot_outcome;
mod table_core;
mod values;
mod versions;
mod wanted;
mod watch;
mod watchers;
mod worker;

pub use absence::Absence;
pub(crate) use common::{Common, Engine, Options, Token};
pub(crate) use conflict_note::ConflictNote;
pub use context::Context;
pub use contract::{Protocol, Replicable, Versioned};
pub(crate) use following::{Following, Stopped};
pub use garbage::{Due, GcOutcome};
pub(crate) use garbage::{Retired, VERSIONS_AT_ONCE};
pub use in_place::{Applied, Deferred, InPlace};
pub(crate) use index_key::{IndexKey, TooLong};
pub(crate) use late_scratch::{KnownTables, LateScratch};
pub(crate) use observation::ReadView;
pub use observation::{Committed, Missing, Seen};
pub use parts::{Backlog, Parts};
pub use properties::Properties;
pub(crate) use shared_queue::{SharedQueue, VALUES_AT_ONCE};
pub use snapshot_outcome::SnapshotOutcome;
pub use table_core::TableCore;
pub(crate) use table_core::{
    AtLinks, BlockSize, INDEXES_MAX, IndexCore, IndexPlan, Indexes, KeyOrigin, LogNumber, Owner,
    Restrictions, ShowKey, Stage, VersionTable,
};
pub use values::Replaced;
pub(crate) use values::{Values, keep_buffer, take_buffer, word_in};
pub(crate) use versions::settle;
pub use versions::{NoVersions, Versions};
pub use watch::{Unwatched, Watch};
pub(crate) use watchers::{EVERYWHERE, Watchers, class_of};
pub(crate) use worker::{Local, Worker};
