//! Secondary indexes.

mod creation;
mod unique;
