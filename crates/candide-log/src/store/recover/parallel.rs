//! Recovery by several threads. Parts of a checkpoint are loaded by any thread. Of the log, each
//! thread gets all batches in order, and makes the changes of those rows that are its own, so the
//! changes of one row keep their order.

use super::apply::{apply, finish, is_in};
use crate::checkpoint::read::{Loaded, PartReader, load_part, parts};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::manifest::Manifest;
use crate::log::replay::{Replay, Step};
use crate::target::Loader;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// The number of batches that may wait for each thread.
const WAITING_BATCHES: usize = 4;

/// Loads all parts of the checkpoint. Calls `loaded` with the number of bytes so far.
pub(super) fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    loaders: &mut [Box<dyn Loader + '_>],
    loaded: &dyn Fn(u64),
) -> Result<Loaded, OpenError> {
    let count = parts(manifest).len();
    let next = AtomicUsize::new(0);
    let (results, received) = mpsc::channel();
    let mut by_part = BTreeMap::new();
    thread::scope(|scope| {
        for loader in loaders.iter_mut() {
            let (results, next) = (results.clone(), &next);
            scope.spawn(move || {
                loop {
                    // Relaxed: the counter gives each number to one thread, and orders nothing
                    // else.
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= count {
                        break;
                    }
                    let loaded = PartReader::open(disk, manifest, part).and_then(|mut reader| {
                        let loaded = load_part(&mut reader, &mut **loader)?;
                        Ok((loaded, reader.offset()))
                    });
                    if loaded.is_err() {
                        // Relaxed: the other threads may load another part before they see the
                        // failure.
                        next.store(count, Ordering::Relaxed);
                    }
                    // The receiver lives until all senders are gone.
                    let _ = results.send((part, loaded));
                }
            });
        }
        drop(results);
        let mut done = 0;
        for (part, result) in received {
            done += result.as_ref().map_or(0, |(_, bytes)| *bytes);
            by_part.insert(part, result);
            loaded(done);
        }
    });
    let mut all = Loaded::default();
    for (_, result) in by_part {
        all.add(result?.0);
    }
    Ok(all)
}

/// Replays the log. Calls `replayed` with the number of bytes so far.
pub(super) fn apply_log(
    replay: &mut Replay<'_>,
    loaders: &mut [Box<dyn Loader + '_>],
    dropped: &[u32],
    replayed: &dyn Fn(u64),
) -> Result<(), OpenError> {
    let count = loaders.len() as u64;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut senders = Vec::new();
        for (own, loader) in (0..).zip(loaders.iter_mut()) {
            let (sender, receiver) = mpsc::sync_channel::<Arc<Step>>(WAITING_BATCHES);
            senders.push(sender);
            threads.push(scope.spawn(move || {
                let is_own = |table: u16, key: &[u64]| {
                    hash(table, key) % count == own && !is_in(dropped, table)
                };
                apply_own(&receiver, &mut **loader, is_own)
            }));
        }
        let read = read_all(
            replay,
            &mut |step| {
                // A thread that has met an error does not receive any more.
                senders.iter().all(|sender| sender.send(Arc::clone(&step)).is_ok())
            },
            replayed,
        );
        drop(senders);
        let mut first: Option<(u64, OpenError)> = None;
        for thread in threads {
            let applied = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Err((number, error)) = applied
                && first.as_ref().is_none_or(|(before, _)| number < *before)
            {
                first = Some((number, error));
            }
        }
        // The changes that were applied come before an error of reading.
        match first {
            Some((_, error)) => Err(error),
            None => read,
        }
    })
}

/// Reads the log and hands over its batches, as long as a thread receives them.
fn read_all(
    replay: &mut Replay<'_>,
    hand_over: &mut dyn FnMut(Arc<Step>) -> bool,
    replayed: &dyn Fn(u64),
) -> Result<(), OpenError> {
    while let Some(step) = replay.next()? {
        if !hand_over(Arc::new(step)) {
            break;
        }
        replayed(replay.bytes());
    }
    Ok(())
}

/// Makes the changes of the rows that belong to this thread. An error has the number of its batch.
fn apply_own(
    steps: &Receiver<Arc<Step>>,
    loader: &mut dyn Loader,
    is_own: impl Fn(u16, &[u64]) -> bool,
) -> Result<(), (u64, OpenError)> {
    for (number, step) in (0..).zip(steps) {
        apply(&step, loader, &is_own).map_err(|error| (number, error))?;
    }
    finish(loader).map_err(|error| (u64::MAX, error))
}

/// Returns a number by which rows are dealt to threads.
fn hash(table: u16, key: &[u64]) -> u64 {
    let hash = key.iter().fold(u64::from(table), |hash, word| {
        (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    hash >> 32
}
