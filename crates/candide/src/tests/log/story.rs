//! The events of a run, taken from its history and the stamps, and the properties that they must
//! have.

use super::disk::{Block, Logged, Told};
use super::replay::{Last, Replay, RowKey};
use crate::Session;
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::protocols::recorded::{Access, Event, Forgotten, Key, Scan, Transaction};
use candide_check::{Checker, Options, Verdict};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

/// The notes of one thread: for each of its transactions, the time at which the last attempt began,
/// and the stamp on which the result rests.
#[derive(Debug, Default)]
pub(crate) struct Witness(Vec<(u64, u64)>);

impl Witness {
    /// Notes the transaction that the session has just run.
    pub(crate) fn note<P: Protocol>(&mut self, session: &mut Session<Recorded<P>>) {
        let rests_on = session.rests_on();
        self.0.push((session.state_for_tests().attempt_for_tests().begun(), rests_on));
    }
}

/// A unit, by its row.
type Unit = (RowKey, u8);

/// A transaction that has committed, or has ended in an error that is true.
#[derive(Debug)]
struct Ended {
    transaction: Transaction,
    /// The stamp of its commit, or the one on which its result rests. Zero if the transaction was
    /// the engine's own.
    stamp: u64,
}

/// A write of a unit.
#[derive(Debug, Clone, Copy)]
struct Write {
    stamp: u64,
    /// The version in the log. Under protocols without versions, the recorder makes its own ones
    /// for the history.
    logged_as: u64,
    present: bool,
}

/// A run that has ended.
pub(crate) struct Story {
    name: &'static str,
    events: Vec<Event>,
    ended: Vec<Ended>,
    forgotten: HashMap<RowKey, Vec<Forgotten>>,
    /// The writes of each unit, by version.
    writes: BTreeMap<Unit, BTreeMap<u64, Write>>,
    logged: BTreeSet<u16>,
}

impl Story {
    /// Takes the history of a database.
    pub(crate) fn of<P: Protocol>(
        logged: &Logged<Recorded<P>>,
        witnesses: impl IntoIterator<Item = Witness>,
    ) -> Story {
        let stamps: HashMap<u64, u64> =
            witnesses.into_iter().flat_map(|witness| witness.0).collect();
        let common = &logged.db.inner.engine.common;
        let has_versions = !common.properties.applies_at_once;
        let mut story = Story {
            name: common.properties.name,
            events: logged.db.take_history().events,
            ended: Vec::new(),
            forgotten: HashMap::new(),
            writes: BTreeMap::new(),
            logged: super::replay::logged_tables(logged).into_keys().collect(),
        };
        for event in &story.events {
            match event {
                Event::Transaction(transaction) if transaction.committed => {
                    let stamp = stamps.get(&transaction.begun).copied().unwrap_or(0);
                    for write in &transaction.writes {
                        let version = write.version.expect("a write has a version");
                        let logged_as = if has_versions { version } else { stamp };
                        let unit = ((write.table, write.key.clone()), write.group);
                        let write = Write { stamp, logged_as, present: write.present };
                        story.writes.entry(unit).or_default().insert(version, write);
                    }
                    story.ended.push(Ended { transaction: transaction.clone(), stamp });
                }
                Event::Transaction(_) => {}
                Event::Forgotten(forgotten) => {
                    let row = (forgotten.table, forgotten.key.clone());
                    story.forgotten.entry(row).or_default().push(forgotten.clone());
                }
            }
        }
        story
    }

    /// Returns the number of transactions in the history.
    pub(crate) fn len(&self) -> usize {
        self.ended.len()
    }

