//! Measures Candide beside other stores, SQL, software transactional memory and locks by hand; see
//! `candide_peers::stores`.

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
