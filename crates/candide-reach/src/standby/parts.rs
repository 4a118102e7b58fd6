//! The parts of a snapshot: those of the leader's checkpoint.

#![forbid(unsafe_code)]

use candide::Mvcc;
use candide::replica::{Replica, ReplicaError};
use candide_log::format::Malformed;
use candide_log::format::checkpoint::{Contents, PartDecoder};
use candide_log::format::long_row::LongRow;

/// Why a part was not taken in.
pub(super) enum PartError {
    Malformed(Malformed),
    Replica(String),
}

/// Gives the rows of a part to a replica, and appends its commit records to `pending`.
pub(super) fn load(
    part: &[u8],
    replica: &mut Replica<Mvcc>,
    pending: &mut Vec<u64>,
) -> Result<(), PartError> {
    let refused = |error: ReplicaError| PartError::Replica(error.to_string());
    let (mut decoder, _) = PartDecoder::of_whole(part).map_err(PartError::Malformed)?;
    loop {
        let at = decoder.offset();
        let block = decoder
            .block(&part[at as usize..])
            .map_err(|error| PartError::Malformed(error.after(at)))?;
        match block.contents {
            Contents::Rows { table, .. } => {
                let rows = block.rows().map(|(key, words)| (table, LongRow::fixed(key, words)));
                replica.rows(rows).map_err(refused)?;
            }
            Contents::LongRows { table, .. } => {
                replica.rows(block.long_rows().map(|row| (table, row))).map_err(refused)?;
            }
            Contents::Pending { .. } => {
                block.records().for_each(|record| pending.extend_from_slice(record.words()));
            }
            Contents::End { .. } => return Ok(()),
        }
    }
}
