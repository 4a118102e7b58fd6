//! Wrong use: an error says what would be right, and nothing is left behind.

mod answers;
mod panics;
mod updaters;
