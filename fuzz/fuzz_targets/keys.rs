//! The order of keys, and the way back from their words. The body is in `src/keys.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::keys::run(bytes));
