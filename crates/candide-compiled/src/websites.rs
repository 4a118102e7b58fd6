//! RUBiS and Wikipedia under every protocol.

#![forbid(unsafe_code)]

/// Workloads that can be measured.
pub mod measured {
    use candide_harness::{AnyWorkload, measurable};
    use candide_workloads::rubis::Rubis;
    use candide_workloads::wikipedia::Wikipedia;

    /// Makes RUBiS measurable.
    #[inline(never)]
    pub fn rubis(workload: Rubis) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes Wikipedia measurable.
    #[inline(never)]
    pub fn wikipedia(workload: Wikipedia) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }
}

/// Workloads whose transactions can be recorded.
pub mod recorded {
    use candide_harness::check::{Recordable, recordable};
    use candide_workloads::rubis::Rubis;
    use candide_workloads::wikipedia::Wikipedia;

    /// Makes RUBiS recordable.
    #[inline(never)]
    pub fn rubis(workload: Rubis) -> Box<dyn Recordable> {
        recordable(workload)
    }

    /// Makes Wikipedia recordable.
    #[inline(never)]
    pub fn wikipedia(workload: Wikipedia) -> Box<dyn Recordable> {
        recordable(workload)
    }
}
