//! Rows that come where a transaction has looked.

mod packed_keys;
