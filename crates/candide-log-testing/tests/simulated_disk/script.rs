//! Small random scripts of operations.

use candide_log::disk::Disk;
use candide_log_testing::{Fault, SimDisk};
use fastrand::Rng;
use std::collections::BTreeSet;

/// An operation that succeeds, or a sync that fails.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create(&'static str),
    Write { name: &'static str, offset: u64, bytes: Vec<u8> },
    Rename(&'static str, &'static str),
    Remove(&'static str),
    Sync(&'static str),
    FailSync(&'static str),
    SyncDirectory,
    FailSyncDirectory,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Returns a script that begins on an empty disk.
pub(crate) fn random(rng: &mut Rng, length: usize) -> Vec<Step> {
    let mut existing: BTreeSet<&'static str> = BTreeSet::new();
    let mut steps = Vec::new();
    while steps.len() < length {
        let name = NAMES[rng.usize(..NAMES.len())];
        let step = match (rng.u8(..16), existing.contains(name)) {
            (0..3, _) | (_, false) => Step::Create(name),
            (3..9, _) => write(rng, name),
            (9, _) => Step::Rename(name, NAMES[rng.usize(..NAMES.len())]),
            (10, _) => Step::Remove(name),
            (11..13, _) => Step::Sync(name),
            (13, _) => Step::FailSync(name),
            (14, _) => Step::SyncDirectory,
            (_, _) if rng.bool() => Step::FailSyncDirectory,
            (_, _) => Step::SyncDirectory,
        };
        match &step {
            Step::Create(name) => _ = existing.insert(name),
            Step::Remove(name) => _ = existing.remove(name),
            Step::Rename(from, to) => {
                existing.remove(from);
                existing.insert(to);
            }
            _ => {}
        }
        steps.push(step);
    }
    steps
}

/// Returns a write of up to three sectors at the beginning of a file. Some bytes are zeros, which
/// files contain anyway, and values are few, so that a write often changes nothing.
fn write(rng: &mut Rng, name: &'static str) -> Step {
    let byte = [0, 1, 2][rng.usize(..3)];
    let length = [1, 100, 512, 513, 1024][rng.usize(..5)];
    let mut bytes = vec![byte; length];
    if rng.bool() {
        bytes[length / 2..].fill(0);
    }
    Step::Write { name, offset: [0, 300, 512, 1000][rng.usize(..4)], bytes }
}

/// Does a step.
pub(crate) fn run(disk: &SimDisk, step: &Step) {
    match step {
        Step::Create(name) => drop(disk.create(name).unwrap()),
        Step::Write { name, offset, bytes } => {
            disk.open(name).unwrap().write_at(*offset, &[bytes]).unwrap();
        }
        Step::Rename(from, to) => disk.rename(from, to).unwrap(),
        Step::Remove(name) => disk.remove(name).unwrap(),
        Step::Sync(name) => disk.open(name).unwrap().sync().unwrap(),
        Step::FailSync(name) => {
            disk.fail(1, Fault::SyncLoses);
            disk.open(name).unwrap().sync().unwrap_err();
        }
        Step::SyncDirectory => disk.sync_directory().unwrap(),
        Step::FailSyncDirectory => {
            disk.fail(1, Fault::SyncLoses);
            disk.sync_directory().unwrap_err();
        }
    }
}
