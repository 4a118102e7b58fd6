//! Checking the newest snapshot of a place.

#![forbid(unsafe_code)]

use crate::access::Access;
use crate::error::ReachError;
use crate::name::Name;
use crate::object::Object;
use crate::receiver::{Receiver, Refusal, receive_snapshot};
use candide_log::format::catalog::Catalog;
use candide_log::format::checkpoint::{Contents, PartDecoder};
use candide_log::sum::{long_row_hash, row_hash, table_sum};
use std::collections::BTreeMap;

/// Reads the snapshot of the newest floor of the newest `generation` that has one, and compares its
/// rows with the sum of the floor, if that has one. Without a floor, there is nothing to check.
///
/// # Errors
/// [`ReachError::Damaged`], with the part or the floor that is wrong, and other errors of reading.
pub(super) fn check(access: &Access, generation: u64) -> Result<(), ReachError> {
    for generation in (1..=generation).rev() {
        let Some(floor) = access.floors(generation)?.newest else { continue };
        let mut rows = Rows::default();
        receive_snapshot(access, &floor, &mut rows).map_err(|error| match error {
            ReachError::Receiver(refusal) => {
                let link = floor.header.before;
                let part = rows.parts.saturating_sub(1);
                let name = Name::Snapshot(link.generation, link.place, part);
                ReachError::damaged(name, refusal.to_string())
            }
            error => error,
        })?;
        return match rows.difference(&floor) {
            Some(what) => {
                Err(ReachError::damaged(Name::Floor(generation, floor.header.place), what))
            }
            None => Ok(()),
        };
    }
    Ok(())
}

/// The sums of the rows of a snapshot.
#[derive(Debug, Default)]
struct Rows {
    /// Whether the floor has a sum, so that the payloads of the parts are those of checkpoints.
    is_summed: bool,
    /// The number of parts so far.
    parts: u32,
    names: BTreeMap<u32, String>,
    sums: BTreeMap<u32, u64>,
}

impl Rows {
    /// Returns how the rows differ from the sum of a floor.
    fn difference(&self, floor: &Object) -> Option<String> {
        let stated = u64::from_le_bytes(floor.payload().try_into().ok()?);
        // A table without a name here is dropped, or not one of the database's own.
        let named = |(table, sum): (&u32, &u64)| Some(table_sum(self.names.get(table)?, *sum));
        let sums = self.sums.iter().filter_map(named);
        let sum = sums.fold(0, u64::wrapping_add);
        (sum != stated).then(|| {
            format!("the sum of the rows of its snapshot is {sum:016x}, and it says {stated:016x}")
        })
    }

    fn add(&mut self, part: &[u8]) -> Result<(), Refusal> {
        let (mut decoder, _) = PartDecoder::of_whole(part)?;
        loop {
            let at = decoder.offset();
            let block = decoder.block(&part[at as usize..]).map_err(|error| error.after(at))?;
            match block.contents {
                Contents::Rows { table, .. } => {
                    let sum = self.sums.entry(table).or_default();
                    for (key, words) in block.rows() {
                        *sum = sum.wrapping_add(row_hash(key, words));
                    }
                }
                Contents::LongRows { table, .. } => {
                    let hashes = block.long_rows().map(long_row_hash);
                    let sum = self.sums.entry(table).or_default();
                    *sum = hashes.fold(*sum, u64::wrapping_add);
                }
                Contents::Pending { .. } => {}
                Contents::End { .. } => return Ok(()),
            }
        }
    }
}

impl Receiver for Rows {
    fn begin(&mut self, floor: &Object) -> Result<(), Refusal> {
        *self = Rows { is_summed: floor.payload().len() == 8, ..Rows::default() };
        Ok(())
    }

    fn part(&mut self, part: &Object) -> Result<(), Refusal> {
        self.parts += 1;
        if !self.is_summed {
            return Ok(());
        }
        if part.header.part == 0 {
            let catalog = Catalog::decode(part.catalog())?.ok_or("it has no catalog")?;
            let tables = catalog.tables.into_iter().filter(|table| table.is_in_use());
            self.names = tables.map(|table| (table.number, table.name)).collect();
        }
        // The only part of a snapshot without rows may be empty.
        if part.payload().is_empty() { Ok(()) } else { self.add(part.payload()) }
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }
}
