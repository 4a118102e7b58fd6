//! Tests of the engine as a whole, each run for every protocol.
//!
//! They live inside the crate because they own time (epochs that move by hand), stop transactions at exact points, and
//! include protocols that are not public yet.

#[cfg(not(any(loom, shuttle)))]
mod allocation;
#[cfg(not(any(loom, shuttle)))]
mod anomalies;
#[cfg(not(any(loom, shuttle)))]
mod attacks;
#[cfg(not(any(loom, shuttle)))]
mod batches;
#[cfg(not(any(loom, shuttle)))]
mod bulk;
#[cfg(not(any(loom, shuttle)))]
mod chain_lengths;
#[cfg(not(any(loom, shuttle)))]
mod chains;
#[cfg(not(any(loom, shuttle)))]
mod churn;
#[cfg(not(any(loom, shuttle)))]
mod deltas;
#[cfg(not(loom))]
mod entries;
#[cfg(not(any(loom, shuttle)))]
mod factors;
#[cfg(not(any(loom, shuttle)))]
mod for_update;
#[cfg(not(any(loom, shuttle)))]
mod histories;
#[cfg(not(any(loom, shuttle)))]
mod hostile;
#[cfg(not(any(loom, shuttle)))]
mod life;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod mix;
#[cfg(not(any(loom, shuttle)))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod mvto_attacks;
#[cfg(not(any(loom, shuttle)))]
mod neighbours;
#[cfg(not(loom))]
mod parcels;
#[cfg(not(any(loom, shuttle)))]
mod phantoms;
#[cfg(not(any(loom, shuttle)))]
mod phases;
#[cfg(not(any(loom, shuttle)))]
mod refusals;
#[cfg(not(any(loom, shuttle)))]
mod reports;
mod rows;
#[cfg(not(any(loom, shuttle)))]
mod seams;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(any(loom, shuttle)))]
mod snapshots;
#[cfg(not(any(loom, shuttle)))]
mod starvation;
#[cfg(not(any(loom, shuttle)))]
mod steps;
#[cfg(not(any(loom, shuttle)))]
mod stress;
#[cfg(not(any(loom, shuttle)))]
mod table_model;
#[cfg(not(any(loom, shuttle)))]
mod timestamps;
#[cfg(not(any(loom, shuttle)))]
mod traps;
#[cfg(not(any(loom, shuttle)))]
mod versions;

#[cfg(not(loom))]
pub(crate) use protocols::{ForProtocol, for_each_overlapping};
#[cfg(shuttle)]
pub(crate) use protocols::{ForVersioned, for_each_versioned};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use protocols::{for_each, for_each_concurrent};

/// Which protocols a test runs under.
#[cfg(not(loom))]
mod protocols {
    #[cfg(shuttle)]
    use crate::protocol::Versioned;
    #[cfg(not(shuttle))]
    use crate::protocol::{GlobalLock, Serial};
    use crate::protocol::{Mvcc, Mvto, Occ, Protocol, TicToc};

    /// A test body that is generic over the protocol.
    pub(crate) trait ForProtocol {
        /// Runs the test under one protocol.
        fn run<P: Protocol>(&self);
    }

    /// Runs a test under every protocol. This and the two lists it includes name each protocol once, and nothing else has to.
    #[cfg(not(shuttle))]
    pub(crate) fn for_each(test: &impl ForProtocol) {
        report::<Serial>(test);
        for_each_concurrent(test);
    }

    /// Runs a test under every protocol that allows several sessions.
    #[cfg(not(shuttle))]
    pub(crate) fn for_each_concurrent(test: &impl ForProtocol) {
        report::<GlobalLock>(test);
        for_each_overlapping(test);
    }

    /// Runs a test under every protocol whose transactions overlap, in whatever order they certify.
    pub(crate) fn for_each_overlapping(test: &impl ForProtocol) {
        report::<Occ>(test);
        report::<TicToc>(test);
        report::<Mvcc>(test);
        report::<Mvto>(test);
    }

    /// Something to be done under every protocol that keeps versions.
    #[cfg(shuttle)]
    pub(crate) trait ForVersioned {
        fn run<P: Versioned>(&self);
    }

    /// Runs a test under every protocol that keeps versions.
    #[cfg(shuttle)]
    pub(crate) fn for_each_versioned(test: &impl ForVersioned) {
        test.run::<Mvcc>();
        test.run::<Mvto>();
    }

    fn report<P: Protocol>(test: &impl ForProtocol) {
        eprintln!("protocol: {}", P::NAME);
        test.run::<P>();
    }
}
