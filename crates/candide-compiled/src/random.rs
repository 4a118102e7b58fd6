//! The workloads that are checked and not measured, under every protocol: random transactions, and
//! clients that note the answers they get.

#![forbid(unsafe_code)]

/// Workloads whose transactions can be recorded.
pub mod recorded {
    use candide_harness::check::{Recordable, recordable};
    use candide_workloads::random::Random;

    /// Makes random transactions recordable.
    #[inline(never)]
    pub fn random(workload: Random) -> Box<dyn Recordable> {
        recordable(workload)
    }
}

/// Clients that note the answers they get.
pub mod asked {
    use candide_harness::check::{Clients, clients};
    use candide_workloads::clients::{Lists, Registers};

    /// Makes clients that append to lists and read them.
    #[inline(never)]
    pub fn lists() -> Box<dyn Clients> {
        clients::<Lists>()
    }

    /// Makes clients that write registers and read them.
    #[inline(never)]
    pub fn registers() -> Box<dyn Clients> {
        clients::<Registers>()
    }
}
