//! The policies of a database's tables, by the numbers of the tables.

#![forbid(unsafe_code)]

use crate::policy::{MoccOptions, Policies, Policy};
use crate::record::CellAt;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use std::sync::OnceLock;

/// The number of tables in a group.
const GROUP: usize = 256;
const GROUPS: usize = (1 << u16::BITS) / GROUP;

/// The numbers of the policies of some tables.
type Group = Box<[AtomicU64; GROUP]>;

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
    /// Whether a table has had a policy that waits in the order of addresses.
    waits_in_order: AtomicBool,
    /// The number of each table's policy, in groups of [`GROUP`] tables. A group is made when a
    /// table first gets a policy other than the first one, which has number zero.
    groups: OnceLock<Box<[OnceLock<Group>]>>,
    /// Held while a table's policy is changed.
    pub(crate) changes: Mutex<()>,
}

impl TablePolicies {
    pub(super) fn new(chosen: Policies) -> TablePolicies {
        let is_by_row = chosen.is_by_row();
        let (learns, waits_in_order) = (AtomicBool::new(is_by_row), AtomicBool::new(is_by_row));
        TablePolicies {
            chosen,
            is_by_row,
            learns,
            waits_in_order,
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
    #[inline(always)]
    pub(crate) fn learns(&self) -> bool {
        self.learns.load(Ordering::Relaxed)
    }

    /// Returns whether a table has had a policy that waits in the order of addresses.
    #[inline(always)]
    pub(crate) fn wait_in_order(&self) -> bool {
        self.waits_in_order.load(Ordering::Relaxed)
    }

    /// Returns the policy of table `table`.
    #[inline]
    pub(crate) fn of(&self, table: u16) -> Policy {
        let (group, place) = (usize::from(table) / GROUP, usize::from(table) % GROUP);
        let numbers = self.groups.get().and_then(|groups| groups[group].get());
        // Relaxed: a transaction may use the old policy or the new one.
        Policy::numbered(numbers.map_or(0, |numbers| numbers[place].load(Ordering::Relaxed)) as u8)
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

    /// Sets the policy of table `table`.
    pub(crate) fn set(&self, table: u16, policy: Policy) {
        let (group, place) = (usize::from(table) / GROUP, usize::from(table) % GROUP);
        if policy == Policy::default() && self.of(table) == policy {
            return;
        }
        if policy.learns() {
            self.learns.store(true, Ordering::Relaxed);
        }
        if policy.waits_in_order() {
            self.waits_in_order.store(true, Ordering::Relaxed);
        }
        let groups = self.groups.get_or_init(|| (0..GROUPS).map(|_| OnceLock::new()).collect());
        let numbers =
            groups[group].get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0))));
        numbers[place].store(policy as u64, Ordering::Relaxed);
    }
}
