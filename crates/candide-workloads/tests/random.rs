//! After any mixture of operations, rows and indexes agree.

#[expect(dead_code, reason = "the tests of other workloads need more of it")]
mod common;

use candide::{GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc};
use candide_workloads::random::Random;
use common::{check, database, load, run};

fn agrees<P: Protocol>(threads: usize) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, &Random::default(), threads);
        for _ in 0..2 {
            let committed = run(&db, &tables, threads, 2_000);
            assert!(committed > threads * 500 && committed < threads * 2_000, "{committed} committed");
            let consistency = check(&db, &tables);
            assert_eq!(consistency.failed, Vec::<String>::new(), "{}, {updates}, {splitting}", P::NAME);
        }
    }
}

#[test]
fn rows_and_indexes_agree_under_every_protocol_and_switch() {
    agrees::<Occ>(4);
    agrees::<TicToc>(4);
    agrees::<Mvcc>(4);
    agrees::<GlobalLock>(2);
    agrees::<Serial>(1);
}
