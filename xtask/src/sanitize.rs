//! The engine's tests under a sanitizer of the nightly compiler.
//!
//! In such a build (`cfg(sanitized)`), the system allocates rows and nodes one by one. If they lay
//! in the engine's own blocks, a sanitizer would not know which memory is in use.
//!
//! For ThreadSanitizer, the standard library is compiled with the sanitizer as well, from the
//! toolchain's component `rust-src`. Otherwise the sanitizer does not see the order that the
//! standard library's locks impose, and reports races. The other sanitizers use the standard
//! library as it is.
//!
//! Of the library's own tests, `cfg(sanitized)` leaves out the modules that no sanitizer below runs
//! and that take long to compile. Of the others, those tests are compiled whose names the variable
//! `CANDIDE_TESTS` has (`protocol_tests.rs`): the filters of the run, unless the variable is set.
//! The variable is set where several runs with different filters follow one another, which then
//! share a build. A run without a single test fails.

use crate::instrumented;
use crate::progress::Progress;
use crate::workspace::target_folder;
use std::env;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// A sanitizer, and the tests that are worth running under it: the tests that free memory, and the
/// tests in which threads interact.
struct Sanitizer {
    name: &'static str,
    filters: &'static [&'static str],
    /// Whether the standard library has to be compiled with the sanitizer.
    builds_std: bool,
    /// The variable and the value of the sanitizer's own options.
    options: (&'static str, &'static str),
}

const SANITIZERS: &[Sanitizer] = &[
    Sanitizer {
        name: "address",
        filters: &[
            "stress::",
            "tests::boxed",
            "tests::churn",
            "tests::hostile",
            "tests::life",
            "tests::long",
            "misuse::",
            "index::",
            "memory::",
            "epoch::",
        ],
        builds_std: false,
        options: ("ASAN_OPTIONS", "detect_leaks=0"),
    },
    Sanitizer {
        name: "leak",
        filters: &[
            "stress::",
            "tests::boxed",
            "tests::churn",
            "tests::life",
            "tests::long",
            "misuse::answers",
            "index::",
            "memory::",
            "epoch::",
        ],
        builds_std: false,
        // None of these tests forgets a session on purpose, which would be a leak.
        options: ("LSAN_OPTIONS", "exitcode=23"),
    },
    Sanitizer {
        name: "thread",
        filters: &["stress::", "tests::churn", "index::ordered::tests::concurrent", "epoch::"],
        builds_std: true,
        options: ("TSAN_OPTIONS", "halt_on_error=1"),
    },
];

