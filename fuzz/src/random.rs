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

/// Makes tests that call a target with so many inputs of up to so many bytes.
macro_rules! fed {
    ($($test:ident: $target:ident with $inputs:literal of $length:literal;)+) => {
        $(#[test] fn $test() { feed($inputs, $length, crate::$target::run); })+
    };
}

fed! {
    operations_do_what_a_map_does: operations with 1_000 of 400;
    keys_keep_their_order_and_come_back: keys with 1_000 of 400;
    histories_are_read_however_they_are_dressed: edn with 5_000 of 400;
    turns_lead_to_what_some_serial_order_leads_to: schedules with 3_000 of 60;
    commit_records_are_read_or_refused: log_commits with 20_000 of 200;
    blocks_of_the_log_are_read_or_refused: log_blocks with 3_000 of 200;
    manifests_are_read_or_refused: log_manifest with 10_000 of 400;
    parts_of_checkpoints_are_read_or_refused: log_checkpoint with 10_000 of 400;
}
