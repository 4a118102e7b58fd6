//! Tests of the second word, of the rules by which sessions change it and the flags (LK2 to LK6),
//! and of requests to abort.

mod asking;
mod chains;
mod kills;
mod words;
