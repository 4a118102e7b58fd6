//! Sending the local checkpoint as a snapshot.

#![forbid(unsafe_code)]

use super::shared::{SegmentEnd, Shared};
use crate::error::ReachError;
use crate::leader::{Leader, Restart, Snapshot};
use crate::place::PlaceError;
use candide_log::OpenError;
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::schema::TableSchema;
use candide_log::store::{CheckpointParts, PartRows};
use candide_log::sum::table_sum;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// The pause before something is tried again that the place has refused, or not answered.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Why a snapshot was not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// It has been given up: the database is being closed, or the place lags too much.
    GivenUp,
    Reach(ReachError),
    /// The local files cannot be read.
    Files(OpenError),
}

impl Display for Unsent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::GivenUp => f.write_str(
                "it was given up: the database is being closed, or the place lags too much",
            ),
            Unsent::Reach(error) => error.fmt(f),
            Unsent::Files(error) => error.fmt(f),
        }
    }
}

impl From<ReachError> for Unsent {
    fn from(error: ReachError) -> Unsent {
        Unsent::Reach(error)
    }
}

/// A snapshot or a restart to which parts are added.
trait Parts {
    fn part(&mut self, catalog: &[u8], payload: &[u8]) -> Result<(), ReachError>;
}

impl Parts for Snapshot<'_> {
    fn part(&mut self, catalog: &[u8], payload: &[u8]) -> Result<(), ReachError> {
        Snapshot::part(self, catalog, payload)
    }
}

impl Parts for Restart<'_> {
    fn part(&mut self, catalog: &[u8], payload: &[u8]) -> Result<(), ReachError> {
        Restart::part(self, catalog, payload)
    }
}

/// Calls `send` again until the place has answered, or `is_given_up` says so.
pub(super) fn insist<T>(
    shared: &Shared,
    is_given_up: &dyn Fn() -> bool,
    mut send: impl FnMut() -> Result<T, ReachError>,
) -> Result<T, Unsent> {
    loop {
        match send() {
            Err(ReachError::Place(error @ (PlaceError::Unknown(_) | PlaceError::Refused(_)))) => {
                if is_given_up() {
                    return Err(Unsent::GivenUp);
                }
                // If it is a long time until the place answers, this is known meanwhile.
                shared.state().checkpoint_failure = Some(error.to_string());
                shared.pause(shared.state(), PAUSE);
            }
            sent => return Ok(sent?),
        }
    }
}

/// Sends the parts of a checkpoint. Returns the rows that they have.
fn send_parts(
    shared: &Shared,
    is_given_up: &dyn Fn() -> bool,
    to: &mut dyn Parts,
    from: &CheckpointParts<'_>,
    catalog: &Catalog,
) -> Result<PartRows, Unsent> {
    let catalog = catalog.encode().map_err(|error| ReachError::Misuse(error.to_string()))?;
    let mut rows = PartRows::default();
    if from.count() == 0 {
        // A checkpoint without a row or a pending record has no files.
        insist(shared, is_given_up, || to.part(&catalog, &[]))?;
    }
    for number in 0..from.count() {
        if is_given_up() {
            return Err(Unsent::GivenUp);
        }
        let bytes = from.read(number, &mut rows).map_err(Unsent::Files)?;
        let catalog = if number == 0 { &catalog[..] } else { &[] };
        insist(shared, is_given_up, || to.part(catalog, &bytes))?;
    }
    Ok(rows)
}

/// Sends a checkpoint as the snapshot of the object with which its last segment ends, and says by a
/// floor that it is complete. The floor has the sum of all rows, unless there is none.
pub(super) fn send_snapshot(
    shared: &Shared,
    is_given_up: &dyn Fn() -> bool,
    leader: &Leader,
    end: &SegmentEnd,
    from: &CheckpointParts<'_>,
) -> Result<(), Unsent> {
    let tables: Vec<TableSchema> = end.tables.values().cloned().collect();
    let kind = CatalogKind::Whole { own: end.own, behind: end.state, is_anew: false };
    let catalog = Catalog { kind, tables };
    let mut snapshot = leader.snapshot(end.place)?;
    let rows = send_parts(shared, is_given_up, &mut snapshot, from, &catalog)?;
    let sum = (from.count() > 0).then(|| sum(&catalog.tables, &rows));
    let payload = sum.map(u64::to_le_bytes);
    snapshot.finish(payload.as_ref().map_or(&[], |sum| &sum[..]))?;
    Ok(())
}

/// Sends a checkpoint as a restart.
pub(super) fn send_restart(
    shared: &Shared,
    is_given_up: &dyn Fn() -> bool,
    leader: &Leader,
    catalog: &Catalog,
    from: &CheckpointParts<'_>,
) -> Result<(), Unsent> {
    let (generation, cut) = from.state();
    let mut restart = leader.restart(generation, cut)?;
    send_parts(shared, is_given_up, &mut restart, from, catalog)?;
    insist(shared, is_given_up, || restart.create())?;
    match restart.finish() {
        // Without the floor, readers begin with earlier objects.
        Ok(()) | Err(ReachError::Place(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the sum of all rows of these tables, as a standby has it.
fn sum(tables: &[TableSchema], rows: &PartRows) -> u64 {
    let summed = tables.iter().filter(|table| table.is_in_use());
    let sums = summed
        .filter_map(|table| rows.sums.get(&table.number).map(|sum| table_sum(&table.name, *sum)));
    sums.fold(0, u64::wrapping_add)
}
