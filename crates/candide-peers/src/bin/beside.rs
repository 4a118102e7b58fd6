//! Draws Candide beside other stores on one task. `candide_peers::stores::beside` describes the
//! comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::stores::beside::run)
}
