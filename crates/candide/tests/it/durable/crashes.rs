//! Crashes at every operation of the disk.

use super::{contents, open_items};
use crate::common::{Item, is_in_share, share};
use candide::{Abort, Protocol, Whole};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeMap;

protocol_tests!(all: every_crash_leaves_a_prefix_with_all_acknowledged_commits);

/// Runs transactions one after another, and notes after each of them the contents and the position
/// of the disk. Each state that a crash can leave must have contents that were noted, no earlier
/// than the last that was acknowledged before the crash.
fn every_crash_leaves_a_prefix_with_all_acknowledged_commits<P: Protocol>() {
    let disk = SimDisk::new();
    let mut noted: Vec<(usize, BTreeMap<u64, Item>)> = vec![(0, BTreeMap::new())];
    for opening in 0..2 {
        let (db, items) = open_items::<P>(&disk);
        noted.push((disk.position(), noted.last().unwrap().1.clone()));
        for step in 0..12 {
            let id = (opening + step) % 5;
            db.run(|tx| match items.get(tx, &id, Whole)? {
                Some(_) if step % 4 == 3 => items.delete(tx, &id),
                Some(_) => items.update(tx, &id, Item::COUNT.add(1)),
                None => items.insert(tx, Item::new(id, step as i64)),
            })
            .map_err(|abort: Abort| abort)
            .unwrap();
            noted.push((disk.position(), contents(&items)));
            if step == 7 {
                db.checkpoint().unwrap();
            }
        }
    }
    let options = CrashOptions { exhaustive: 6, pieces: 8, samples: 4, ..CrashOptions::default() };
    let mut states = 0;
    for (place, state) in disk.crash_states(&options).enumerate() {
        if !is_in_share::<P>(place) {
            continue;
        }
        let position = state.id().position;
        let acknowledged = noted.iter().rposition(|(at, _)| *at <= position).unwrap();
        let (_db, items) = open_items::<P>(&state.disk());
        let found = contents(&items);
        let is_known = noted[acknowledged..].iter().any(|(_, rows)| *rows == found);
        assert!(is_known, "{}\n{found:?}", state.describe());
        states += 1;
    }
    assert!(states > share(100), "{states} states");
}
