//! Histories in EDN. The body is in `src/edn.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::edn::run(bytes));
