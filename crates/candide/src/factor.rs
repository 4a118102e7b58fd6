//! Basis factors: choices below the concurrency control that decide as much as it does.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// A choice that differs from the default, for measuring the benefit of the default. Most of these
/// choices are known to be bad, and are in "Opportunities for Optimism" (VLDB 2020), section 4. The
/// guarantees are the same under every choice. A database without such a choice pays nothing for
/// their existence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Factor {
    /// A conflict is retried at once, instead of after a randomized pause that grows.
    NoBackoff,
    /// Records, entries and index nodes come from the system's allocator one by one, and go back
    /// one by one, instead of from slabs of the database's own by way of a few kept by each
    /// session. (The arrays of hash indexes are made as ever: they are few.)
    SystemAllocator,
    /// As [`Factor::SystemAllocator`], but the allocator is mimalloc. Only builds with the cargo
    /// feature `mimalloc` have it.
    Mimalloc,
    /// As [`Factor::SystemAllocator`], but the allocator is jemalloc. Only builds with the cargo
    /// feature `jemalloc` have it.
    Jemalloc,
    /// Conflicts unwind the stack, up from where they are met and out of the closure, instead of
    /// being returned.
    UnwindingAborts,
    /// Tables have ordered indexes even where the row type does not ask for order.
    OrderedOnly,
    /// The components of a composite key share words, so that keys which differ early may share a
    /// leaf, instead of each component having a layer of the index for itself.
    ContendedKeys,
    /// Write sets are locked in the order of addresses, which costs a sort, instead of the order of
    /// the program.
    SortedLocks,
    /// Hash indexes keep the size for which they were made
    /// ([`TableOptions::capacity`](crate::TableOptions::capacity)), and their buckets get ever
    /// longer, instead of growing.
    FixedHash,
}

impl Factor {
    /// All factors.
    pub const ALL: [Factor; 9] = [
        Factor::NoBackoff,
        Factor::SystemAllocator,
        Factor::Mimalloc,
        Factor::Jemalloc,
        Factor::UnwindingAborts,
        Factor::OrderedOnly,
        Factor::ContendedKeys,
        Factor::SortedLocks,
        Factor::FixedHash,
    ];

    /// Returns its name, as the command line spells it; [`Factor::from_str`] knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Factor::NoBackoff => "no-backoff",
            Factor::SystemAllocator => "system-allocator",
            Factor::Mimalloc => "mimalloc",
            Factor::Jemalloc => "jemalloc",
            Factor::UnwindingAborts => "unwinding-aborts",
            Factor::OrderedOnly => "ordered-only",
            Factor::ContendedKeys => "contended-keys",
            Factor::SortedLocks => "sorted-locks",
            Factor::FixedHash => "fixed-hash",
        }
    }
}

#[cfg(any(test, feature = "experiments"))]
impl Factor {
    /// Returns whether this build can choose the factor. It cannot choose an allocator whose cargo
    /// feature is off.
    pub const fn is_available(self) -> bool {
        match self {
            Factor::Mimalloc => cfg!(feature = "mimalloc"),
            Factor::Jemalloc => cfg!(feature = "jemalloc"),
            _ => true,
        }
    }

    /// Returns whether the factor chooses an allocator.
    pub(crate) const fn is_allocator(self) -> bool {
        matches!(self, Factor::SystemAllocator | Factor::Mimalloc | Factor::Jemalloc)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Factor {
    type Err = String;

    /// # Errors
    /// If no factor has this name; the text lists the names.
    fn from_str(name: &str) -> Result<Factor, String> {
        Factor::ALL.into_iter().find(|factor| factor.name() == name).ok_or_else(|| {
            let names: Vec<_> = Factor::ALL.iter().map(|factor| factor.name()).collect();
            format!("no factor is called {name:?}; there are {}", names.join(", "))
        })
    }
}

/// The factors that a database was built with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Factors(u16);

impl Factors {
    #[cfg(any(test, feature = "experiments"))]
    pub(crate) fn with(self, factor: Factor) -> Factors {
        Factors(self.0 | 1 << factor as u8)
    }

    /// Returns whether a factor was chosen, which only builds for experiments can do.
    #[inline(always)]
    pub(crate) fn has(self, factor: Factor) -> bool {
        cfg!(any(test, feature = "experiments")) && self.0 & 1 << factor as u8 != 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_and_others_refused() {
        for factor in Factor::ALL {
            assert_eq!(factor.to_string().parse(), Ok(factor));
            assert!(Factors::default().with(factor).has(factor));
            assert!(
                Factor::ALL
                    .iter()
                    .all(|&other| Factors::default().with(factor).has(other) == (other == factor))
            );
        }
        let refused = "sorted".parse::<Factor>().unwrap_err();
        assert!(refused.contains("sorted-locks"), "{refused}");
    }
}
