//! Memory that is given back, and limits on it.

mod limits;
mod release;
