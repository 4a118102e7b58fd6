//! The policies of a database's tables, by the numbers of the tables.

#![forbid(unsafe_code)]

use crate::policy::{MoccOptions, Policies, Policy};
use crate::record::CellAt;
use crate::sync::{AtomicBool, AtomicU64, MODELLED, Mutex, Ordering, full_fence, thread};
use std::sync::OnceLock;

/// The number of tables in a group.
const GROUP: usize = 256;
const GROUPS: usize = (1 << u16::BITS) / GROUP;

/// The last rank, that of a table to which none was given.
pub(crate) const LAST_RANK: u16 = u16::MAX;
/// The first bit of a rank's distance from the last one, behind the number of a policy.
const RANK: u32 = 16;
/// The bits of the number of a policy.
const POLICY: u64 = (1 << RANK) - 1;
/// The number of looks whether commits still use ranks, before a change of a rank gives up.
const LOOKS_MAX: u32 = if MODELLED { 100 } else { 1_000 };

/// The numbers of the policies of some tables.
type Group = Box<[TableWords; GROUP]>;

/// The words of a table.
#[derive(Debug, Default)]
struct TableWords {
    policy: AtomicU64,
    /// The frozen units, one bit each.
    frozen: AtomicU64,
    /// Whether the rows are permanent.
    permanent: AtomicBool,
}

/// The policies of a database's tables. A table's policy may change while transactions run; each
/// of them then uses the old one or the new one.
#[derive(Debug)]
pub(crate) struct TablePolicies {
    /// The policies of new tables.
    pub(crate) chosen: Policies,
    /// Whether the rows of a table whose policy locks have different policies.
    is_by_row: bool,
    /// Whether a table has had a policy that learns from conflicts.
    learns: AtomicBool,
    /// Whether a table has had a policy whose commits lock before phase 1.
    locks_before_phase_1: AtomicBool,
    /// Whether a table's rank is about to change, so that no commit may begin to use ranks.
    ranks_change: AtomicBool,
    /// The number of each table's policy, and its distance from [`LAST_RANK`] in front of it; in
    /// groups of [`GROUP`] tables. A group is made when a table first gets a policy other than the
    /// first one, which has number zero.
    groups: OnceLock<Box<[OnceLock<Group>]>>,
    /// Held while a table's policy or rank is changed. A table that is dropped meanwhile keeps its
    /// number until the change has ended.
    pub(crate) changes: Mutex<()>,
}

impl TablePolicies {
    pub(super) fn new(chosen: Policies) -> TablePolicies {
        let is_by_row = chosen.is_by_row();
        let (learns, locks_before_phase_1) =
            (AtomicBool::new(is_by_row), AtomicBool::new(is_by_row));
        TablePolicies {
            chosen,
            is_by_row,
            learns,
            locks_before_phase_1,
            ranks_change: AtomicBool::new(false),
            groups: OnceLock::new(),
            changes: Mutex::new(()),
        }
    }

    /// Returns the settings of the policies that learn from conflicts.
    #[inline]
    pub(crate) fn mocc(&self) -> MoccOptions {
        self.chosen.mocc_options()
    }