    /// Asserts W: no transaction rests on a commit of a larger stamp. For a transaction that has
    /// written nothing, that is the stamp for which its acknowledgement waits.
    pub(crate) fn assert_recoverable(&self) {
        for ended in &self.ended {
            let Ended { transaction, stamp } = ended;
            let rests = |unit: &Unit, write: &Write| {
                assert!(
                    write.stamp <= *stamp,
                    "{}: {transaction:?} of stamp {stamp} rests on {write:?} of {unit:?}",
                    self.name
                );
            };
            for access in &transaction.reads {
                let unit = ((access.table, access.key.clone()), access.group);
                match access.version {
                    Some(version) => rests(&unit, self.write(&unit, version)),
                    None => self.for_absence(transaction, &unit.0, &rests),
                }
            }
            let read: BTreeSet<(u16, &Key)> =
                transaction.reads.iter().map(|read| (read.table, &read.key)).collect();
            for Scan { table, from, to } in &transaction.scans {
                let keys = self.forgotten.keys().filter(|(of, key)| {
                    of == table && is_within(key, from, to) && !read.contains(&(*table, key))
                });
                keys.for_each(|row| self.for_absence(transaction, row, &rests));
            }
            for access in &transaction.writes {
                let unit = ((access.table, access.key.clone()), access.group);
                let version = access.version.expect("a write has a version");
                if let Some((_, replaced)) = self.writes[&unit].range(..version).next_back() {
                    rests(&unit, replaced);
                }
            }
        }
    }

    fn write(&self, unit: &Unit, version: u64) -> &Write {
        let write = self.writes.get(unit).and_then(|writes| writes.get(&version));
        write.unwrap_or_else(|| panic!("{}: no write of {unit:?} has version {version}", self.name))
    }

    /// Calls `rests` with the delete on which it rests that a transaction has found no record for a
    /// key, if there was one.
    fn for_absence(&self, transaction: &Transaction, row: &RowKey, rests: &impl Fn(&Unit, &Write)) {
        let is_seen = |forgotten: &&Forgotten| match transaction.as_of {
            Some(time) => forgotten.version <= time,
            None => forgotten.at < transaction.ended,
        };
        let last = self.forgotten.get(row).into_iter().flatten().filter(is_seen);
        if let Some(last) = last.max_by_key(|forgotten| forgotten.version) {
            let unit = (row.clone(), 0);
            rests(&unit, self.write(&unit, last.version));
        }
    }

    /// Returns the commits, each with its stamp.
    fn commits(&self) -> impl Iterator<Item = &Ended> {
        self.ended.iter().filter(|ended| {
            ended.transaction.writes.iter().any(|write| self.logged.contains(&write.table))
        })
    }

    /// Asserts S: no commit has a smaller stamp than a commit that had ended when it began.
    pub(crate) fn assert_in_order_of_sessions(&self) {
        let mut ends: Vec<&Ended> = self.commits().collect();
        let mut begins = ends.clone();
        ends.sort_by_key(|ended| ended.transaction.ended);
        begins.sort_by_key(|ended| ended.transaction.begun);
        let (mut ends, mut largest) = (ends.into_iter().peekable(), 0);
        for Ended { transaction, stamp } in begins {
            while let Some(before) = ends.next_if(|end| end.transaction.ended < transaction.begun) {
                largest = largest.max(before.stamp);
            }
            let name = self.name;
            assert!(largest <= *stamp, "{name}: {stamp} after {largest}: {transaction:?}");
        }
    }

    /// Asserts that the recovery of the first blocks is the state of exactly the commits up to the
    /// cut of the last of these blocks, for each number of blocks. Asserts, too, that the prefix
    /// contains all commits that were reported as durable. Returns the states.
    pub(crate) fn assert_prefixes<P: Protocol>(
        &self,
        logged: &Logged<P>,
        told: &[Told],
    ) -> Vec<BTreeMap<Unit, Last>> {
        let blocks: Vec<Block> = logged.disk.written().blocks.clone();
        let mut commits: Vec<&Ended> = self.commits().collect();
        commits.sort_by_key(|ended| ended.stamp);
        let mut commits = commits.into_iter().peekable();
        let (mut replay, mut history) = (Replay::new(logged), BTreeMap::new());
        let mut states = Vec::new();
        for number in 0..=blocks.len() {
            if let Some(block) = number.checked_sub(1).map(|last| &blocks[last]) {
                replay.take(block);
            }
            while let Some(ended) = commits.next_if(|ended| ended.stamp <= replay.cut) {
                self.add(&mut history, ended);
            }
            let (name, cut) = (self.name, replay.cut);
            assert_eq!(replay.units, as_logged(&history), "{name}: Prefix({cut}), {number} blocks");
            let rows = replay.rows.keys().cloned().collect::<BTreeSet<_>>();
            let present = history.iter().filter(|(_, (_, write))| write.present);
            assert_eq!(rows, present.map(|((row, _), _)| row.clone()).collect(), "{name}");
            for Told { durable, .. } in told.iter().filter(|told| told.blocks == number) {
                let lost = commits.peek().filter(|ended| ended.stamp <= *durable);
                assert!(lost.is_none(), "{name}: {durable} is durable, but not {lost:?}");
                assert!(!replay.loses_up_to(*durable), "{name}: {durable} is said to be durable");
            }
            states.push(as_read(&history));
        }
        states
    }

