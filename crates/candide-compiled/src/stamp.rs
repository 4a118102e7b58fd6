//! Programs of STAMP under every protocol.

#![forbid(unsafe_code)]

/// Workloads that can be measured.
pub mod measured {
    use candide_harness::{AnyWorkload, measurable};
    use candide_workloads::stamp::bayes::Bayes;
    use candide_workloads::stamp::genome::Genome;
    use candide_workloads::stamp::intruder::Intruder;
    use candide_workloads::stamp::kmeans::Kmeans;
    use candide_workloads::stamp::labyrinth::Labyrinth;
    use candide_workloads::stamp::vacation::Vacation;

    /// Makes kmeans measurable.
    #[inline(never)]
    pub fn kmeans(workload: Kmeans) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes vacation measurable.
    #[inline(never)]
    pub fn vacation(workload: Vacation) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes labyrinth measurable.
    #[inline(never)]
    pub fn labyrinth(workload: Labyrinth) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes intruder measurable.
    #[inline(never)]
    pub fn intruder(workload: Intruder) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes genome measurable.
    #[inline(never)]
    pub fn genome(workload: Genome) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }

    /// Makes bayes measurable.
    #[inline(never)]
    pub fn bayes(workload: Bayes) -> Box<dyn AnyWorkload> {
        measurable(workload)
    }
}
