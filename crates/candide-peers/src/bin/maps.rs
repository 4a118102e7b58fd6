//! Measures Candide's tables beside the concurrent maps of the Rust ecosystem. The crate's
//! documentation describes the comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::run)
}
