//! The checker of histories that state the version of each read.
//!
//! # Why linear time suffices
//!
//! The decision from values alone whether a history is serializable is NP-complete (Papadimitriou,
//! "The serializability of concurrent database updates", JACM 1979), since the order of the writes
//! of each unit is not known. Here the versions give that order. So if two transactions access the
//! same unit and one of them writes it, the order of the two is determined. A history is
//! serializable exactly if these dependencies have no cycle (Adya, "Weak Consistency", MIT 1999;
//! "Elle", VLDB 2020, finds them in histories of other databases). The search for a cycle takes
//! time linear in the number of dependencies. If only neighbouring versions count, there are no
//! more dependencies than reads and writes.
//!
//! # The dependencies
//!
//! * ww: from the writer of a version of a unit to the writer of the next version.
//! * wr: from the writer of a version to every reader of it.
//! * rw: from every reader of a version to the writer of the next version.
//! * predicate: an rw whose reader scanned a range and did not find the key, or found no row. The
//!   reader saw the version that [`Forgotten`] states, or the initial version of the key. So the
//!   next version is the insert that the reader did not see. If the reader saw a delete, there is
//!   also a wr from the writer of that delete to the reader.
//! * real time, in a strict order: from each transaction to all transactions that began after it
//!   had ended. Each end is a moment, and the moments form a chain. A transaction comes before the
//!   moment of its end and after the last moment before its begin.
//!
//! Suppose that a transaction looked back to a time ([`Transaction::as_of`]). Of each unit it must
//! have read the highest version not above that time. This rule gives no dependency but a check: no
//! version that the transaction read may be above that time, and no version may exist between the
//! version read and that time.
//!
//! Dependencies on versions after the next one follow from these dependencies. So the dependencies
//! found so far remain true if a further version is later found between two versions.
//!
//! # Bounded memory
//!
//! Transactions are processed in the order of their ends, once the watermark has passed the end. A
//! transaction is *closed* when every unprocessed transaction began later than its end plus the
//! horizon. If no live transaction comes before a closed transaction, the closed transaction can
//! never be on a cycle, and is peeled off (`live`). The versions that it overwrote are forgotten.
//! If a later transaction refers to a forgotten version, it did not see the writes of a transaction
//! that ended before it began. In a strict order that is a violation. In other orders a longer
//! horizon could decide the case, and the verdict is [`Inconclusive`](Verdict::Inconclusive).
//! Transactions on a cycle, and the transactions after them, are never peeled. So no cycle is lost,
//! however many windows the cycle spans.
//!
//! A key without a row is dropped when no live transaction has seen that the key has no row. For
//! the last 65,536 dropped keys of a table, the versions are remembered. For all earlier dropped
//! keys together, only the greatest version is remembered. If such an earlier key is written again
//! in a version not above that greatest version, the verdict is inconclusive, too. A forgotten
//! transaction that looked back may have read the key as absent. If the key gets a version not
//! above the latest time of such a look-back, the verdict is inconclusive as well. Databases whose
//! versions grow with time never come near these limits.

mod derive;
mod live;
mod sight;
mod units;
mod windows;

pub use windows::Windows;

use crate::anomaly::{Party, Violation};
use crate::graph::Kind;
use crate::history::{Access, Event, Forgotten, Scan, Transaction};
use live::{Live, NodeId};
use sight::Sight;
use std::collections::VecDeque;
use units::Units;

/// The options of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether the serial order has to agree with real time: a transaction that began after another
    /// had ended comes after the other.
    pub strict: bool,
    /// Whether attempts that did not commit must also have read a state of the same serial order.
    pub opaque: bool,
    /// A length of time on the clock of the transactions. A transaction that begins at most this
    /// time after another has ended may still precede the other in the serial order. All
    /// transactions of the last `horizon` are kept in memory. A strict order needs no horizon,
    /// since it allows no such precedence.
    pub horizon: u64,
}

impl Default for Options {
    /// Returns options for serializability in any order. The whole history is kept in memory, so
    /// that the verdict is never inconclusive.
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
    /// No violation was found, but the checker could not exclude one: some event referred to
    /// forgotten versions, or a search for a serial order was ended. The text says which, and what
    /// to do about forgotten versions.
    Inconclusive(String),
}