    /// Adds the writes of a commit to a state.
    fn add(&self, state: &mut BTreeMap<Unit, (u64, Write)>, ended: &Ended) {
        for Access { table, key, group, version, .. } in &ended.transaction.writes {
            if !self.logged.contains(table) {
                continue;
            }
            let (unit, version) = (((*table, key.clone()), *group), version.expect("a version"));
            let write = *self.write(&unit, version);
            let last = state.entry(unit).or_insert((version, write));
            if last.0 < version {
                *last = (version, write);
            }
        }
    }

    /// Asserts R: the history remains serializable if one more transaction for each of these states
    /// has read it. Every key was written before the first of these states.
    pub(crate) fn judge<P: Protocol>(&self, states: &[BTreeMap<Unit, Last>]) -> Verdict {
        let options = Options { strict: P::STRICT, ..Options::default() };
        let mut checker = Checker::new(options);
        // The times are stretched, so that readers of prefixes begin before all other transactions
        // and end after them: they may look back by any time.
        const STRETCH: u64 = 1 << 16;
        let mut last = 0;
        for event in &self.events {
            let mut event = event.clone();
            match &mut event {
                Event::Transaction(transaction) => {
                    transaction.begun *= STRETCH;
                    transaction.ended *= STRETCH;
                    last = last.max(transaction.ended);
                }
                Event::Forgotten(forgotten) => forgotten.at *= STRETCH,
            }
            checker.feed(&event);
        }
        assert!((states.len() as u64) < STRETCH);
        for (number, state) in (1..).zip(states) {
            let read = |((row, group), last): (&Unit, &Last)| {
                // An absent row is read by its first group.
                (last.present || *group == 0).then(|| Access {
                    table: row.0,
                    key: row.1.clone(),
                    group: *group,
                    version: Some(last.version),
                    present: last.present,
                })
            };
            checker.feed(&Event::Transaction(Transaction {
                session: u64::MAX - number,
                begun: number,
                ended: last + number,
                committed: true,
                reads: state.iter().filter_map(read).collect(),
                scans: Vec::new(),
                writes: Vec::new(),
                as_of: None,
            }));
        }
        checker.finish().verdict
    }

    /// Asserts R, as [`Story::judge`] finds.
    pub(crate) fn assert_readable<P: Protocol>(&self, states: &[BTreeMap<Unit, Last>]) {
        match self.judge::<P>(states) {
            Verdict::Serializable => {}
            Verdict::Violated(violation) => panic!("{}: {violation}", self.name),
            Verdict::Inconclusive(doubt) => panic!("{}: {doubt}", self.name),
        }
    }

    /// Asserts W, S, the prefixes, and R if the protocol promises it. Every key was written before
    /// the first block.
    pub(crate) fn assert_all<P: Protocol>(&self, logged: &Logged<Recorded<P>>, told: &[Told]) {
        self.assert_recoverable();
        self.assert_in_order_of_sessions();
        let states = self.assert_prefixes(logged, told);
        if logged.db.inner.engine.common.properties.readable_cut {
            self.assert_readable::<P>(&states[1..]);
        }
    }
}

/// Returns a state with the versions that are in the log.
fn as_logged(state: &BTreeMap<Unit, (u64, Write)>) -> BTreeMap<Unit, Last> {
    let last = |write: &Write| Last { version: write.logged_as, present: write.present };
    state.iter().map(|(unit, (_, write))| (unit.clone(), last(write))).collect()
}

/// Returns a state with the versions that are in the history.
fn as_read(state: &BTreeMap<Unit, (u64, Write)>) -> BTreeMap<Unit, Last> {
    let last = |(version, write): &(u64, Write)| Last { version: *version, present: write.present };
    state.iter().map(|(unit, written)| (unit.clone(), last(written))).collect()
}

fn is_within(key: &Key, from: &Bound<Key>, to: &Bound<Key>) -> bool {
    let is_after = match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    };
    let is_before = match to {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    };
    is_after && is_before
}
