//! Checking what clients saw, without believing anything the database says of itself.

mod history;

pub use history::{ListOp, Outcome, RegisterOp, Transaction};
