//! An open database as the source of a copy elsewhere.

use super::checkpoint_parts::CheckpointParts;
use super::feed::{Changes, Feed, Source};
use super::remote::Replies;
use super::unopened::LogPlace;
use super::{Shared, Store};
use crate::directory::Directory;
use crate::error::OpenError;
use crate::schema::TableSchema;
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Store {
    /// Lets the remote of the options begin to copy.
    ///
    /// # Errors
    /// Those of [`Remote::begin`](super::Remote::begin).
    pub fn begin_remote(&self, replies: Arc<dyn Replies>) -> Result<(), OpenError> {
        let source = Arc::clone(&self.shared);
        let Some(remote) = source.options.remote.clone() else { return Ok(()) };
        let generation = source.log().generation();
        remote.begin(Feed::new(source, self.uuid(), generation), replies)
    }
}

impl Source for Shared {
    fn disk(&self) -> &Arc<Directory> {
        &self.disk
    }

    fn end(&self) -> LogPlace {
        let (segment, offset) = self.log().durable_end();
        LogPlace { segment, offset }
    }

    fn tables(&self) -> Vec<TableSchema> {
        let manifest = self.manifest();
        *self.changes() = Some(VecDeque::new());
        manifest.current().tables.clone()
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_checkpoint(&self, take: &mut dyn FnMut(&CheckpointParts<'_>)) {
        let _merging = self.merging();
        let manifest = self.manifest().current().clone();
        if let Some(checkpoint) = &manifest.checkpoint {
            take(&CheckpointParts {
                disk: &self.disk,
                checkpoint,
                tables: &manifest.tables,
                first_segment: manifest.first_segment,
            });
        }
    }
}
