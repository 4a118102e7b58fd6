//! Secondary indexes.

mod creation;
mod key_parts;
mod texts;
mod unique;
