//! Making the changes that were read.

use crate::error::OpenError;
use crate::log::replay::Step;
use crate::names::DIRECTORY;
use crate::target::Loader;

/// Has a loader complete its collected changes.
pub(super) fn finish(loader: &mut dyn Loader) -> Result<(), OpenError> {
    loader.finish().map_err(|error| OpenError::load(error, DIRECTORY, 0))
}

/// Makes those changes of a batch whose table and key `is_own` accepts.
pub(super) fn apply(
    step: &Step,
    loader: &mut dyn Loader,
    is_own: impl Fn(u16, &[u64]) -> bool,
) -> Result<(), OpenError> {
    for change in step.batch.changes().filter(|change| is_own(change.table, change.key)) {
        let applied = loader.apply(&change);
        applied.map_err(|error| OpenError::load(error, &step.file, step.offset))?;
    }
    Ok(())
}

/// Returns whether a table is one of those that have been dropped, mostly none.
pub(super) fn is_in(dropped: &[u32], table: u16) -> bool {
    !dropped.is_empty() && dropped.binary_search(&table.into()).is_ok()
}
