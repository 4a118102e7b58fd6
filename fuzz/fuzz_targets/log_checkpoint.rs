//! Parts of checkpoints. The body is in `src/log_checkpoint.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| candide_fuzz::log_checkpoint::run(bytes));
