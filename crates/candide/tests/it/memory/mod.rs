//! Tests of the release of memory and of its limits.

mod limits;
mod release;
