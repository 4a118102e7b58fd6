//! Tests of the engine as a whole, each run for every protocol.
//!
//! They are inside the crate because they move epochs by hand, stop transactions at exact points,
//! and include protocols that are not public yet.

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
mod deleted_index;
#[cfg(not(any(loom, shuttle)))]
mod deltas;
#[cfg(not(loom))]
mod entries;
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
mod hostile;
#[cfg(not(any(loom, shuttle)))]
mod hot;
#[cfg(not(any(loom, shuttle)))]
mod leaving;
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
#[cfg(not(any(loom, shuttle)))]
mod nested;
#[cfg(not(any(loom, shuttle)))]
mod opacity;
#[cfg(not(loom))]
mod parcels;
#[cfg(not(any(loom, shuttle)))]
mod parked;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod patience;
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
mod total_updaters;
#[cfg(not(any(loom, shuttle)))]
mod traps;
#[cfg(not(any(loom, shuttle)))]
mod undos;
#[cfg(not(any(loom, shuttle)))]
mod versions;

#[cfg(not(loom))]
pub(crate) use protocols::{ForProtocol, for_each_overlapping};
#[cfg(shuttle)]
pub(crate) use protocols::{ForVersioned, for_each_versioned};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use protocols::{
    for_each, for_each_by_the_clock, for_each_concurrent, for_each_erased, properties,
};

/// The protocols under which a test runs.
#[cfg(not(loom))]
mod protocols {
    #[cfg(shuttle)]
    use crate::engine::Versioned;
    use crate::engine::{Properties, Protocol};
    #[cfg(shuttle)]
    use crate::protocols::Mvcc;
    use crate::protocols::Mvto;
    #[cfg(not(shuttle))]
    use crate::protocols::{Chosen, Erased, choosing, under_a_lock};
    #[cfg(not(shuttle))]
    use crate::timestamps::by_the_clock;

    /// A test body that is generic over the protocol.
    pub(crate) trait ForProtocol {
        /// Runs the test under one protocol.
        fn run<P: Protocol>(&self);
    }

    /// Runs a test under every protocol.
    #[cfg(not(shuttle))]
    pub(crate) fn for_each(test: &impl ForProtocol) {
        for_each_that_excludes(test);
        under_a_lock(|| for_each_that_excludes(test));
        for_each_that_overlaps(test);
    }

    /// Runs a test under every protocol, each called through the table of functions of [`Erased`].
    #[cfg(not(shuttle))]
    pub(crate) fn for_each_erased(test: &impl ForProtocol) {
        for_each(&Erasing(test));
    }

    /// A test whose databases call their protocol through the table.
    #[cfg(not(shuttle))]
    struct Erasing<'a, T>(&'a T);

    #[cfg(not(shuttle))]
    impl<T: ForProtocol> ForProtocol for Erasing<'_, T> {
        fn run<P: Protocol>(&self) {
            choosing(Chosen::of::<P>(P::Policy::default()), || self.0.run::<Erased>());
        }
    }

    /// Runs a test under every protocol that allows several sessions.
    #[cfg(not(shuttle))]
    pub(crate) fn for_each_concurrent(test: &impl ForProtocol) {
        under_a_lock(|| for_each_that_excludes(test));
        for_each_overlapping(test);
    }

    /// Runs a test under every protocol whose transactions overlap, in any order of certification
    /// and with any source of timestamps.
    pub(crate) fn for_each_overlapping(test: &impl ForProtocol) {
        for_each_that_overlaps(test);
        // A scene chooses for each of its schedules.
        #[cfg(not(shuttle))]
        for_each_by_the_clock(test);
    }

    /// Runs a test under every protocol that can take its timestamps from the system's clock, and
    /// does.
    #[cfg(not(shuttle))]
    pub(crate) fn for_each_by_the_clock(test: &impl ForProtocol) {
        by_the_clock(|| report::<Mvto>(test));
    }

    macro_rules! lists {
        ($(overlapping $overlapping:ty: $($_of_it:expr),+;)+
         $(exclusive $exclusive:ty: $($_of_that:expr),+;)+) => {
            fn for_each_that_overlaps(test: &impl ForProtocol) {
                $(report::<$overlapping>(test);)+
            }

            #[cfg(not(shuttle))]
            fn for_each_that_excludes(test: &impl ForProtocol) {
                $(report::<$exclusive>(test);)+
            }
        };
    }
    crate::for_each_protocol!(lists);

    /// A test body for every protocol that keeps versions.
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

    /// Returns the properties of databases that a test builds without naming a policy.
    pub(crate) fn properties<P: Protocol>() -> Properties {
        P::properties(&P::Policy::default())
    }

    fn report<P: Protocol>(test: &impl ForProtocol) {
        eprintln!("protocol: {}", properties::<P>().name);
        test.run::<P>();
    }
}
