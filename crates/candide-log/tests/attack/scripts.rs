//! Random scripts with rounds of all sizes, cuts that stay where they are, and checkpoints that
//! fail or are not finished.

use crate::support::*;
use candide_log::{StoreError, StoreOptions};
use candide_log_testing::{CrashOptions, Fault, SimDisk};
use std::collections::BTreeSet;

/// A generation: the keys that were there when it began, and those that were put since. The stamp
/// of a commit is its key.
#[derive(Debug)]
struct Generation {
    number: u64,
    base: BTreeSet<u64>,
    put: Vec<u64>,
}

/// What must be there after a crash behind so many operations.
#[derive(Debug, Clone, Copy)]
struct Promise {
    position: usize,
    generation: u64,
    cut: u64,
}

struct Script {
    disk: SimDisk,
    rng: fastrand::Rng,
    opened: Option<Opened>,
    table: u32,
    generations: Vec<Generation>,
    promises: Vec<Promise>,
    key: u64,
    cut: u64,
    is_written: bool,
}

fn options() -> StoreOptions {
    StoreOptions { segment_bytes: 20 << 10, checkpoint_log_bytes: 40 << 10, ..Default::default() }
}

impl Script {
    fn new(disk: SimDisk, seed: u64) -> Script {
        let rng = fastrand::Rng::with_seed(seed);
        let mut script = Script {
            disk,
            rng,
            opened: None,
            table: 1,
            generations: Vec::new(),
            promises: Vec::new(),
            key: 0,
            cut: 0,
            is_written: false,
        };
        script.reopen();
        let tables = script.opened().store.tables();
        if tables.is_empty() {
            script.opened().store.add_table(schema("accounts")).unwrap();
        }
        script
    }

    fn opened(&mut self) -> &mut Opened {
        self.opened.as_mut().unwrap()
    }

    /// Goes on as another process does after this one was killed.
    fn reopen(&mut self) {
        self.opened = None;
        let opened = open_with(self.disk.clone(), &options()).unwrap();
        if self.is_written {
            assert_eq!(opened.recovered.cut, self.cut, "a kill loses nothing");
        }
        let base: BTreeSet<u64> = opened.rows.keys().map(|(_, key)| key[0]).collect();
        self.key = self.key.max(base.last().copied().unwrap_or(0));
        self.promises.push(Promise {
            position: self.disk.position(),
            generation: opened.recovered.last_generation,
            cut: opened.recovered.cut,
        });
        // A script may begin with what another one has left.
        let number = opened.recovered.last_generation;
        if self.generations.iter().all(|generation| generation.number != number) {
            self.generations.push(Generation { number, base: base.clone(), put: Vec::new() });
        }
        let number = opened.recovered.generation;
        self.generations.retain(|generation| generation.number < number);
        self.generations.push(Generation { number, base, put: Vec::new() });
        self.is_written = false;
        self.opened = Some(opened);
    }

    fn promise(&mut self) {
        if self.is_written {
            let (position, cut) = (self.disk.position(), self.cut);
            let generation = self.generations.last().unwrap().number;
            self.promises.push(Promise { position, generation, cut });
        }
    }

    fn round(&mut self) {
        let count = match self.rng.u64(..8) {
            0 => 0,
            1 => self.rng.u64(400..600),
            2 => self.rng.u64(80..300),
            _ => self.rng.u64(1..4),
        };
        let table = self.table;
        let mut records = Vec::new();
        for _ in 0..count {
            self.key += 1;
            records.extend(put(self.key, table, self.key, self.key));
            self.generations.last_mut().unwrap().put.push(self.key);
        }
        let cut = match self.rng.u64(..4) {
            0 => self.cut,
            1 => self.rng.u64(self.cut..=self.key),
            _ => self.key,
        };
        if !self.is_written && count == 0 && cut == 0 {
            return;
        }
        self.opened().log.write(&[&records], cut).unwrap();
        (self.cut, self.is_written) = (cut, true);
    }

    fn step(&mut self) {
        match self.rng.u64(..20) {
            0..9 => self.round(),
            9..12 => {
                self.opened().log.sync().unwrap();
                self.promise();
            }
            12 => self.opened().log.prepare().unwrap(),
            13..15 => self.opened().log.confirm().unwrap(),
            15 => {
                self.opened().store.checkpoint().unwrap();
                self.promise();
            }
            16..18 => {
                // Creations and writes before and behind the end of the segment in use.
                self.disk.fail(self.rng.u64(1..9), Fault::StorageFull);
                match self.opened().store.checkpoint() {
                    Ok(_) | Err(StoreError::Full { .. } | StoreError::Log(_)) => {}
                    Err(error) => panic!("{error}"),
                }
                self.disk.clear_faults();
            }
            18 => {
                let to = SimDisk::new();
                let opened = self.opened();
                let done = opened.store.backup(std::sync::Arc::new(to.clone())).unwrap();
                let copied = open(to).unwrap();
                let (generation, cut) = (copied.recovered.last_generation, copied.recovered.cut);
                assert_eq!((generation, cut), (done.generation, done.cut));
                self.check(&copied, usize::MAX);
            }
            _ => self.reopen(),
        }
    }