impl From<Result<(), Violation>> for Verdict {
    fn from(checked: Result<(), Violation>) -> Verdict {
        checked.map_or_else(
            |violation| Verdict::Violated(Box::new(violation)),
            |()| Verdict::Serializable,
        )
    }
}

/// The outcome of a check, with counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The verdict.
    pub verdict: Verdict,
    /// The number of transactions that were checked, including aborted attempts if
    /// [`Options::opaque`] is set.
    pub transactions: u64,
    /// The number of transactions that committed. If it is zero, the verdict shows nothing.
    pub committed: u64,
    /// The number of aborted attempts, checked or not.
    pub aborted: u64,
    /// The number of versions read, except the versions of keys that scans did not find.
    pub reads: u64,
    /// The number of versions written.
    pub writes: u64,
    /// The number of ranges scanned.
    pub scans: u64,
    /// The number of dependencies between transactions or moments that were live at the same time.
    pub edges: u64,
    /// The largest number of transactions and moments that were held at the same time.
    pub live_max: usize,
}

/// A transaction that has been fed and is not yet processed.
#[derive(Debug)]
struct Fed {
    party: Party,
    sight: Sight,
    /// The index in `items` of the transaction's first read. The writes follow the reads.
    first: usize,
    reads: u32,
    writes: u32,
    scans: Box<[Scan]>,
    /// The earliest begin of this transaction and of all fed transactions that end after it.
    begun_min: u64,
}

/// An access to an interned unit.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// The version; 0 if the access has no version.
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

/// A read of a version whose writer has not been processed yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// The time by which the version's writer has been processed, if that writer exists.
    deadline: u64,
    unit: u32,
    version: u64,
    reader: Party,
}

/// A checker of a history of any length. The history can be fed while it is being recorded.
#[derive(Debug)]
pub struct Checker {
    options: Options,
    units: Units,
    live: Live,
    /// The fed transactions. Unless `unsorted` is set, they are sorted, with the latest end first.
    fed: Vec<Fed>,
    unsorted: bool,
    items: Vec<Item>,
    items_live: usize,
    /// Every transaction that began before this time has been fed.
    watermark: u64,
    /// The latest end of all fed transactions.
    ended_max: u64,
    /// The transactions that are processed and not yet closed, in the order of their ends.
    closing: VecDeque<(u64, u32)>,
    /// The live moments of transactions' ends.
    moments: VecDeque<(u64, NodeId)>,
    scans: Vec<LiveScan>,
    pending: VecDeque<Pending>,
    /// A buffer for collecting readers.
    readers: Vec<(NodeId, Kind)>,
    processed: u64,
    /// The value of `processed` at which the next search for cycles takes place.
    look_at: u64,
    violation: Option<Box<Violation>>,
    doubt: Option<String>,
    summary: Summary,
}

/// The least number of transactions between two searches for cycles. The actual number is also at
/// least several times the number of transactions that were live at the last search, so that the
/// searches cost little.
const LOOK_MIN: u64 = 1 << 14;

/// The number of transactions after which nodes are peeled even within a window. With this number,
/// the data held stays in the processor's caches.
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

    /// Feeds a line of the history. Lines may come in any order, within the limits that
    /// [`advance`](Self::advance) sets.
    ///
    /// # Panics
    ///
    /// If the line comes after an [`advance`](Self::advance) to a later time. If a transaction does
    /// not end after its begin, or ends at `u64::MAX`. If a write has no version, or version 0.
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
            // A key without a record has only its first group.
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

    /// Processes the transactions that can be processed. The caller asserts that every transaction
    /// that began before `watermark` has been fed, and every row that was forgotten before
    /// `watermark`. A `watermark` below an earlier one has no effect.
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

    /// Returns the violation that has been found; `None` if no violation has been found so far.
    /// Most violations are found only some time after their transactions were fed. Lines fed after
    /// a violation are not checked.
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

    /// Ends the history and returns the verdict.
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

    /// Removes the items of processed transactions once they are more than half of all items.
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

    /// Closes each transaction that ended, by more than the horizon, before every unprocessed
    /// transaction began.
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