/// Runs tests under a sanitizer: the tests that `arguments` name or, if none is named, the tests
/// chosen for the sanitizer. With `--lib` first, only the library's own tests are built. With
/// `--mutant NAME` before the filters, the library's own tests run with that deliberate defect of
/// the engine, and the sanitizer must find the defect.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let known = || SANITIZERS.iter().map(|sanitizer| sanitizer.name).collect::<Vec<_>>().join(", ");
    let (name, rest) =
        arguments.split_first().ok_or_else(|| format!("name a sanitizer: {}", known()))?;
    let sanitizer = SANITIZERS.iter().find(|sanitizer| sanitizer.name == name.as_str());
    let sanitizer =
        sanitizer.ok_or_else(|| format!("there is no sanitizer {name}; there are {}", known()))?;
    let (is_lib_only, rest) = match rest {
        [option, rest @ ..] if option == "--lib" => (true, rest),
        rest => (false, rest),
    };
    let (mutant, filters) = match rest {
        [option, mutant, filters @ ..] if option == "--mutant" => (Some(mutant), filters),
        [option, ..] if option.starts_with('-') => {
            return Err(format!("`{option}` is neither `--lib` nor `--mutant NAME`"));
        }
        filters => (None, filters),
    };
    let mut cargo = Command::new("rustup");
    // The tests are those of the copy with all deliberate defects.
    cargo.current_dir(instrumented::write(root)?).args([
        "run",
        "nightly",
        "cargo",
        "test",
        "--package",
        "candide",
        "--lib",
        "--features",
        "experiments",
        // Otherwise the checker is optimized, which takes longer than these tests.
        "--config",
        "profile.dev.package.candide-check.opt-level = 0",
    ]);
    // Other tests contain no deliberate defects.
    if !is_lib_only && mutant.is_none() {
        cargo.args(["--test", "it"]);
    }
    // With an explicit target, build scripts and macros are compiled without the sanitizer.
    cargo
        .args(["--target", &format!("{}-unknown-linux-gnu", env::consts::ARCH), "--target-dir"])
        .arg(root.join(target_folder()).join(format!("sanitize-{name}")))
        .arg("--");
    let filters: Vec<&str> = match filters {
        [] => sanitizer.filters.to_vec(),
        filters => filters.iter().map(String::as_str).collect(),
    };
    cargo.args(&filters);
    if env::var_os(COMPILED).is_none() {
        cargo.env(COMPILED, filters.join(","));
    }
    if sanitizer.builds_std {
        cargo.env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort,test,proc_macro");
    }
    // The settings of the running cargo do not apply to the nightly cargo.
    cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    cargo.env(
        "RUSTFLAGS",
        format!("-Zsanitizer={name} --cfg sanitized -Cunsafe-allow-abi-mismatch=sanitizer"),
    );
    cargo.env(sanitizer.options.0, sanitizer.options.1);
    let explain = |error: io::Error| format!("rustup does not start: {error}");
    let Some(mutant) = mutant else {
        let (status, tests) = run_telling(&mut cargo).map_err(explain)?;
        return match tests {
            _ if !status.success() => Err(format!("the tests fail under {name}: {status}")),
            0 => Err(format!("{NO_TESTS} {}", sanitizer.filters.join(", "))),
            _ => Ok(()),
        };
    };
    let output = cargo
        .env("CANDIDE_MUTANT", mutant)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .map_err(explain)?;
    let text = String::from_utf8_lossy(&output.stderr);
    match text.lines().find(|line| line.contains("ERROR: ") && line.contains("Sanitizer")) {
        Some(line) => println!("{mutant} found: {line}"),
        None => return Err(format!("{name} has not found {mutant}: {}\n{text}", output.status)),
    }
    Ok(())
}

/// The name of the environment variable with the tests to compile.
const COMPILED: &str = "CANDIDE_TESTS";

/// The message if the filters select no test, without the list of filters that select tests.
const NO_TESTS: &str = "no test has such a name: builds under a sanitizer leave out tests \
     (`cfg(sanitized)` in crates/candide/src/tests/mod.rs); this one runs";

/// Runs tests, and prints their progress, which it reads from their output. Returns how cargo
/// ended, and how many tests the binaries have announced.
fn run_telling(cargo: &mut Command) -> io::Result<(ExitStatus, u64)> {
    let mut child = cargo.stdout(Stdio::piped()).spawn()?;
    let mut progress = None;
    let mut all = 0;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line?;
        println!("{line}");
        if let Some(tests) = announced(&line) {
            progress = Some(Progress::new(tests));
            all += tests;
        } else if let Some(progress) = progress.as_mut().filter(|_| is_result(&line)) {
            progress.step();
        }
    }
    Ok((child.wait()?, all))
}

/// Returns the number of tests that a line announces; `None` if the line announces none.
fn announced(line: &str) -> Option<u64> {
    line.strip_prefix("running ")?.split(' ').next()?.parse().ok()
}

/// Returns whether a line reports the result of a test.
fn is_result(line: &str) -> bool {
    line.starts_with("test ") && !line.starts_with("test result")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_tests_are_parsed_from_their_lines() {
        assert_eq!(announced("running 23 tests"), Some(23));
        assert_eq!(announced("running late"), None);
        assert!(is_result("test epoch::tests::only_a_pin_keeps ... ok"));
        assert!(!is_result("test result: ok. 23 passed; 0 failed"));
    }
}
