//! Measures Candide's tables beside the concurrent maps of the Rust ecosystem. The crate's
//! documentation describes the comparison.

use std::process::ExitCode;

use candide_peers::cli::Options;
use clap::Parser;

fn main() -> ExitCode {
    match candide_peers::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
