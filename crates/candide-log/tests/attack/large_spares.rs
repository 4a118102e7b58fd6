//! Crashes while a file for a segment is filled that takes more than one step.

use crate::support::*;
use candide_log::format::commit::ChangeKind;
use candide_log::{StoreOptions, TableSchema};
use candide_log_testing::{CrashOptions, SimDisk};

/// The words of a row, of which two are a little less than the zeros that are written at once.
const WIDE: usize = 60_000;

/// Commits two rows that say `number`, and makes them durable.
fn commit_wide(opened: &mut Opened, number: u64) {
    let words = [number; WIDE];
    let row = |key| Write::new(ChangeKind::Put, 1, key, 0, &words);
    let mut record = Vec::new();
    commit(&mut record, number, number, &[row(2 * number), row(2 * number + 1)]);
    opened.log.write(&[&record], number).unwrap();
    opened.log.sync().unwrap();
}

#[test]
fn a_crash_while_a_large_segment_is_made_loses_no_commit() {
    let disk = SimDisk::new();
    let options = StoreOptions { segment_bytes: 8 << 20, ..StoreOptions::default() };
    let mut opened = open_with(disk.clone(), &options).unwrap();
    let groups = vec![("all".to_string(), WIDE as u32)];
    let table = TableSchema { groups, indexes: Vec::new(), ..schema("wide") };
    opened.store.add_table(table).unwrap();
    commit_wide(&mut opened, 1);
    commit_wide(&mut opened, 2);
    let first = disk.position();
    let mut acknowledged = vec![(first, 2)];
    // A part of the next segment is made, then the rest by the checkpoint.
    opened.log.prepare().unwrap();
    opened.store.checkpoint().unwrap();
    for number in 3..=4 {
        commit_wide(&mut opened, number);
        acknowledged.push((disk.position(), number));
        // The next but one is begun with a part of a file.
        opened.log.prepare().unwrap();
    }
    assert!(opened.store.checkpoint().unwrap().is_new);
    drop(opened);
    let few =
        CrashOptions { first, exhaustive: 1, pieces: 0, samples: 1, ..CrashOptions::default() };
    // Every state is large.
    for state in disk.crash_states(&few).step_by(4) {
        let opened = open_with(state.disk(), &options)
            .unwrap_or_else(|error| panic!("{}{error}", state.describe()));
        let least = acknowledged.iter().rfind(|(position, _)| *position <= state.id().position);
        let (_, least) = least.unwrap();
        let found = opened.rows.len() as u64 / 2;
        assert!((*least..=4).contains(&found), "{}{found} of {least}", state.describe());
        for ((_, key), words) in &opened.rows {
            assert!(key[0] / 2 <= found && **words == [key[0] / 2; WIDE]);
        }
    }
}
