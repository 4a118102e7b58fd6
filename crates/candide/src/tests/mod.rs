//! Tests of the engine as a whole. Most of them run under every protocol.
//!
//! These tests are inside the crate because they move epochs by hand, stop transactions at exact
//! points, and include protocols that are not public yet.
//!
//! Sanitizers (`cfg(sanitized)`) compile the modules that `cargo xtask sanitize` runs, and the
//! modules that these use. Other modules would take most of the time of such a build.

/// Makes tests that each explore one scene under one protocol.
#[cfg(loom)]
macro_rules! scenes {
    ($($(#[$attribute:meta])* $test:ident = $explore:expr;)+) => {
        $($(#[$attribute])* #[test] fn $test() { $explore; })+
    };
}

#[cfg(not(any(loom, shuttle, sanitized)))]
mod adoptions;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod allocation;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod anomalies;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod attempts;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod batches;
#[cfg(not(any(loom, shuttle)))]
mod blocks;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod both_ends;
#[cfg(not(any(loom, shuttle)))]
mod boxed;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod bulk;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod chain_lengths;
#[cfg(not(any(loom, shuttle)))]
mod churn;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod commit_factors;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod commit_interleavings;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod diagnostics;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod ended_sessions;
#[cfg(not(loom))]
mod entries;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod exchanges;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod factors;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod for_update;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod get_now;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod growth;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod histories;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod hostile;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod index_lifetimes;
#[cfg(not(loom))]
pub(crate) mod indexed_rows;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interleaving;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod late_keys;
#[cfg(not(any(shuttle, sanitized)))]
mod late_rows;
#[cfg(not(any(loom, shuttle)))]
mod life;
mod log;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod log_rounds;
#[cfg(not(any(loom, shuttle)))]
mod long;
#[cfg(not(any(loom, shuttle)))]
mod long_columns;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod long_indexes;
#[cfg(loom)]
mod loom;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod model;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod nested;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod objects;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod outcomes;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod part_ends;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod parts_and_scans;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod past;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod phantoms;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod phases;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod policies;
#[cfg(not(loom))]
mod random_transactions;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod refusals;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod refused_parts;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod replaced_tables;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod retry;
pub(crate) mod rows;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod savepoints;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod seats;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod snapshots;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod staged_rows;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod stale_commits;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod starvation;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod steps;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod table_model;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod table_words;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod threads;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod timelines;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod timestamps;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod transactions;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod true_errors;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod two_sessions;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod unique_keys;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod versions;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod waiting;
#[cfg(not(any(loom, shuttle, sanitized)))]
mod wide_numbers;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use crate::timestamps::by_the_clock;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use protocols::{properties, under, under_erased};

/// Runs tests under protocols.
#[cfg(not(any(loom, shuttle)))]
mod protocols {
    use crate::engine::{Properties, Protocol};
    use crate::policy::{MoccOptions, Policies, Policy, by_policies};
    use crate::protocols::{Chosen, choosing, under_a_lock};
    use std::any::Any;

    /// Runs a test. Databases for which the test names no policy get `policy`. The test is a
    /// function pointer: otherwise this function would be compiled once for each test.
    pub(crate) fn under<P: Protocol, T>(policy: P::Policy, test: fn() -> T) -> T {
        let wanted = P::properties(&policy).name;
        let checked = || {
            assert_eq!(properties::<P>().name, wanted, "tests cannot choose it");
            test()
        };
        match (&policy as &dyn Any).downcast_ref::<Policies>() {
            Some(policies) => by_policies(eager(policies.clone()), checked),
            None if properties::<P>().name == wanted => checked(),
            None => under_a_lock(checked),
        }
    }

    /// Returns policies of the same name under which rows become hot early, and whose locks are
    /// queue locks if the policy is `hybrid`.
    fn eager(policies: Policies) -> Policies {
        let is_hybrid = policies.name() == Policy::Hybrid.name();
        policies.mocc(MoccOptions::new().threshold(1).queue_locks(is_hybrid))
    }

    /// Runs a test. Its databases call the protocol through the table of functions of
    /// [`Erased`](crate::any::Erased).
    pub(crate) fn under_erased<P: Protocol, T>(policy: P::Policy, test: fn() -> T) -> T {
        choosing(Chosen::of::<P>(policy), test)
    }

    /// Returns the properties of the databases for which a test names no policy.
    pub(crate) fn properties<P: Protocol>() -> Properties {
        P::properties(&P::Policy::default())
    }
}
