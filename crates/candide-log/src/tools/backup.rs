//! Copying a database that is not in use.

use super::Source;
use crate::checkpoint::read::read_pending;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::segments::Segment;
use crate::store::backup::{BackedUp, copy, open_target};
use crate::store::recover;
use std::sync::Arc;

/// Copies a database to another directory, which must be empty: everything that an opening would
/// find. The copy is read back and checked, and its last block is confirmed, so that later damage
/// of it is noticed.
///
/// # Errors
/// A directory is in use, the first one contains no database or the other is not empty, something
/// is damaged, or a file cannot be read or written. The copy may be unfinished then, and cannot be
/// opened.
pub fn backup(from: &dyn Disk, to: Arc<dyn Disk>) -> Result<BackedUp, StoreError> {
    let source = Source::open(from)?;
    let (to, _lock) = open_target(to)?;
    let manifest = &source.manifest;
    let pending = read_pending(from, manifest)?;
    let segments = recover::segments(from, manifest, source.last_segment())?;
    let mut replay = recover::replay(segments, manifest, pending, None)?;
    while replay.next()?.is_some() {}
    let reader = replay.reader();
    let numbers = reader.segments().iter().map(Segment::number);
    let ends: Vec<(u64, u64)> = numbers.zip(reader.ends().iter().copied()).collect();
    copy(from, manifest.clone(), &ends, &to)
}
