//! After any mixture of operations, rows and indexes agree.

use candide_workloads::random::Random;

use crate::common::assert_holds;

#[test]
fn rows_and_indexes_agree_under_every_protocol_and_option() {
    assert_holds(&Random::default(), 4, 2_000, |committed, all| {
        assert!(committed > all / 4 && committed < all, "{committed} committed");
    });
}
