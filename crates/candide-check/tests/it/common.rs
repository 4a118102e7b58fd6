//! Small random histories, good and bad ones, for the tests of checkers.

use candide_check::{Access, Event, Forgotten, Key, Scan, Transaction};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Table and key.
pub type Row = (u16, Key);

/// A generator of numbers by splitmix64.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Mixes a list up.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

/// What histories are made of.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub transactions: u64,
    pub keys: u64,
    pub groups: u8,
    /// How far transactions overlap, in transactions.
    pub overlap: u64,
    /// How often a read goes wrong, in a thousand.
    pub wrong: u64,
    /// How often a transaction is not where it should be in real time, in a hundred.
    pub shifted: u64,
    /// How often an attempt aborts, in a hundred.
    pub aborted: u64,
    /// How often a transaction goes through a range, in a hundred.
    pub scans: u64,
    /// How often a transaction looks back, in a hundred.
    pub look_backs: u64,
}

impl Shape {
    pub const SMALL: Self = Self {
        transactions: 7,
        keys: 3,
        groups: 2,
        overlap: 3,
        wrong: 40,
        shifted: 15,
        aborted: 10,
        scans: 30,
        look_backs: 20,
    };
}

/// The versions of a row's groups, 0 for never written, and whether the row exists.
#[derive(Debug, Clone)]
struct State {
    versions: Vec<u64>,
    present: bool,
}

/// A random history. With `wrong` and `shifted` at 0 it is serializable, and strictly so.
pub fn history(random: &mut Random, shape: Shape) -> Vec<Event> {
    let rows: Vec<Row> = (0..shape.keys).map(|key| ((key % 2) as u16, words(key / 2))).collect();
    let mut state: BTreeMap<Row, State> = rows
        .iter()
        .map(|row| (row.clone(), State { versions: vec![0; shape.groups.into()], present: false }))
        .collect();
    let mut forgotten = Vec::new();
    let mut transactions = Vec::new();
    let mut states = Vec::new();
    // First the writes, one transaction after another.
    for number in 0..shape.transactions {
        states.push(state.clone());
        let mut transaction = timed(random, shape, number);
        if random.percent(shape.look_backs) {
            // To what the transaction before has written, if that; and for as long as it likes.
            let mut as_of = number * 10 + 90 + random.below(10);
            if random.below(1000) < 2 * shape.wrong {
                as_of = (as_of + random.below(60)).saturating_sub(30);
            }
            transaction.as_of = Some(as_of);
            let late =
                transaction.ended / 4 / shape.transactions + 10 * random.below(3 * shape.overlap);
            transaction.ended = unique(shape, late, number, 3);
        } else if transaction.committed {
            for _ in 0..random.below(3) {
                let row = &rows[random.below(shape.keys) as usize];
                if transaction
                    .writes
                    .iter()
                    .all(|write| (write.table, &write.key) != (row.0, &row.1))
                {
                    let mut skip = 0;
                    if random.below(1000) < shape.wrong {
                        skip = random.below(60);
                    }
                    let version = (number * 10 + 100).saturating_sub(skip);
                    let state = state.get_mut(row).expect("every row has a state");
                    write(random, row, state, version, &mut transaction.writes);
                    if !state.present && random.percent(70) {
                        // A transaction that ran when the row was deleted takes effect at most one
                        // overlap later, and ends soon after.
                        let late = number * 10 + 25 * shape.overlap + 1 + random.below(20);
                        let at = unique(shape, late, number, 2);
                        forgotten.push(Forgotten {
                            table: row.0,
                            key: row.1.clone(),
                            version: state.versions[0],
                            at,
                        });
                    }
                }
            }
        }
        transactions.push(transaction);
    }
    // Then the reads, since the time at which a delete was forgotten decides how a key is read.
    for (number, transaction) in transactions.iter_mut().enumerate() {
        let mut seen = &states[number];
        if random.below(1000) < 3 * shape.wrong {
            let near = number as u64 + 3;
            seen =
                &states[near.saturating_sub(random.below(6)).min(shape.transactions - 1) as usize];
        }
        for _ in 0..random.below(4) {
            let row = &rows[random.below(shape.keys) as usize];
            let seen = if random.below(1000) < shape.wrong {
                &states[random.below(number as u64 + 1) as usize]
            } else {
                seen
            };
            let group = random.below(shape.groups.into()) as u8;
            let mut access = read(random, row, &seen[row], group, transaction, &forgotten);
            if random.below(5000) < shape.wrong {
                access.version = access.version.map(|version| version + random.below(2));
                access.present ^= random.percent(20);
            }
            transaction.reads.push(access);
        }
        if random.percent(shape.scans) {
            let scan = range(random, shape);
            for row in rows.iter().filter(|row| contains(&scan, row)) {
                let access = read(random, row, &seen[row], 0, transaction, &forgotten);
                let left_out = access.version.is_none() || random.below(1000) < shape.wrong;
                if !left_out {
                    transaction.reads.push(access);
                }
            }
            transaction.scans.push(scan);
        }
    }
    let forgotten = forgotten.into_iter().map(Event::Forgotten);
    transactions.into_iter().map(Event::Transaction).chain(forgotten).collect()
}

/// A version of a key that has a row.
pub(crate) fn row(key: u64, version: u64) -> Access {
    Access { table: 0, key: [key].into(), group: 0, version: Some(version), present: true }
}

