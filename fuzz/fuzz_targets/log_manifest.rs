//! MANIFEST. The body is in `src/log_manifest.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::log_manifest::run(bytes));
