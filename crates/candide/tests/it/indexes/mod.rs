//! Secondary indexes.

mod creation;
mod texts;
mod unique;
