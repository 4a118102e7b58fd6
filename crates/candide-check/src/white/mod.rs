//! The checker of histories that say which version each read saw.
//!
//! # Why linear time suffices
//!
//! To tell from values alone whether a history is serializable is NP-complete (Papadimitriou, "The
//! serializability of concurrent database updates", JACM 1979), since the order of the writes of
//! each unit has to be guessed. Here the versions say it. Then which of two transactions comes
//! first is forced wherever they access the same unit, and a history is serializable exactly if
//! these dependencies have no cycle (Adya, "Weak Consistency", MIT 1999; "Elle", VLDB 2020, finds
//! them in histories of other databases). A cycle is found, or its absence shown, in time linear in
//! the dependencies, and between neighbouring versions there are not more of them than there are
//! reads and writes.
//!
//! # The dependencies
//!
//! * ww: from the writer of a version of a unit to the writer of its next one.
//! * wr: from the writer of a version to every reader of it.
//! * rw: from every reader of a version to the writer of the next one.
//! * predicate: an rw whose reader scanned a range and did not meet the key, or met no row. What it
//!   saw is the version that [`Forgotten`] says, or the initial version of the key, so the next
//!   version is the insert that it missed. From the delete that it saw to the reader there is a wr.
//! * real time, in a strict order: from each transaction to those that began after it had ended.
//!   Each end is a moment, and moments are a chain; a transaction comes before the moment of its
//!   end and after the last moment before its begin.
//!
//! A transaction that looked back to a time ([`Transaction::as_of`]) saw of each unit the highest
//! version that is not above it. That is no dependency but a check: no version that it read may be
//! above that time, and no version between the one read and that time may turn out to exist.
//!
//! A dependency on a later version than the next one follows from these. So the dependencies found
//! before stay true when a version turns out to lie between two others.
//!
//! # Bounded memory
//!
//! Transactions are processed in the order in which they ended, once the watermark is past that. A
//! transaction is *closed* when all unprocessed ones began later than it ended, by more than the
//! horizon. If then nothing live comes before it, it is on no cycle, whatever follows, and is
//! peeled off (`live`). The versions it overwrote are forgotten. A later transaction that refers to
//! one of them all the same missed a transaction that ended before it began: a violation if the
//! order is to be strict, and otherwise something that a longer horizon could decide, so that the
//! verdict is [`Inconclusive`](Verdict::Inconclusive). Transactions on a cycle, and what comes
//! after them, are never peeled; so no cycle is lost, however many windows it spans.
//!
//! Keys without a row are dropped when no live transaction saw them. The versions of the last
//! 65,536 of a table are remembered, and beyond these only the greatest of all, so a key that is
//! written again in a version not above that one is inconclusive, too. So is a key in a version not
//! above the latest time to which a forgotten transaction looked back that may have missed it.
//! Databases whose versions grow with time never come near this.

mod derive;
mod live;
mod units;
mod windows;

pub use windows::Windows;

use crate::anomaly::{Party, Violation};
use crate::graph::Kind;
use crate::history::{Access, Event, Forgotten, Scan, Transaction};
use live::{Live, NodeId};
use std::collections::VecDeque;
use units::Units;

/// The options of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether the serial order has to agree with real time: a transaction that began after another
    /// one had ended comes after it.
    pub strict: bool,
    /// Whether attempts that did not commit have to have seen a state of the same serial order,
    /// too.
    pub opaque: bool,
    /// How long after its end a transaction may be overtaken by one that begins then, on the clock
    /// of the transactions. Costs memory for all transactions of that time. A strict order needs
    /// none, since it allows no overtaking.
    pub horizon: u64,
}

impl Default for Options {
    /// Returns options for serializability in any order, with memory for the whole history, so that
    /// the verdict is never inconclusive.
    fn default() -> Self {
        Self { strict: false, opaque: false, horizon: u64::MAX }
    }
}

/// The verdict on whether a history is serializable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The history is serializable, in the sense of the options.
    Serializable,
    /// The history is not serializable.
    Violated(Box<Violation>),
    /// No violation was found, but something referred to what had been forgotten already. The text
    /// says to what, and what to do.
    Inconclusive(String),
}

/// The outcome of a check, with counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The verdict.
    pub verdict: Verdict,
    /// Transactions that were checked, among them aborted attempts if the options are opaque.
    pub transactions: u64,
    /// Transactions that committed. If there are none, the verdict shows nothing.
    pub committed: u64,
    /// Aborted attempts, checked or not.
    pub aborted: u64,
    /// Versions read, without those that scans did not meet.
    pub reads: u64,
    /// Versions written.
    pub writes: u64,
    /// Ranges gone through.
    pub scans: u64,
    /// Dependencies between transactions that were live at once, moments included.
    pub edges: u64,
    /// The most transactions and moments that were held at once.
    pub live_max: usize,
}

/// A transaction that was fed and is not yet processed.
#[derive(Debug)]
struct Fed {
    party: Party,
    sight: Sight,
    /// The place of its reads and then its writes in `items`.
    first: usize,
    reads: u32,
    writes: u32,
    scans: Box<[Scan]>,
    /// The earliest begin among the fed transactions that do not end before this one.
    begun_min: u64,
}

