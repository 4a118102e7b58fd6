//! What snapshots see.

mod moves;
