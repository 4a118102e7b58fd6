//! Basis factors: choices below the concurrency control, or within it, that affect speed as much as
//! it does.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// A choice that differs from the default, for measuring the benefit of the default. Most of these
/// choices are known to be bad, and are in "Opportunities for Optimism" (VLDB 2020), section 4. The
/// guarantees are the same under every choice. A database that makes none of these choices pays
/// nothing for their existence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Factor {
    /// The attempt after a conflict begins at once, instead of after a randomized and growing
    /// pause. The attempt still waits for its turn, and for the lock on which the attempt before
    /// has failed.
    NoBackoff,
    /// The system's allocator allocates and frees each record, index entry and index node singly.
    /// Without this factor they come from the database's own slabs, and each session keeps a few
    /// free blocks. (The factor does not affect the arrays of hash indexes, since they are few.)
    SystemAllocator,
    /// The same as [`Factor::SystemAllocator`], but with the allocator mimalloc. Only builds with
    /// the cargo feature `mimalloc` have it.
    Mimalloc,
    /// The same as [`Factor::SystemAllocator`], but with the allocator jemalloc. Only builds with
    /// the cargo feature `jemalloc` have it.
    Jemalloc,
    /// A conflict unwinds the stack, from the operation that found the conflict out of the closure,
    /// instead of being returned as an error.
    UnwindingAborts,
    /// Every table has an ordered index, even if the row type does not require order.
    OrderedOnly,
    /// The components of a composite key share words, so keys that differ in an early component may
    /// share a leaf. Without this factor, each component has a layer of the index for itself.
    ContendedKeys,
    /// A commit locks the write set in the order of addresses, which costs a sort, instead of in
    /// the order of the program's writes.
    SortedLocks,
    /// A commit locks the write set in the order of tables and primary keys, which costs a sort
    /// that reads the keys.
    SortedKeys,
    /// The own writes of a transaction are searched from end to end, without the filter at which
    /// most searches end, and without the hash table that a large write set has.
    PlainSets,
    /// A hash index does not grow beyond the size for which it was made
    /// ([`TableOptions::capacity`](crate::TableOptions::capacity)). The index's buckets become
    /// longer instead.
    FixedHash,
    /// A version's read timestamp is at most 32,767 above its write timestamp, as if both were in
    /// one word. A reader that extends the version further moves the write timestamp up, and
    /// earlier readers of the version may then fail although nothing has changed. Under
    /// [`TicToc`](crate::TicToc) only.
    CompressedTimestamps,
    /// A commit checks its reads before it locks its writes, too, and aborts if its validation is
    /// already bound to fail. Under [`TicToc`](crate::TicToc) only.
    PreemptiveAborts,
    /// A commit that finds a row locked aborts at once, instead of waiting for the lock. The commit
    /// still waits for the locks of a [`Policy`](crate::policy::Policy). The factor has no effect
    /// under [`Mvto`](crate::Mvto) and [`Serial`](crate::Serial), whose commits lock no rows.
    NoWait,
}

impl Factor {
    /// All factors.
    pub const ALL: [Factor; 14] = [
        Factor::NoBackoff,
        Factor::SystemAllocator,
        Factor::Mimalloc,
        Factor::Jemalloc,
        Factor::UnwindingAborts,
        Factor::OrderedOnly,
        Factor::ContendedKeys,
        Factor::SortedLocks,
        Factor::SortedKeys,
        Factor::PlainSets,
        Factor::FixedHash,
        Factor::CompressedTimestamps,
        Factor::PreemptiveAborts,
        Factor::NoWait,
    ];

    /// Returns the factor's name, as the command line spells it. [`Factor::from_str`] parses such
    /// names.
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
            Factor::SortedKeys => "sorted-keys",
            Factor::PlainSets => "plain-sets",
            Factor::FixedHash => "fixed-hash",
            Factor::CompressedTimestamps => "compressed-timestamps",
            Factor::PreemptiveAborts => "preemptive-aborts",
            Factor::NoWait => "no-wait",
        }
    }
}

#[cfg(any(test, feature = "experiments"))]
impl Factor {
    /// Returns whether this build can choose the factor. A build cannot choose an allocator whose
    /// cargo feature is off.
    pub const fn is_available(self) -> bool {
        let is_missing = matches!(self, Factor::Mimalloc) && cfg!(not(feature = "mimalloc"))
            || matches!(self, Factor::Jemalloc) && cfg!(not(feature = "jemalloc"));
        !is_missing
    }

    /// Returns whether the factor has an effect only under protocols that keep read timestamps in
    /// cells and decide by them when a commit takes place: [`TicToc`](crate::TicToc).
    pub const fn is_of_timestamps(self) -> bool {
        matches!(self, Factor::CompressedTimestamps | Factor::PreemptiveAborts)
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
    /// If no factor is called `name`. The error's text lists the names.
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

    /// Returns whether `factor` was chosen; `false` in builds that are not for tests or
    /// experiments.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has(self, factor: Factor) -> bool {
        cfg!(any(test, feature = "experiments")) && self.0 & 1 << factor as u8 != 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_of_factors_are_parsed_and_others_refused() {
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
