//! Checkpoints that pause. At the rate of these tests, a byte in a second, the pauses would take
//! hours: a checkpoint ends only because something lets it go on.

use crate::support::{Opened, open, open_with, options, put, rows, schema};
use candide_log::store::Checkpointed;
use candide_log::{LogWriter, Store, StoreError, StoreOptions, WriteError};
use candide_log_testing::SimDisk;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The time after which a checkpoint counts as one that pauses for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the pauses of checkpoints when a test ends.
struct EndsPauses<'a>(&'a Store);

impl Drop for EndsPauses<'_> {
    fn drop(&mut self) {
        self.0.end_pauses();
    }
}

/// Makes a checkpoint of 900 rows at a byte in a second, and does `work` meanwhile, until the
/// function that it gets returns true. Returns the result of the checkpoint.
fn checkpoint_beside(
    work: impl FnOnce(&Store, &mut LogWriter, &SimDisk, &dyn Fn() -> bool),
) -> Result<Checkpointed, StoreError> {
    let disk = SimDisk::new();
    let options = StoreOptions { checkpoint_rate: 1, ..options() };
    let Opened { store, mut log, .. } = open_with(disk.clone(), &options).unwrap();
    let table = store.add_table(schema("accounts")).unwrap();
    let records: Vec<u64> = (1..=900).flat_map(|key| put(5, table, key, key)).collect();
    log.write(&[&records], 5).unwrap();
    log.sync().unwrap();
    let made = thread::scope(|scope| {
        let _ends = EndsPauses(&store);
        let (sender, receiver) = channel();
        let store = &store;
        let made = scope.spawn(move || sender.send(store.checkpoint_at_rate()));
        work(store, &mut log, &disk, &|| made.is_finished());
        receiver.recv_timeout(PATIENCE).expect("the checkpoint is finished")
    });
    drop((store, log));
    disk.set_quota(None);
    assert_eq!(open(disk).unwrap().rows, rows(table, 1..=900));
    made
}

#[test]
fn a_checkpoint_goes_on_at_once_when_its_pauses_are_ended() {
    let made = checkpoint_beside(|store, _, _, _| store.end_pauses());
    assert_eq!(made.unwrap().rows, 900);
}

#[test]
fn a_checkpoint_goes_on_at_once_when_a_call_waits_for_it() {
    let made = checkpoint_beside(|store, _, _, _| {
        let copy = SimDisk::new();
        store.backup(Arc::new(copy.clone())).unwrap();
        assert_eq!(open(copy).unwrap().rows.len(), 900);
        // If the backup came first, this call waits.
        store.checkpoint().unwrap();
    });
    made.unwrap();
}

#[test]
fn a_checkpoint_is_finished_when_the_log_has_grown_as_much_as_lets_the_next_one_begin() {
    let made = checkpoint_beside(|_, log, _, is_finished| {
        let mut cut = 5;
        while !is_finished() {
            cut += 1;
            log.write(&[], cut).unwrap();
            // The checkpoint looks at the length of the log, which a write locks.
            thread::yield_now();
        }
    });
    assert_eq!(made.unwrap().rows, 900);
}

#[test]
fn a_checkpoint_does_not_pause_while_there_is_no_room_for_the_log() {
    let made = checkpoint_beside(|_, log, disk, is_finished| {
        disk.set_quota(Some(disk.used()));
        let mut cut = 5;
        while !is_finished() {
            cut += 1;
            match log.write(&[], cut) {
                Ok(()) | Err(WriteError::Full(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    match made {
        Ok(_) | Err(StoreError::Full { .. } | StoreError::Log(WriteError::Full(_))) => {}
        Err(error) => panic!("{error}"),
    }
}