/// An access to an interned unit.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// The version; 0 for none.
    version: u64,
    unit: u32,
    present: bool,
}

/// A scan whose transaction is live.
#[derive(Debug)]
struct LiveScan {
    node: NodeId,
    sight: Sight,
    scan: Scan,
}

/// The times that say which deletes a transaction has seen by finding no record, and which other
/// versions it can have seen.
#[derive(Debug, Clone, Copy)]
struct Sight {
    ended: u64,
    /// The time it looked back to, if it did: of each unit it saw the highest version not above
    /// this.
    as_of: Option<u64>,
}

/// A read of a version whose writer has not been processed so far.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// The time by which the version's writer has been processed if it has one.
    deadline: u64,
    unit: u32,
    version: u64,
    reader: Party,
}

/// A checker of a history of any length, fed as it comes.
#[derive(Debug)]
pub struct Checker {
    options: Options,
    units: Units,
    live: Live,
    /// The fed transactions; those that end last come first, unless `unsorted`.
    fed: Vec<Fed>,
    unsorted: bool,
    items: Vec<Item>,
    items_live: usize,
    /// Every transaction that begins before this has been fed.
    watermark: u64,
    /// The latest end of all fed transactions.
    ended_max: u64,
    /// The transactions processed and not yet closed, in the order of their ends.
    closing: VecDeque<(u64, u32)>,
    /// The moments of ends that are live.
    moments: VecDeque<(u64, NodeId)>,
    scans: Vec<LiveScan>,
    pending: VecDeque<Pending>,
    /// A buffer that readers are collected in.
    readers: Vec<(NodeId, Kind)>,
    processed: u64,
    /// The number of processed transactions at which cycles are looked for next.
    look_at: u64,
    violation: Option<Box<Violation>>,
    doubt: Option<String>,
    summary: Summary,
}

/// The least number of transactions between two searches for cycles. The number is also several
/// times that of the transactions live at the last search, so that searching costs little.
const LOOK_MIN: u64 = 1 << 14;

/// The number of transactions after which peeling is done within a window, too, since what is held
/// then stays in the caches.
const PEEL_EVERY: u64 = 512;

impl Checker {
    /// Creates a checker of a history that begins with empty tables.
    pub fn new(options: Options) -> Self {
        let verdict = Verdict::Serializable;
        let (transactions, committed, aborted, reads, writes, scans, edges, live_max) =
            (0, 0, 0, 0, 0, 0, 0, 0);
        Self {
            options,
            units: Units::new(options.strict),
            live: Live::default(),
            fed: Vec::new(),
            unsorted: false,
            items: Vec::new(),
            items_live: 0,
            watermark: 0,
            ended_max: 0,
            closing: VecDeque::new(),
            moments: VecDeque::new(),
            scans: Vec::new(),
            pending: VecDeque::new(),
            readers: Vec::new(),
            processed: 0,
            look_at: LOOK_MIN,
            violation: None,
            doubt: None,
            summary: Summary {
                verdict,
                transactions,
                committed,
                aborted,
                reads,
                writes,
                scans,
                edges,
                live_max,
            },
        }
    }

    /// Takes a line of the history. Lines may come in any order, as far as
    /// [`advance`](Self::advance) allows.
    ///
    /// # Panics
    ///
    /// If the line came too late, that is, after an [`advance`](Self::advance) that says it had
    /// been fed; if a transaction did not end after it had begun, or ended at `u64::MAX`; or if a
    /// write has no version, or version 0.
    pub fn feed(&mut self, event: &Event) {
        if self.violation.is_some() {
            return;
        }
        match event {
            Event::Transaction(transaction) => self.feed_transaction(transaction),
            Event::Forgotten(Forgotten { table, key, version, at }) => {
                assert!(
                    *at >= self.watermark,
                    "forgotten at {at}, and fed after the watermark {}",
                    self.watermark
                );
                let unit = self.units.head(*table, key);
                self.units.forget(unit, *version, *at);
            }
        }
    }

    fn feed_transaction(&mut self, transaction: &Transaction) {
        let party = Party::from(transaction);
        let Party { begun, ended, .. } = party;
        assert!(
            begun >= self.watermark,
            "begun at {begun}, and fed after the watermark {}",
            self.watermark
        );
        assert!(
            begun < ended && ended < u64::MAX,
            "a transaction has a begin and then an end, not {begun} and {ended}"
        );
        self.summary.committed += u64::from(party.committed);
        self.summary.aborted += u64::from(!party.committed);
        if !party.committed && !self.options.opaque {
            return;
        }
        let writes: &[Access] = if party.committed { &transaction.writes } else { &[] };
        let first = self.items.len();
        for access in &transaction.reads {
            // A key without a record has no groups but the first.
            let group = if access.version.is_none() { 0 } else { access.group };
            self.feed_access(access, group);
        }
        for access in writes {
            assert!(
                access.version.is_some_and(|version| version > 0),
                "a write has a version above 0"
            );
            self.feed_access(access, access.group);
        }
        let (reads, writes) = (transaction.reads.len() as u32, writes.len() as u32);
        self.items_live += (reads + writes) as usize;
        self.ended_max = self.ended_max.max(party.ended);
        self.unsorted = true;
        let sight = Sight { ended, as_of: transaction.as_of };
        self.fed.push(Fed {
            party,
            sight,
            first,
            reads,
            writes,
            scans: transaction.scans.as_slice().into(),
            begun_min: 0,
        });
        self.summary.transactions += 1;
        self.summary.reads += u64::from(reads);
        self.summary.writes += u64::from(writes);
        self.summary.scans += transaction.scans.len() as u64;
    }

