//! YCSB and other workloads of one or two tables under every protocol.

#![forbid(unsafe_code)]

/// Workloads that can be measured.
pub mod measured {
    use candide_harness::{AnyWorkload, measurable};
    use candide_workloads::micro::{Array, Beside, Predicate, Ranges};
    use candide_workloads::two_tables::{LongScan, Shifting};
    use candide_workloads::ycsb::{Joint, Narrow, Single, WideInThirds, Word, Ycsb, YcsbStrings};

    /// Makes YCSB measurable.
    #[inline(never)]
    pub fn ycsb(workload: Ycsb) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB with three timestamps to a row measurable.
    #[inline(never)]
    pub fn ycsb_thirds(workload: Ycsb<WideInThirds>) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB on strings of any length measurable.
    #[inline(never)]
    pub fn ycsb_strings(workload: YcsbStrings) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB with narrow columns under two timestamps measurable.
    #[inline(never)]
    pub fn ycsb_narrow(workload: Ycsb<Narrow>) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB with narrow columns under one timestamp measurable.
    #[inline(never)]
    pub fn ycsb_joint(workload: Ycsb<Joint>) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB with one column of 100 bytes measurable.
    #[inline(never)]
    pub fn ycsb_single(workload: Ycsb<Single>) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes YCSB with one word measurable.
    #[inline(never)]
    pub fn ycsb_word(workload: Ycsb<Word>) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes long scans measurable.
    #[inline(never)]
    pub fn long_scan(workload: LongScan) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes the shifting workload measurable.
    #[inline(never)]
    pub fn shifting(workload: Shifting) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes scans of ranges measurable.
    #[inline(never)]
    pub fn ranges(workload: Ranges) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes increments of an array measurable.
    #[inline(never)]
    pub fn array(workload: Array) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes writers beside readers of the whole database measurable.
    #[inline(never)]
    pub fn beside(workload: Beside) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes the workload of predicates measurable.
    #[inline(never)]
    pub fn predicate(workload: Predicate) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }
}

/// Workloads whose transactions can be recorded.
pub mod recorded {
    use candide_harness::check::{Recordable, recordable};
    use candide_workloads::two_tables::{LongScan, Shifting};
    use candide_workloads::ycsb::{Joint, Ycsb};

    /// Makes YCSB recordable.
    #[inline(never)]
    pub fn ycsb(workload: Ycsb) -> Box<dyn Recordable> {
        recordable(workload)
    }

    /// Makes YCSB with narrow columns under one timestamp recordable.
    #[inline(never)]
    pub fn ycsb_joint(workload: Ycsb<Joint>) -> Box<dyn Recordable> {
        recordable(workload)
    }

    /// Makes long scans recordable.
    #[inline(never)]
    pub fn long_scan(workload: LongScan) -> Box<dyn Recordable> {
        recordable(workload)
    }

    /// Makes the shifting workload recordable.
    #[inline(never)]
    pub fn shifting(workload: Shifting) -> Box<dyn Recordable> {
        recordable(workload)
    }
}
