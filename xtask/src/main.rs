//! Development tasks: the checks of this workspace that cargo does not provide.

#![forbid(unsafe_code)]

// Layers, lowest first: progress, cores, workspace, tokens, defects, instrumented, engine_tests,
// sites, arrows, identifiers, labels, links, phases, prose, sections, tidy, mutants, orderings,
// sanitize, verify, drill, costs, build_budget, check_json, browse, book, release.
mod arrows;
mod book;
mod browse;
mod build_budget;
mod check_json;
mod cores;
mod costs;
mod defects;
mod drill;
mod engine_tests;
mod identifiers;
mod instrumented;
mod labels;
mod links;
mod mutants;
mod orderings;
mod phases;
mod progress;
mod prose;
mod release;
mod sanitize;
mod sections;
mod sites;
mod tidy;
mod tokens;
mod verify;
mod workspace;

pub(crate) use workspace::root;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  mutants [NAME...]      run the test that must find each deliberate defect (all of them, or those named)
  test BUILD [ARGUMENT...]
                         run tests of the copy of the workspace that contains the deliberate defects, with none unless the variable
                         CANDIDE_MUTANT names one: of the engine's library (`usual`, or under a model: `loom`, `shuttle`), or of
                         the log's crate (`log`)
  orderings [WHICH...]   make each memory ordering weaker, one at a time, and run the loom tests that reach it; WHICH is
                         a part of a line of the list, or its number. `--list` only lists, `--minutes N` stops then,
                         `--slow` uses tests of more than half a minute, too, `--test PART` only those whose names have that in them,
                         `--must` demands that all are found
  sanitize NAME [--lib] [--mutant NAME] [TEST...]
                         run tests of the engine under a sanitizer of the nightly compiler: address, leak or thread;
                         `--lib` only the library's own; `--mutant NAME` these with a deliberate defect, which it must find
  verify --minutes N     run schedules of whole transactions with a fresh seed, and append what ran to
                         docs/verification-ledger.csv. `--scene NAME` and `--protocol NAME` choose one.
                         `--mutants [NAME...]` instead says how many schedules it takes to find each deliberate defect
  drill [--runs N] [--seconds N] [--seed N] [--command FILE] [-- OPTION...]
                         kill, pause and promote a primary and two standbys for some seconds, a hundred times with fresh seeds, by
                         `candide reach drill`, which is built unless `--command` names it, with these options
  costs                  count instructions and cache misses of every operation under every protocol, and print the tables
                         that docs/cost-model.md explains. `--check` compares instructions with docs/costs.csv, and lets pass
                         what a change costs that only moves code; `--exact` does not, for a change of the engine; `--renew` writes it
  build-budget           build the command from nothing, and compare CPU time, size and copies of
                         functions with docs/build-budget.csv. `--built FILE` takes a command that
                         is there and checks size and copies; `--profile NAME` says whose limits,
                         unless those of release; `--coarse` fails only what exceeds a limit by more
                         than 15 %
  tidy                   look for what the compiler does not: doors left, layers crossed, protocols named
  check-json FILE...     check the fields and figures of files that `candide bench --json` wrote
  browse FILE...         look at pages that `candide bench --report` wrote in Chromium, on a large screen and on a phone: errors,
                         requests, overflow, every number of the JSON, axes, places, colours. `--self-test` instead damages
                         them in every way that must be noticed, `--pictures` puts pictures beside them
  book                   make a site of the documents below target/book, by mdBook
  release                make the packages for the registry together, and check what they contain: all features, examples of the
                         documentation, the oldest compiler, other systems; `--metadata` builds nothing";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((task, rest)) = arguments.split_first() else { return misused("no task is named") };
    let done = match task.as_str() {
        "mutants" => mutants::run(&root(), rest),
        "test" => engine_tests::run(&root(), rest),
        "orderings" => orderings::run(&root(), rest),
        "sanitize" => sanitize::run(&root(), rest),
        "verify" => verify::run(&root(), rest),
        "drill" => drill::run(&root(), rest),
        "costs" => costs::run(&root(), rest),
        "build-budget" => build_budget::run(&root(), rest),
        "tidy" if rest.is_empty() => tidy::run(&root()),
        "tidy" => return misused("`tidy` takes no arguments"),
        "check-json" if rest.is_empty() => return misused("`check-json` needs at least one file"),
        "check-json" => check_json::run(rest),
        "browse" => browse::run(rest),
        "book" => book::run(&root(), rest),
        "release" => release::run(&root(), rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => return misused(&format!("there is no task `{unknown}`")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn misused(problem: &str) -> ExitCode {
    eprintln!("error: {problem}\n\n{USAGE}");
    ExitCode::from(2)
}
