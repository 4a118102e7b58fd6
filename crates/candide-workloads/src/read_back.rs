//! Reading tables after the workers have stopped, in the two ways that must agree: through fresh transactions, which see
//! what any later program would, and by raw iteration, which also sees what no lookup finds.

use candide::{Abort, Protocol, Record, Session, Table, Whole};

/// Keys per reading transaction.
const BATCH: u64 = 16;

/// Reads the rows of all keys below `keys` in transactions and shows those that exist to `visit`, in key order.
pub(crate) fn by_transactions<R: Record<Key = u64>, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
    keys: u64,
    mut visit: impl FnMut(&R),
) -> Result<(), Abort> {
    for first in (0..keys).step_by(BATCH as usize) {
        let batch = first..keys.min(first + BATCH);
        let rows = session
            .run(|tx| batch.clone().map(|key| table.get(tx, &key, Whole)).collect::<Result<Vec<Option<R>>, Abort>>())?;
        rows.iter().flatten().for_each(&mut visit);
    }
    Ok(())
}

/// A fingerprint of one row. Their wrapping sum over a table does not depend on the order the rows are met in.
pub(crate) fn fingerprint(key: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(key), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

/// Spreads every bit of a word over the whole of it.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