    fn feed_access(&mut self, access: &Access, group: u8) {
        let unit = self.units.intern(access.table, &access.key, group);
        self.units.get_mut(unit).pins += 1;
        let version = access.version.unwrap_or(0);
        if version == 0 {
            self.units.consider(unit);
        }
        self.items.push(Item { version, unit, present: access.present });
    }

    /// Processes the transactions that can be. Says that every transaction that began before
    /// `watermark` has been fed, and every row that was forgotten before it. A watermark below an
    /// earlier one says nothing new.
    pub fn advance(&mut self, watermark: u64) {
        self.watermark = self.watermark.max(watermark);
        self.sort_fed();
        self.meet_new_keys();
        let before = self.processed;
        while self.violation.is_none()
            && self.fed.last().is_some_and(|fed| fed.party.ended < watermark)
        {
            let fed = self.fed.pop().expect("there is one");
            self.process(&fed);
            if self.processed.is_multiple_of(PEEL_EVERY) {
                self.peel(watermark);
            }
        }
        self.judge_pending(watermark);
        if self.violation.is_some() {
            return;
        }
        self.compact_items();
        self.peel(watermark);
        let seen = (self.processed - before) as usize;
        self.units.sweep(2 * seen + 64, watermark, &self.live);
        if self.processed >= self.look_at {
            self.look_for_cycles();
            self.look_at = self.processed + (4 * self.live.count() as u64).max(LOOK_MIN);
        }
    }

    /// Returns a violation that was found so far. Most show only some time after they were fed.
    /// Lines fed after it are not checked.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_deref()
    }

    /// Returns the number of transactions and moments that are held.
    pub fn live(&self) -> usize {
        self.live.count() + self.fed.len()
    }

    /// Returns the number of units that are held.
    pub fn units(&self) -> usize {
        self.units.count()
    }

    /// Says that everything has been fed, and returns the verdict.
    pub fn finish(mut self) -> Summary {
        self.advance(u64::MAX);
        if self.violation.is_none() {
            self.look_for_cycles();
        }
        self.summary.edges = self.live.edges;
        self.summary.verdict = match (self.violation, self.doubt) {
            (Some(violation), _) => Verdict::Violated(violation),
            (None, Some(doubt)) => Verdict::Inconclusive(doubt),
            (None, None) => Verdict::Serializable,
        };
        self.summary
    }

    fn sort_fed(&mut self) {
        if std::mem::take(&mut self.unsorted) {
            self.fed.sort_by_key(|fed| std::cmp::Reverse(fed.party.ended));
            let mut begun_min = u64::MAX;
            for fed in &mut self.fed {
                begun_min = begun_min.min(fed.party.begun);
                fed.begun_min = begun_min;
            }
        }
    }

    /// Moves the items together when most have been processed.
    fn compact_items(&mut self) {
        if self.items.len() > 2 * self.items_live + 1024 {
            let mut items = Vec::with_capacity(2 * self.items_live + 1024);
            for fed in &mut self.fed {
                let range = fed.first..fed.first + (fed.reads + fed.writes) as usize;
                fed.first = items.len();
                items.extend_from_slice(&self.items[range]);
            }
            self.items = items;
        }
    }

    /// Closes the transactions that ended before everything unprocessed began, by more than the
    /// horizon.
    fn close(&mut self, watermark: u64) {
        let begun_min = self.fed.last().map_or(u64::MAX, |fed| fed.begun_min).min(watermark);
        let horizon = self.options.horizon;
        while let Some((ended, slot)) = self.closing.front().copied() {
            if ended.checked_add(horizon).is_none_or(|until| until >= begun_min) {
                break;
            }
            self.live.close(slot);
            self.closing.pop_front();
        }
    }

    fn peel(&mut self, watermark: u64) {
        self.summary.live_max = self.summary.live_max.max(self.live.count());
        self.close(watermark);
        let Self { live, units, .. } = self;
        live.peel(|unit, party| units.raise_floor(unit, party));
        while self.moments.front().is_some_and(|(_, moment)| !live.is_live(*moment)) {
            self.moments.pop_front();
        }
        self.scans.retain(|LiveScan { node, sight, scan }| {
            let is_live = live.is_live(*node);
            if !is_live && let Some(as_of) = sight.as_of {
                units.forget_look_back(scan.table, as_of);
            }
            is_live
        });
    }
}
