//! All workloads under every protocol, to be measured and to be recorded.
//!
//! They are in one crate because the compiler shares no instances between crates that it optimizes:
//! in several crates, their common part (the engine under each protocol) would be compiled anew in
//! each. As 16 units of code, the crate still keeps all cores busy.
//!
//! No function here is inlined: a caller that it is inlined in compiles its workload once more.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod banks;
pub mod keys;
pub mod random;
pub mod stamp;
pub mod tpcc;
pub mod websites;
