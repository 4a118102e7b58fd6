//! Says whether the history in a file is serializable.
//!
//! `cargo run --release -p candide-check --example check_file -- FILE [strict] [registers]`
//!
//! Files whose names end in `.edn` are Jepsen's, of lists if not `registers`; all others are JSON lines. `strict` asks for an
//! order that agrees with sessions and real time. The exit status is 1 if the history is refused, 2 if it cannot be judged.

use candide_check::black::{self, ListOp, RegisterOp, check_lists, check_registers};
use candide_check::json::AnyReader;
use candide_check::{Checker, Options, Verdict, edn};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("name the file with the history");
        return ExitCode::from(2);
    };
    let words: Vec<String> = arguments.collect();
    let said = |word: &str| words.iter().any(|other| other == word);
    match check(&path, said("strict"), said("registers")) {
        Ok(Verdict::Serializable) => {
            println!("{path}: no violation");
            ExitCode::SUCCESS
        }
        Ok(Verdict::Violated(violation)) => {
            print!("{path}: {violation}");
            ExitCode::FAILURE
        }
        Ok(Verdict::Inconclusive(reason)) => {
            eprintln!("{path}: {reason}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(path: &str, strict: bool, registers: bool) -> Result<Verdict, Box<dyn Error>> {
    let file = BufReader::new(File::open(path)?);
    let options = black::Options { sessions: strict, real_time: strict };
    let violation = if path.ends_with(".edn") && registers {
        check_registers(&edn::read::<RegisterOp>(file)?, options)
    } else if path.ends_with(".edn") {
        check_lists(&edn::read::<ListOp>(file)?, options)
    } else {
        match AnyReader::new(file)? {
            AnyReader::Lists(lines) => check_lists(&lines.collect::<Result<Vec<_>, _>>()?, options),
            AnyReader::Registers(lines) => check_registers(&lines.collect::<Result<Vec<_>, _>>()?, options),
            AnyReader::Versions(lines) => {
                let mut checker = Checker::new(Options { strict, ..Options::default() });
                for event in lines {
                    checker.feed(&event?);
                }
                return Ok(checker.finish().verdict);
            }
        }
    };
    Ok(violation.map_or_else(|violation| Verdict::Violated(Box::new(violation)), |()| Verdict::Serializable))
}
