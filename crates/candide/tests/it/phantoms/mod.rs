//! Tests of phantoms: rows that appear where a transaction has searched.

mod packed_keys;
