//! The protocols: what each guarantees, and which programs it suits.
//!
#![doc = include_str!("../../PROTOCOLS.md")]

mod by_name;
pub(crate) mod erased;
mod forward;
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
pub(crate) use erased::{Chosen, Erased};
pub(crate) use list::DefaultProtocol;
#[cfg(all(test, not(shuttle)))]
pub(crate) use list::{Mvcc, Mvto, Occ, Serial, TicToc};
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use mvto::DELTAS_MAX;
#[cfg(all(test, not(loom)))]
pub(crate) use recorded::{Batch, Recorded};
pub use serial::Exclusion;
#[cfg(all(test, not(shuttle)))]
pub(crate) use serial::under_a_lock;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use tictoc::begin_in_time;
