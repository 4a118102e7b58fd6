//! The entries of secondary indexes, read without the indexes' own lookups.

use crate::engine::{IndexCore, Protocol};
use crate::index::Found;
use crate::schema::{Pinned, RowMeta, RowWriter, Unit, image_words};
use crate::{Record, Session, Table};
use std::collections::BTreeSet;

/// The words of an entry's key and of its payload.
type Entry = (Vec<u64>, Vec<u64>);

/// Returns the existing entries, which it reads from all records of the index. No other thread uses
/// the database during the call.
pub(crate) fn entries_of<P: Protocol>(session: &mut Session<P>, index: &IndexCore) -> Vec<Entry> {
    let core = &index.entries;
    let keys = session.linked_keys(core);
    let entries = session.run(|tx| {
        let mut entries = Vec::new();
        for key in keys.chunks(core.layout.key_words()) {
            let state = &mut *tx.state.borrow_mut();
            let Found::Record(record) = state.find(tx.engine, core, key)? else { continue };
            let at = core.layout.at(record, Unit::ROW);
            let mut payload = vec![0; at.payload_words()];
            let count = payload.len();
            if state.read(tx.engine, at, |words| {
                words.copy(0, count, |word, value| payload[word] = value)
            })? {
                entries.push((key.to_vec(), payload));
            }
        }
        Ok(entries)
    });
    entries.unwrap()
}

/// Returns the entry that a row should have.
fn entry_of<R: Record, P: Protocol>(table: &Table<R, P>, index: &IndexCore, row: &R) -> Entry {
    let mut words = vec![0; image_words(R::GROUPS)];
    row.store(&mut RowWriter::new(&mut words));
    let key = row.key();
    let key = crate::Key::words(&key);
    let primary = match table.core().layout.packing::<R::Key>() {
        None => key.as_ref().to_vec(),
        Some(packing) => packing.pack(key.as_ref()).as_slice().to_vec(),
    };
    let mut entry = Vec::new();
    index.entry_key(&primary, &words, Pinned::by(row), &mut entry).unwrap();
    (entry, if index.unique { primary } else { vec![0] })
}

/// Asserts that each index of a table has one entry for each row, and no other entry. No other
/// thread uses the database during the call.
pub(crate) fn assert_entries_match_rows<R: Record, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
) {
    for index in table.core().indexes.kept() {
        let mut wanted = BTreeSet::new();
        let rows = table
            .for_each_quiescent(|row| assert!(wanted.insert(entry_of(table, index, row))))
            .unwrap();
        let entries = entries_of(session, index);
        let found: BTreeSet<Entry> = entries.iter().cloned().collect();
        assert_eq!((entries.len(), found.len()), (rows, rows), "{index:?}");
        assert_eq!(found, wanted, "{index:?}");
    }
}

/// Returns the number of records that are linked in the table and its indexes, whether their rows
/// are present or absent.
pub(crate) fn linked_records<R: Record, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
) -> usize {
    let core = table.core();
    let mut count = session.linked_keys(core).len() / core.layout.key_words();
    for index in core.indexes.kept() {
        count += session.linked_keys(&index.entries).len() / index.entries.layout.key_words();
    }
    count
}
