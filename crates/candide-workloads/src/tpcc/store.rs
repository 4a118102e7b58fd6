//! What workers share.

use std::sync::Arc;

use candide::Protocol;

use super::knobs::Tpcc;
use super::queues::Queues;
use super::tables::{Numbers, Tables};
use super::trail::Trails;

/// The state that workers share.
pub(super) struct Store<P: Protocol> {
    pub(super) tables: Tables<P>,
    pub(super) numbers: Numbers,
    pub(super) queues: Queues,
    /// The running transactions and their writes; `None` if causes were not requested.
    pub(super) trails: Option<Arc<Trails>>,
    pub(super) knobs: Tpcc,
}
