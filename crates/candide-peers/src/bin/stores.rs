//! Measures Candide beside other stores, SQL, software transactional memory and hand-written
//! locking. `candide_peers::stores` describes the comparison.

use std::process::ExitCode;

use candide_peers::stores::{Options, run};
use clap::Parser;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
