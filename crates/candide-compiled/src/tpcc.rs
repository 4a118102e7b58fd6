//! TPC-C under every protocol.

#![forbid(unsafe_code)]

/// Workloads that can be measured.
pub mod measured {
    use candide_harness::{AnyWorkload, measurable};
    use candide_workloads::tpcc::Tpcc;

    /// Makes TPC-C measurable.
    #[inline(never)]
    pub fn tpcc(workload: Tpcc) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }
}

/// Workloads whose transactions can be recorded.
pub mod recorded {
    use candide_harness::check::{Recordable, recordable};
    use candide_workloads::tpcc::Tpcc;

    /// Makes TPC-C recordable.
    #[inline(never)]
    pub fn tpcc(workload: Tpcc) -> Box<dyn Recordable> {
        recordable(workload)
    }
}
