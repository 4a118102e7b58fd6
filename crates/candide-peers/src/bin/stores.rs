//! Measures Candide beside other stores, SQL, software transactional memory and hand-written
//! locking. `candide_peers::stores` describes the comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::stores::run)
}
