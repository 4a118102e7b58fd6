//! Headers of segments, and blocks of the log. The body is in `src/log_blocks.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::log_blocks::run(bytes));
