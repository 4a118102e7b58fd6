#![doc = include_str!("../../PROTOCOLS.md")]

mod by_name;
mod erased;
pub(crate) mod list;
pub mod mvcc;
pub mod mvto;
pub mod occ;
#[cfg(any(test, feature = "history"))]
pub mod recorded;
pub mod serial;
pub(crate) mod shared;
pub mod tictoc;

pub use crate::engine::Properties;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use erased::choosing;
pub use erased::{Chosen, Erased};
pub(crate) use list::DefaultProtocol;
#[cfg(test)]
pub(crate) use list::{Mvcc, Mvto, Occ, Serial, TicToc};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use mvto::DELTAS_MAX;
#[cfg(any(test, feature = "history"))]
pub use recorded::{Batch, Recorded};
pub use serial::Exclusion;
#[cfg(all(test, not(shuttle)))]
pub(crate) use serial::under_a_lock;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use tictoc::begin_in_time;
