//! Transactions that take turns, against all their serial orders. The body is in
//! `src/schedules.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::schedules::run(bytes));
