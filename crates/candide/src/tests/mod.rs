//! Tests of the engine as a whole. Most of them run under every protocol.
//!
//! They are inside the crate because they move epochs by hand, stop transactions at exact points,
//! and include protocols that are not public yet.

#[cfg(not(any(loom, shuttle)))]
mod aggregates;
#[cfg(not(any(loom, shuttle)))]
mod allocation;
#[cfg(not(any(loom, shuttle)))]
mod anomalies;
#[cfg(not(any(loom, shuttle)))]
mod batches;
#[cfg(not(any(loom, shuttle)))]
mod both_ends;
#[cfg(not(any(loom, shuttle)))]
mod bulk;
#[cfg(not(any(loom, shuttle)))]
mod chain_lengths;
#[cfg(not(any(loom, shuttle)))]
mod churn;
#[cfg(not(any(loom, shuttle)))]
mod commit_factors;
#[cfg(not(any(loom, shuttle)))]
mod commit_interleavings;
#[cfg(not(any(loom, shuttle)))]
mod diagnostics;
#[cfg(not(any(loom, shuttle)))]
mod ended_sessions;
#[cfg(not(any(loom, shuttle)))]
mod ends_beside_writers;
#[cfg(not(loom))]
mod entries;
#[cfg(not(any(loom, shuttle)))]
mod exchanges;
#[cfg(not(any(loom, shuttle)))]
mod factors;
#[cfg(not(any(loom, shuttle)))]
mod for_update;
#[cfg(not(any(loom, shuttle)))]
mod get_now;
#[cfg(not(any(loom, shuttle)))]
mod growth;
#[cfg(not(any(loom, shuttle)))]
mod histories;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod hostile;
#[cfg(not(any(loom, shuttle)))]
mod index_lifetimes;
#[cfg(not(loom))]
pub(crate) mod indexed_rows;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interleaving;
#[cfg(not(any(loom, shuttle)))]
mod keys;
#[cfg(not(any(loom, shuttle)))]
mod life;
mod log;
#[cfg(not(any(loom, shuttle)))]
mod log_rounds;
#[cfg(loom)]
mod loom;
#[cfg(not(any(loom, shuttle)))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod nested;
#[cfg(not(any(loom, shuttle)))]
mod part_ends;
#[cfg(not(any(loom, shuttle)))]
mod parts_and_scans;
#[cfg(not(any(loom, shuttle)))]
mod phantoms;
#[cfg(not(any(loom, shuttle)))]
mod phases;
#[cfg(not(any(loom, shuttle)))]
mod policies;
#[cfg(not(loom))]
mod random_transactions;
#[cfg(not(any(loom, shuttle)))]
mod refusals;
#[cfg(not(any(loom, shuttle)))]
mod refused_parts;
pub(crate) mod rows;
#[cfg(not(any(loom, shuttle)))]
mod savepoints;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod seats;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod snapshots;
#[cfg(not(any(loom, shuttle)))]
mod stale_commits;
#[cfg(not(any(loom, shuttle)))]
mod starvation;
#[cfg(not(any(loom, shuttle)))]
mod table_model;
#[cfg(not(any(loom, shuttle)))]
mod table_words;
#[cfg(not(any(loom, shuttle)))]
mod timelines;
#[cfg(not(any(loom, shuttle)))]
mod timestamps;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod transactions;
#[cfg(not(any(loom, shuttle)))]
mod true_errors;
#[cfg(not(any(loom, shuttle)))]
mod unique_keys;
#[cfg(not(any(loom, shuttle)))]
mod versions;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod waiting;
#[cfg(not(any(loom, shuttle)))]
mod waiting_options;

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

    /// Runs a test. Databases for which the test names no policy get `policy`.
    pub(crate) fn under<P: Protocol, T>(policy: P::Policy, test: impl FnOnce() -> T) -> T {
        let wanted = P::properties(&policy).name;
        let checked = || {
            assert_eq!(properties::<P>().name, wanted, "tests cannot choose it");
            test()
        };
        match P::policies(&policy) {
            Some(policies) => by_policies(eager(policies), checked),
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
    /// [`Erased`](crate::Erased).
    pub(crate) fn under_erased<P: Protocol, T>(policy: P::Policy, test: impl FnOnce() -> T) -> T {
        choosing(Chosen::of::<P>(policy), test)
    }

    /// Returns the properties of the databases for which a test names no policy.
    pub(crate) fn properties<P: Protocol>() -> Properties {
        P::properties(&P::Policy::default())
    }
}
