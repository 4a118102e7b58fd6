//! Tests of the release of memory, of its limits and of the reserve.

mod limits;
mod release;
mod reserve;
