//! Measures commits that survive a loss of power, in Candide and in other stores.
//! `candide_peers::stores::durable` describes the comparison.

use std::process::ExitCode;

use candide_peers::stores::durable::{Options, run};
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
