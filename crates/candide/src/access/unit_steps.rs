//! The steps of each unit: the first one that waits, and the last one that has run.
//!
//! With these, a read need not look for steps among all operations of its unit, and a step that
//! runs before the commit begins with the result of the step before it.

#![forbid(unsafe_code)]

use super::by_address::AddressMap;
use super::item::NONE;

/// The steps of all units of a write set. An operation is named by its number.
#[derive(Default)]
pub(super) struct UnitSteps {
    /// The steps of each unit, by the unit's address.
    units: AddressMap<OfUnit>,
    /// All steps in the order in which they were staged.
    staged: Vec<Staged>,
}

/// The steps of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OfUnit {
    /// The first operation that is a step which has not run, or [`NONE`].
    pub(super) waiting: u32,
    /// The last operation that was a step and has run, or [`NONE`]. All operations of the unit
    /// before it have been applied without a failure. [`NONE`] is always right.
    pub(super) done: u32,
}

impl OfUnit {
    const NOTHING: OfUnit = OfUnit { waiting: NONE, done: NONE };
}

#[derive(Debug, Clone, Copy)]
struct Staged {
    address: u64,
    operation: u32,
    /// The number of the step's code.
    code: u32,
}

impl UnitSteps {
    pub(super) fn clear(&mut self) {
        self.units.clear();
        self.staged.clear();
    }

    /// Returns the steps of the unit with this address.
    pub(super) fn of(&self, address: u64) -> OfUnit {
        self.units.get(&address).copied().unwrap_or(OfUnit::NOTHING)
    }

    /// Notes that an operation, the last one of the unit, is a step with code number `code`.
    pub(super) fn staged(&mut self, address: u64, operation: u32, code: u32) {
        let unit = self.units.entry(address).or_insert(OfUnit::NOTHING);
        unit.waiting = unit.waiting.min(operation);
        self.staged.push(Staged { address, operation, code });
    }

    /// Notes that the first step of a unit that waited has run. `next` is the operation that is the
    /// next one, or [`NONE`].
    pub(super) fn ran(&mut self, address: u64, next: u32) {
        if let Some(unit) = self.units.get_mut(&address) {
            *unit = OfUnit { waiting: next, done: unit.waiting };
        }
    }

    /// Forgets the steps whose codes have this number or a later one.
    pub(super) fn truncate(&mut self, codes: usize) {
        while let Some(undone) = self.staged.pop_if(|staged| staged.code as usize >= codes) {
            let Some(unit) = self.units.get_mut(&undone.address) else { continue };
            // If the first step that waits is undone, so are those behind it.
            for operation in [&mut unit.waiting, &mut unit.done] {
                if *operation == undone.operation {
                    *operation = NONE;
                }
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn steps_are_forgotten_from_the_last_to_the_first() {
        let mut steps = UnitSteps::default();
        for (operation, code) in [(3, 0), (5, 1), (9, 2)] {
            steps.staged(8, operation, code);
        }
        assert_eq!(steps.of(8), OfUnit { waiting: 3, done: NONE });
        steps.ran(8, 5);
        steps.ran(8, 9);
        assert_eq!(steps.of(8), OfUnit { waiting: 9, done: 5 });
        steps.truncate(2);
        assert_eq!(steps.of(8), OfUnit { waiting: NONE, done: 5 });
        steps.staged(8, 12, 2);
        steps.truncate(1);
        assert_eq!(steps.of(8), OfUnit::NOTHING);
        assert_eq!(steps.of(16), OfUnit::NOTHING);
    }
}