    /// Returns whether a table has had a policy that learns from conflicts.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn learns(&self) -> bool {
        self.learns.load(Ordering::Relaxed)
    }

    /// Returns whether a table has had a policy whose commits lock before phase 1.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn lock_before_phase_1(&self) -> bool {
        self.locks_before_phase_1.load(Ordering::Relaxed)
    }

    /// Returns the words of a table, if it has ever had a policy other than the first one.
    #[inline]
    fn word(&self, table: u16) -> Option<&AtomicU64> {
        self.words(table).map(|words| &words.policy)
    }

    #[inline]
    fn words(&self, table: u16) -> Option<&TableWords> {
        let (group, place) = (usize::from(table) / GROUP, usize::from(table) % GROUP);
        self.groups.get()?[group].get().map(|words| &words[place])
    }

    /// Returns whether the words of a unit never change, once its row is there.
    pub(crate) fn is_frozen(&self, at: CellAt) -> bool {
        // Relaxed: a change of these bits waits for the transactions that may have loaded them.
        let frozen = |words: &TableWords| words.frozen.load(Ordering::Relaxed);
        self.words(at.table()).map_or(0, frozen) >> at.unit() & 1 != 0
    }

    /// Returns whether the rows of a table are permanent.
    pub(crate) fn is_permanent(&self, table: u16) -> bool {
        // Relaxed: rows become permanent before a program can use the table.
        self.words(table).is_some_and(|words| words.permanent.load(Ordering::Relaxed))
    }

    /// Sets whether the rows of a table are permanent.
    pub(crate) fn set_permanent(&self, table: u16, is_permanent: bool) {
        if is_permanent || self.words(table).is_some() {
            self.make_words(table).permanent.store(is_permanent, Ordering::Relaxed);
        }
    }

    /// Sets the frozen units of a table, one bit each.
    pub(crate) fn freeze(&self, table: u16, units: u64) {
        if units != 0 || self.words(table).is_some() {
            self.make_words(table).frozen.store(units, Ordering::Relaxed);
        }
    }

    /// Returns the policy of table `table`.
    #[inline]
    pub(crate) fn of(&self, table: u16) -> Policy {
        // Relaxed: a transaction may use the old policy or the new one.
        Policy::numbered(self.word(table).map_or(0, |word| word.load(Ordering::Relaxed)) as u8)
    }

    /// Returns the rank of table `table`.
    #[inline]
    pub(crate) fn rank_of(&self, table: u16) -> u16 {
        // Relaxed: ranks change while no commit uses them.
        let word = self.word(table).map_or(0, |word| word.load(Ordering::Relaxed));
        LAST_RANK - (word >> RANK) as u16
    }

    /// Returns whether a commit must not begin to use ranks. The session's desk shows the attempt.
    pub(super) fn ranks_change(&self) -> bool {
        full_fence(); // E31
        self.ranks_change.load(Ordering::Acquire) // E31
    }

    /// Sets the rank of table `table` when `are_unused` says that no commit uses ranks. Returns
    /// false, and has done nothing, if that takes too long. The caller holds the lock of changes.
    pub(super) fn set_rank(&self, table: u16, rank: u16, are_unused: impl Fn() -> bool) -> bool {
        self.ranks_change.store(true, Ordering::Relaxed);
        // A commit that begins now sees the flag, or its desk shows the attempt.
        full_fence(); // E31
        let mut looks = 0;
        while !are_unused() && looks < LOOKS_MAX {
            looks += 1;
            thread::yield_now();
        }
        let is_possible = looks < LOOKS_MAX;
        if is_possible {
            let distance = u64::from(LAST_RANK - rank) << RANK;
            change(&self.make_words(table).policy, |word| word & POLICY | distance);
        }
        // Release: a commit that finds no change uses the new rank (E31).
        self.ranks_change.store(false, Ordering::Release);
        is_possible
    }

    /// Returns the policy for the cell `at`: that of its table, or its own if rows have different
    /// ones.
    #[inline]
    pub(crate) fn at(&self, at: CellAt) -> Policy {
        let policy = self.of(at.table());
        if !self.is_by_row || !policy.locks() {
            return policy;
        }
        // Cells of neighbouring rows are apart by a multiple of eight bytes.
        let mixed = at.address().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> u32::BITS;
        Policy::ALL[mixed as usize % Policy::ALL.len()]
    }

    /// Sets the policy of a new table, which has the last rank, also if a dropped table had its
    /// number.
    pub(crate) fn begin(&self, table: u16, policy: Policy) {
        if let Some(word) = self.word(table) {
            // Relaxed: no transaction uses the table.
            change(word, |word| word & POLICY);
        }
        self.set(table, policy);
    }

    /// Sets the policy of table `table`.
    pub(crate) fn set(&self, table: u16, policy: Policy) {
        if policy == Policy::default() && self.of(table) == policy {
            return;
        }
        if policy.learns() {
            self.learns.store(true, Ordering::Relaxed);
        }
        if policy.locks_before_phase_1() {
            self.locks_before_phase_1.store(true, Ordering::Relaxed);
        }
        change(&self.make_words(table).policy, |word| word & !POLICY | policy as u64);
    }

    /// Returns the words of a table, which are made if need be.
    fn make_words(&self, table: u16) -> &TableWords {
        let (group, place) = (usize::from(table) / GROUP, usize::from(table) % GROUP);
        let groups = self.groups.get_or_init(|| (0..GROUPS).map(|_| OnceLock::new()).collect());
        let words = groups[group].get_or_init(|| {
            // An array of a model's words would take too much of the stack.
            let words: Vec<TableWords> = (0..GROUP).map(|_| TableWords::default()).collect();
            words.try_into().expect("there are as many as a group has")
        });
        &words[place]
    }
}

/// Changes the word of a table. Its policy and its rank may be changed at the same time.
fn change(word: &AtomicU64, to: impl Fn(u64) -> u64) {
    let mut was = word.load(Ordering::Relaxed);
    while let Err(now) = word.compare_exchange(was, to(was), Ordering::Relaxed, Ordering::Relaxed) {
        was = now;
    }
}
