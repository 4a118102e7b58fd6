//! Measures maps and queues within transactions, in Candide and on software transactional memory.
//! `candide_peers::objects` describes the comparison.

fn main() -> std::process::ExitCode {
    candide_peers::execute(candide_peers::objects::run)
}
