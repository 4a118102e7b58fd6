//! Operations of one session against a map. The body is in `src/operations.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::operations::run(bytes));