    /// Checks what was recovered after a crash behind so many operations.
    fn check(&self, opened: &Opened, position: usize) {
        let (number, cut) = (opened.recovered.last_generation, opened.recovered.cut);
        let found: BTreeSet<u64> = opened.rows.keys().map(|(_, key)| key[0]).collect();
        let expected = match self.generations.iter().find(|one| one.number == number) {
            Some(generation) => {
                let put = generation.put.iter().copied().filter(|key| *key <= cut);
                generation.base.iter().copied().chain(put).collect()
            }
            None => BTreeSet::new(),
        };
        let lacks: Vec<_> = expected.difference(&found).collect();
        let has: Vec<_> = found.difference(&expected).collect();
        assert!(found == expected, "generation {number}, cut {cut}: lacks {lacks:?}, has {has:?}");
        for promise in self.promises.iter().filter(|one| one.position <= position) {
            let is_kept = (number, cut) >= (promise.generation, promise.cut);
            assert!(is_kept || position == usize::MAX, "{promise:?}, and {number}, {cut}");
        }
    }
}

fn few() -> CrashOptions {
    CrashOptions { exhaustive: 1, pieces: 2, samples: 1, ..CrashOptions::default() }
}

#[test]
fn rounds_of_all_sizes_survive_a_crash_and_a_crash_in_recovery() {
    let seed: u64 = std::env::var("CANDIDE_SEED").map_or(0, |seed| seed.parse().unwrap());
    let count = std::env::var("CANDIDE_SCRIPTS").map_or(2, |count| count.parse().unwrap());
    let mut states = 0u64;
    for seed in seed..seed + count {
        let mut script = Script::new(SimDisk::new(), seed);
        (0..14).for_each(|_| script.step());
        script.opened = None;
        let options = CrashOptions { seed, ..few() };
        for state in script.disk.crash_states(&options) {
            let disk = state.disk();
            let result = open_with(disk.clone(), &options_of(seed));
            let opened = result.unwrap_or_else(|e| panic!("{seed}: {}{e}", state.describe()));
            script.check(&opened, state.id().position);
            drop(opened);
            states += 1;
            if !states.is_multiple_of(40) {
                continue;
            }
            // The next process continues, and crashes, too.
            let mut next = Script::new(disk.clone(), seed + states);
            (0..6).for_each(|_| next.step());
            next.opened = None;
            for state in disk.crash_states(&CrashOptions { pieces: 1, samples: 1, ..options }) {
                let result = open_with(state.disk(), &options_of(seed));
                let opened = result.unwrap_or_else(|e| panic!("{seed}: {}{e}", state.describe()));
                let (number, cut) = (opened.recovered.last_generation, opened.recovered.cut);
                let first = next.promises[0];
                assert!((number, cut) >= (first.generation, first.cut));
                next.check(&opened, state.id().position);
            }
        }
    }
    println!("{states} states");
}

/// A process is killed. Each of the next ones fails at a sync, which loses what it was for. Then
/// one succeeds, and power is lost.
#[test]
fn recovered_changes_are_durable_after_failed_openings() {
    for seed in 0..2 {
        let mut script = Script::new(SimDisk::new(), seed);
        (0..14).for_each(|_| script.step());
        script.opened = None;
        for position in (0..=script.disk.position()).rev().step_by(3) {
            let disk = script.disk.at(position);
            let mut failures = 0;
            for n in 1.. {
                disk.fail(n, Fault::SyncLoses);
                failures += u64::from(open_with(disk.clone(), &options()).is_err());
                if disk.pending_faults() > 0 {
                    break;
                }
            }
            disk.clear_faults();
            assert!(failures > 1, "{failures} failures");
            let last = disk.position();
            let killed = open_with(script.disk.at(position), &options()).unwrap().recovered;
            for state in disk.crash_states(&CrashOptions { first: last, last, ..few() }) {
                let opened = open_with(state.disk(), &options())
                    .unwrap_or_else(|error| panic!("{seed}: {}{error}", state.describe()));
                script.check(&opened, position);
                let found = (opened.recovered.last_generation, opened.recovered.cut);
                assert_eq!(found, (killed.last_generation, killed.cut));
            }
        }
    }
}

/// Returns options with segments of another size than those that were written with.
fn options_of(seed: u64) -> StoreOptions {
    StoreOptions { segment_bytes: (12 + 4 * (seed % 4)) << 10, ..options() }
}
