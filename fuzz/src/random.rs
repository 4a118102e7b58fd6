//! The fuzz targets on random bytes, so that they are tested without a fuzzer, too. The tests are
//! in the library, since tests beside it would have all programs linked before they run.

/// Calls a target with so many inputs of up to `length` bytes, or a third of them unless
/// `CANDIDE_FULL` is set; the same in every run.
fn feed(inputs: u64, length: u64, target: fn(&[u8])) {
    let inputs = if std::env::var_os("CANDIDE_FULL").is_none() { inputs / 3 } else { inputs };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..inputs {
        let bytes: Vec<u8> = (0..next() % (length + 1)).map(|_| (next() >> 32) as u8).collect();
        target(&bytes);
    }
}

#[test]
fn operations_do_what_a_map_does() {
    feed(1_000, 400, crate::operations::run);
}

#[test]
fn keys_keep_their_order_and_come_back() {
    feed(1_000, 400, crate::keys::run);
}

#[test]
fn histories_are_read_however_they_are_dressed() {
    feed(5_000, 400, crate::edn::run);
}

#[test]
fn turns_lead_to_what_some_serial_order_leads_to() {
    feed(3_000, 60, crate::schedules::run);
}

#[test]
fn commit_records_are_read_or_refused() {
    feed(20_000, 200, crate::log_commits::run);
}

#[test]
fn blocks_of_the_log_are_read_or_refused() {
    feed(3_000, 200, crate::log_blocks::run);
}

#[test]
fn manifests_are_read_or_refused() {
    feed(10_000, 400, crate::log_manifest::run);
}

#[test]
fn parts_of_checkpoints_are_read_or_refused() {
    feed(10_000, 400, crate::log_checkpoint::run);
}
