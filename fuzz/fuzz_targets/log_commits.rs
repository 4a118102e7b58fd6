//! Commit records. The body is in `src/log_commits.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::log_commits::run(bytes));
