//! Measures commits that survive a loss of power, in Candide and in other stores.
//! `candide_peers::stores::durable` describes the comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::stores::durable::run)
}