/// A version of a key that has none, 0 for a key that has left no trace.
pub(crate) fn no_row(key: u64, version: u64) -> Access {
    Access { version: (version > 0).then_some(version), present: false, ..row(key, version) }
}

/// A transaction of a session of its own, from one time to another.
pub(crate) fn transaction(
    session: u64,
    times: (u64, u64),
    reads: &[Access],
    writes: &[Access],
) -> Transaction {
    Transaction {
        session,
        begun: times.0,
        ended: times.1,
        committed: true,
        reads: reads.to_vec(),
        scans: Vec::new(),
        writes: writes.to_vec(),
        as_of: None,
    }
}

/// The words of a key, sometimes one and sometimes two.
fn words(number: u64) -> Key {
    if number.is_multiple_of(3) { [number].into() } else { [number - number % 3, number].into() }
}

/// A transaction that does nothing, in its time. Transaction `n` takes effect at `10n`; no two
/// events have the same time.
fn timed(random: &mut Random, shape: Shape, number: u64) -> Transaction {
    let mut effect = number * 10 + 10 * shape.overlap;
    if random.percent(shape.shifted) {
        effect =
            (effect + 10 * random.below(2 * shape.overlap + 1)).saturating_sub(10 * shape.overlap);
    }
    let span = 10 * shape.overlap;
    let (before, after) = (random.below(span + 1) / 2, random.below(span + 1) / 2);
    let (begun, ended) = (effect - before.min(effect), effect + after);
    let (begun, ended) = (unique(shape, begun, number, 0), unique(shape, ended, number, 1));
    let committed = !random.percent(shape.aborted);
    Transaction { committed, ..transaction(number, (begun, ended), &[], &[]) }
}

/// A time at which nothing else happens, of one of four events of a transaction.
fn unique(shape: Shape, time: u64, number: u64, event: u64) -> u64 {
    4 * (time * shape.transactions + number) + event
}

fn write(
    random: &mut Random,
    row: &Row,
    state: &mut State,
    version: u64,
    writes: &mut Vec<Access>,
) {
    let (table, key) = row.clone();
    let mut put = |group: usize, state: &mut State| {
        state.versions[group] = version;
        let (group, version, present) = (group as u8, Some(version), state.present);
        writes.push(Access { table, key: key.clone(), group, version, present });
    };
    let groups = state.versions.len();
    if state.present && random.percent(60) {
        put(random.below(groups as u64) as usize, state);
    } else {
        state.present = !state.present;
        (0..groups).for_each(|group| put(group, state));
    }
}

fn read(
    random: &mut Random,
    row: &Row,
    state: &State,
    group: u8,
    reader: &Transaction,
    forgotten: &[Forgotten],
) -> Access {
    let (table, key) = row.clone();
    if !state.present
        && state.versions[0] == unversioned(row, reader, forgotten)
        && random.percent(90)
    {
        return Access { table, key, group: 0, version: None, present: false };
    }
    let version = Some(state.versions[usize::from(group)]).filter(|version| *version > 0);
    Access { table, key, group, version, present: state.present }
}

/// The version that is read without one.
pub fn unversioned(row: &Row, reader: &Transaction, forgotten: &[Forgotten]) -> u64 {
    let of_row =
        forgotten.iter().filter(|forgotten| (forgotten.table, &forgotten.key) == (row.0, &row.1));
    let past =
        of_row.filter(|forgotten| forgotten.at < reader.ended).map(|forgotten| forgotten.version);
    past.filter(|version| reader.as_of.is_none_or(|as_of| *version <= as_of)).max().unwrap_or(0)
}

fn range(random: &mut Random, shape: Shape) -> Scan {
    let mut bound = || {
        let key = words(random.below(shape.keys.div_ceil(2)));
        match random.below(5) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    };
    let (from, to) = (bound(), bound());
    Scan { table: random.below(2) as u16, from, to }
}

/// Returns whether a row is in a range.
pub fn contains(scan: &Scan, row: &Row) -> bool {
    let after = match &scan.from {
        Bound::Included(from) => row.1 >= *from,
        Bound::Excluded(from) => row.1 > *from,
        Bound::Unbounded => true,
    };
    let before = match &scan.to {
        Bound::Included(to) => row.1 <= *to,
        Bound::Excluded(to) => row.1 < *to,
        Bound::Unbounded => true,
    };
    scan.table == row.0 && after && before
}

/// A history with a line for each event, in the order of time.
pub fn told(events: &[Event]) -> String {
    let told = |access: &Access| {
        let Access { table, key, group, version, present } = access;
        format!(
            "{table}/{key:?}/{group}@{}{}",
            version.unwrap_or(0),
            if *present { "" } else { "-" }
        )
    };
    let all = |accesses: &[Access]| accesses.iter().map(told).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<(u64, String)> = Vec::new();
    for event in events {
        lines.push(match event {
            Event::Forgotten(Forgotten { table, key, version, at }) => {
                (*at, format!("{at} forgotten {table}/{key:?}@{version}"))
            }
            Event::Transaction(Transaction { begun, ended, committed, reads, scans, writes, as_of, .. }) => {
                let scans: Vec<String> =
                    scans.iter().map(|s| format!("{}/{:?}..{:?}", s.table, s.from, s.to)).collect();
                let (reads, scans, writes) = (all(reads), scans.join(" "), all(writes));
                let as_of = as_of.map_or(String::new(), |as_of| format!(" as of {as_of}"));
                (*ended, format!("{begun}..{ended} {committed}{as_of} reads {reads} scans {scans} writes {writes}"))
            }
        });
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}
