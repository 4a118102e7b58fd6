//! SmallBank and TPC-B under every protocol.

#![forbid(unsafe_code)]

/// Workloads that can be measured.
pub mod measured {
    use candide_harness::{AnyWorkload, measurable};
    use candide_workloads::smallbank::SmallBank;
    use candide_workloads::tpcb::TpcB;

    /// Makes SmallBank measurable.
    #[inline(never)]
    pub fn smallbank(workload: SmallBank) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes TPC-B measurable.
    #[inline(never)]
    pub fn tpcb(workload: TpcB) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }
}

/// Workloads whose transactions can be recorded.
pub mod recorded {
    use candide_harness::check::{Recordable, recordable};
    use candide_workloads::smallbank::SmallBank;

    /// Makes SmallBank recordable.
    #[inline(never)]
    pub fn smallbank(workload: SmallBank) -> Box<dyn Recordable> {
        recordable(workload)
    }
}
