//! The cost of each operation: its instructions and cache misses. Callgrind counts them, so the
//! counts do not depend on the machine.
//!
//! The measured program is `crates/candide-measure/src/bin/costs.rs`, which also has the list of
//! protocols. By default the task prints tables, which `docs/cost-model.md` explains. `--check` is
//! for every change: it runs fewer operations, and compares instructions with `docs/costs.csv`. The
//! cost of a change that only moves code passes. `--exact` is for changes of the engine, and
//! compares the same counts within closer limits. `--renew` writes `docs/costs.csv`.

mod baseline;
mod measure;
mod page;
mod profile;
mod split;

use baseline::{Baseline, Limits, compare};
use measure::{Scale, Tools};
use std::env;
use std::fs;
use std::path::Path;

const BASELINE: &str = "docs/costs.csv";
const RENEW: &str = "cargo xtask costs --renew";
/// The name of an environment variable. If it is set to any value, the check passes without
/// Valgrind.
const SKIP: &str = "CANDIDE_SKIP_COSTS";

/// Prints the tables, checks a change, or renews the baseline of the checks.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => page::print(&Tools::find()?, &measure::run(root, Scale::Full)?),
        ["--check"] if env::var_os(SKIP).is_some() => {
            println!("costs: NOT CHECKED, because {SKIP} is set");
            Ok(())
        }
        ["--check"] => check(root, Limits::COARSE),
        ["--exact"] => check(root, Limits::EXACT),
        ["--renew"] => renew(root),
        _ => Err("`costs` takes nothing, --check, --exact or --renew".to_string()),
    }
}

/// Counts as the check does, and returns the counts.
fn today(root: &Path) -> Result<Baseline, String> {
    let tools = Tools::find()
        .map_err(|problem| format!("{problem}, or set {SKIP}=1 to go without this check"))?;
    Ok(Baseline::of(&tools.compiler, &measure::run(root, Scale::Small)?.costs))
}

fn renew(root: &Path) -> Result<(), String> {
    let now = today(root)?;
    fs::write(root.join(BASELINE), now.to_text())
        .map_err(|error| format!("{BASELINE}: {error}"))?;
    println!("costs: {BASELINE} has {} counts", now.costs.len());
    Ok(())
}

fn check(root: &Path, limits: Limits) -> Result<(), String> {
    let text = fs::read_to_string(root.join(BASELINE))
        .map_err(|error| format!("{BASELINE}: {error}; see {RENEW}"))?;
    let before = Baseline::parse(&text).map_err(|problem| format!("{BASELINE}: {problem}"))?;
    let now = today(root)?;
    let verdict = compare(&before, &now, limits);
    verdict.notes.iter().chain(&verdict.failures).for_each(|line| println!("{line}"));
    let counts = now.costs.len();
    println!("costs: {counts} counts; {limits}");
    match verdict.failures.len() {
        0 => Ok(()),
        failed => Err(format!(
            "costs: {failed} of the lines above do not fit {BASELINE}; if that is intended, run `{RENEW}`, and commit the file with the reason"
        )),
    }
}
