//! Values that are known when their transaction commits.

mod handle;
mod inputs;
mod key;
mod operators;
mod settle;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod value;

pub use handle::Later;
pub use inputs::{Inputs, Values};
pub(super) use key::LateKey;
pub use operators::Arithmetic;
pub use settle::Settle;
pub(super) use settle::admitted;
pub use value::Held;
pub(super) use value::{Work, admit_inputs};
