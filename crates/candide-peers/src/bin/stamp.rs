//! Measures two programs of STAMP in Candide and on software transactional memory.
//! `candide_peers::stamp` describes the comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::stamp::run)
}
