//! A check of the tests: with each deliberate defect of the engine, some test must fail.
//!
//! The defects are compiled into the library's own test binary. An environment variable enables one
//! defect, so nothing is built again for the next defect. The file
//! `crates/candide/src/sync/instruments.rs` names the defects. [`CHECKS`] names the test that must
//! find each defect.

use crate::cores::on_all_cores;
use crate::engine_tests::{Build, Ending, called, command, names, run_within, target_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that names the mutants.
const INSTRUMENTS: &str = "crates/candide/src/sync/instruments.rs";

/// A mutant, and the test that must find it. If several protocols contain the place of the mutant,
/// several tests may be named, of which one must find the mutant.
struct Check {
    mutant: &'static str,
    build: Build,
    /// The quickest test that finds the mutant in every run. Or a module of such tests, one for
    /// each protocol, of which at least one finds the mutant.
    test: &'static str,
}

/// Returns a check by a usual test, which takes a moment.
const fn check(mutant: &'static str, test: &'static str) -> Check {
    Check { mutant, build: Build::Usual, test }
}

/// Returns a check by a loom test, which explores executions until one fails because of the defect.
const fn model(mutant: &'static str, test: &'static str) -> Check {
    Check { mutant, build: Build::Loom, test }
}

const CHECKS: &[Check] = &[
    model("no-fence", "tests::loom::serial_order::loom_write_skew"),
    model("no-fence", "tests::loom::serial_order::loom_write_skew_by_timestamps"),
    check(
        "append-after-unlock",
        "tests::log::visits::a_logger_that_comes_whenever_it_can_misses_no_commit",
    ),
    check("cut-after-swap", "tests::log::rounds::a_commit_just_before_the_cut_is_in_the_round"),
    model("cut-after-swap", "tests::log::loom::loom_a_round_against_a_commit"),
    check(
        "cut-not-closed",
        "tests::log::rounds::a_record_above_the_cut_of_its_block_is_durable_with_the_next_block",
    ),
    check("ack-before-sync", "tests::log::rounds::what_is_said_to_be_durable_is_synced"),
    check("closed-unwritten", "tests::life::a_visit_of_the_memory_does_not_keep_the_database_open"),
    model("closed-unwritten", "tests::log::loom::loom_closing_against_a_round"),
    check(
        "turn-before-locks",
        "tests::log::turns::a_commit_that_gets_no_lock_does_not_keep_its_turn",
    ),
    check(
        "epoch-after-validation",
        "tests::log::cuts::a_prefix_has_no_commit_without_those_that_have_not_seen_it",
    ),
    model("epoch-unfenced", "tests::log::loom::loom_a_reader_of_a_prefix"),
    check(
        "stamp-by-epoch",
        "tests::log::cuts::a_round_in_a_quiet_database_makes_all_commits_durable",
    ),
    check(
        "read-only-ack-at-once",
        "tests::log::acknowledgements::every_end_rests_on_what_it_tells",
    ),
    check("outcome-ack-at-once", "tests::log::acknowledgements::every_end_rests_on_what_it_tells"),
    check(
        "absence-ack-by-tid",
        "tests::log::acknowledgements::the_absence_of_a_row_rests_on_its_delete",
    ),
    check("untouched-logged", "tests::log::changes::a_row_that_came_and_went_is_not_in_the_log"),
    check("index-entry-logged", "tests::log::changes::entries_of_indexes_are_not_in_the_log"),
    check("delta-logged", "tests::log::changes::a_deferrable_update_is_logged_as_its_result"),
    model("idle-noted-late", "tests::log::loom::loom_an_idle_logger_hears_of_a_commit"),
    model(
        "full-unheard",
        "tests::log::loom::loom_a_session_that_waits_for_room_hears_that_there_is_none",
    ),
    check(
        "limit-raised-at-commit",
        "tests::log::sequences::a_limit_is_used_when_it_is_durable_and_not_before",
    ),
    check(
        "limit-raised-at-draw",
        "tests::log::sequences::a_limit_of_a_transaction_without_effect_is_not_used",
    ),
    check("limit-undone", "tests::log::sequences::a_limit_stays_staged_when_a_part_is_undone"),
    check(
        "view-unmoved",
        "protocols::occ::tests::a_closure_never_sees_two_rows_of_different_times",
    ),
    check(
        "moved-unlooked",
        "protocols::occ::tests::a_closure_never_sees_two_rows_of_different_times",
    ),
    check(
        "new-unlooked",
        "protocols::occ::tests::the_cell_that_makes_the_view_move_is_looked_at_again",
    ),
    check("nodes-unlooked", "protocols::occ::tests::an_absent_key_and_a_row_are_of_one_time"),
    check(
        "install-unlooked",
        "protocols::occ::tests::a_commit_that_has_installed_only_half_is_noticed",
    ),
    check("epoch-after-look", "protocols::occ::tests::the_epoch_of_a_look_is_one_from_before_it"),
    check(
        "met-elsewhere",
        "protocols::occ::tests::a_version_that_was_met_in_one_row_is_not_met_in_another",
    ),
    check("met-uninstalled", "protocols::occ::tests::a_version_that_a_row_never_had_is_not_met"),
    check(
        "peek-unchecked",
        "protocols::occ::tests::that_a_row_could_be_updated_and_what_another_says_are_of_one_time",
    ),
    check(
        "told-unlooked",
        "protocols::occ::tests::that_a_row_could_be_updated_and_what_another_says_are_of_one_time",
    ),
    check(
        "told-once",
        "protocols::occ::tests::rows_that_go_and_come_back_during_a_look_are_noticed",
    ),
    check("no-read-validation", "tests::commit_interleavings::write_skew_fails_one_of_the_two"),
    model("others-locks-ignored", "tests::loom::serial_order::loom_write_skew"),
    model("tombstone-unobserved", "tests::loom::serial_order::loom_absent_read_against_insert"),
    check("reclaim-early", "epoch::tests::a_pin_holds_the_bound_and_nothing_else_does"),
    check(
        "evaluate-before-lock",
        "tests::commit_interleavings::an_update_is_evaluated_under_the_lock",
    ),
    check("held-not-installing", "tests::for_update::a_holder_that_commits_stops_readers"),
    check("held-for-ever", "tests::for_update::every_end_of_an_attempt_gives_back_what_it_holds"),
    check(
        "no-recheck-after-grant",
        "tests::policies::changes::a_lock_that_is_granted_too_late_is_given_back",
    ),
    check(
        "ask-set-while-locked",
        "tests::policies::changes::flags_are_not_set_while_a_commit_has_locked_the_row",
    ),
    check(
        "upgrade-in-place",
        "tests::policies::waiting::an_attempt_gives_up_its_lock_for_reading_before_it_waits_to_write",
    ),
    check(
        "want-left",
        "tests::policies::waiting::a_writer_that_gives_up_leaves_no_trace_in_the_lock",
    ),
    check("circle-unseen", "tests::policies::waiting::a_circle_is_seen_before_the_wait"),
    check(
        "cooled-while-shared",
        "tests::policies::learning::a_row_that_others_have_locked_stays_hot",
    ),
    check(
        "waits-out-of-order",
        "tests::policies::learning::a_lock_in_the_way_is_given_back_before_an_attempt_waits",
    ),
    check(
        "long-list-emptied",
        "tests::policies::ahead::a_long_list_keeps_what_is_hot_and_what_has_failed",
    ),
    check(
        "commit-unawaited-ahead",
        "tests::policies::ahead::an_attempt_sleeps_ahead_for_a_commit_and_not_for_a_read_for_update",
    ),
    check(
        "crowd-joined",
        "protocols::mvto::tests::deltas::a_commit_that_needs_the_row_waits_for_one_pending_version_and_not_for_two",
    ),
    check("lock-unawaited", "tests::attempts::a_transaction_that_meets_a_stopped_holder_sleeps"),
    check(
        "nothing-retrospective",
        "tests::policies::learning::the_next_attempt_locks_what_would_have_spared_the_conflict",
    ),
    check(
        "kill-next-transaction",
        "protocols::policies::tests::kills::a_session_that_has_released_the_lock_is_not_asked_to_abort",
    ),
    check(
        "locked-unvalidated",
        "tests::policies::by_chance::a_row_that_is_said_to_be_locked_is_validated",
    ),
    check(
        "locked-not-installing",
        "tests::policies::by_chance::a_commit_stops_readers_of_its_rows_before_it_validates",
    ),
    check(
        "held-not-installing",
        "tests::policies::by_chance::a_holder_stops_readers_of_its_rows_before_it_validates",
    ),
    check("no-node-validation", "tests::phantoms::an_insert_into_what_was_scanned_is_noticed"),
    check("split-untracked", "tests::phantoms::own_splits_keep_a_scan_and_others_inserts_spoil_it"),
    check(
        "absent-skipped-by-scan",
        "tests::phantoms::an_uncommitted_insert_is_an_absence_that_a_scan_observes",
    ),
    check("delete-one-group", "tests::phantoms::a_delete_is_noticed_by_scans_of_every_group"),
    check(
        "entry-unvalidated",
        "tests::phantoms::a_reader_by_an_index_notices_that_the_indexed_column_changes",
    ),
    check("reverse-off-by-one", "tests::phantoms::both_ways_lead_over_the_same_rows"),
    check(
        "inlined-layer-unobserved",
        "index::ordered::tests::phantoms::a_foreign_link_is_noticed_and_an_own_one_is_not",
    ),
    check(
        "mark-ignored",
        "tests::table_model::all_sequences_of_up_to_four_operations_with_a_scan_held_open",
    ),
    check(
        "version-below-read",
        "tests::phases::a_commit_that_builds_on_another_has_the_greater_version",
    ),
    check("version-below-replaced", "tests::phases::a_row_never_has_the_same_version_twice"),
    check(
        "epoch-before-lock",
        "tests::phases::a_commit_that_replaces_what_another_has_read_is_of_no_earlier_epoch",
    ),
    check(
        "node-observed-late",
        "tests::phases::what_was_searched_in_vain_is_observed_as_it_was_then",
    ),
    check(
        "install-before-validation",
        "tests::phases::an_attempt_that_does_not_validate_has_stored_nothing",
    ),
    check("unlock-before-install", "tests::phases::a_row_whose_words_are_being_stored_is_not_read"),
    check(
        "evaluate-between-installs",
        "tests::phases::an_updater_that_fails_leaves_no_half_of_its_commit",
    ),
    check("token-ignored", "tests::for_update::holders_give_way_to_the_token"),
    check(
        "sleepers-unseen",
        "sync::parking::tests::a_release_wakes_waiters_that_look_and_the_first_that_wants_to_own",
    ),
    check(
        "handed-by-freeing",
        "sync::parking::tests::a_waiter_that_has_lost_eight_times_is_handed_what_it_waits_for",
    ),
    check(
        "second-look-skipped",
        "tests::timestamps::a_value_is_that_of_the_timestamps_it_is_read_with",
    ),
    check(
        "wts-before-rts",
        "tests::timestamps::a_version_that_is_replaced_while_it_is_looked_at_is_not_extended",
    ),
    check("not-extended", "tests::timestamps::no_update_commits_below_a_reader_of_its_row"),
    check(
        "node-not-extended",
        "tests::timestamps::no_insert_commits_below_a_reader_that_missed_its_key",
    ),
    check(
        "node-wts-ignored",
        "tests::timestamps::a_reader_that_misses_a_key_comes_after_the_delete",
    ),
    check(
        "extended-under-lock",
        "tests::timestamps::a_version_that_is_about_to_be_replaced_is_not_extended",
    ),
    check("commit-below-rts", "tests::timestamps::no_update_commits_below_a_reader_of_its_row"),
    check(
        "held-extension-missed",
        "tests::timestamps::no_holder_commits_below_a_reader_of_its_row",
    ),
    check(
        "insert-inherits-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_that_missed_its_key",
    ),
    check(
        "delete-leaves-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_of_a_tombstone_that_was_buried_since",
    ),
    check(
        "abort-leaves-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_of_a_failed_insert_that_was_buried_since",
    ),
    check(
        "split-inherits-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_that_missed_its_key_before_a_leaf_was_divided",
    ),
    check(
        "growth-inherits-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_that_missed_its_key_before_the_table_grew",
    ),
    check(
        "collapse-leaves-nothing",
        "tests::timestamps::no_insert_commits_below_a_reader_that_missed_its_key_before_a_leaf_was_removed",
    ),
    check(
        "reaped-early",
        "tests::timestamps::a_row_that_was_deleted_while_its_record_was_queued_is_not_buried_early",
    ),
    check(
        "staged-unflagged",
        "tests::staged_rows::a_row_that_was_staged_where_one_was_deleted_is_found",
    ),
    model("staged-unflagged", "tests::loom::burial::loom_burial_against_put"),
    model("requeued-as-old", "tests::loom::burial::loom_burial_against_put"),
    check(
        "deleted-unflagged",
        "tests::staged_rows::a_row_is_found_that_was_staged_while_a_delete_was_committing",
    ),
    check(
        "requeued-as-old",
        "tests::staged_rows::a_row_that_was_staged_where_one_was_deleted_is_found",
    ),
    check(
        "drawn-before-locks",
        "tests::versions::what_was_not_there_at_a_time_does_not_come_to_be_there_at_that_time",
    ),
    check(
        "install-not-awaited",
        "tests::versions::a_commit_stops_readers_that_might_have_to_see_it_and_no_others",
    ),
    check(
        "undos-first",
        "protocols::mvcc::tests::a_reader_of_old_versions_sees_no_part_of_a_write_under_way",
    ),
    check(
        "expected-as-newest",
        "tests::versions::what_a_write_expects_was_so_at_the_time_that_the_attempt_has_moved_on_to",
    ),
    check("undone-op-kept", "tests::savepoints::what_a_failed_part_has_written_is_undone"),
    check("undone-unobserved", "tests::savepoints::what_undone_writes_have_assumed_is_observed"),
    check(
        "panic-forgotten",
        "tests::hostile::brittle::a_transaction_that_catches_a_panic_has_no_half_of_an_operation",
    ),
    check("undone-effect-kept", "tests::savepoints::effects_of_a_failed_part_do_not_run"),
    check("waiting-forgotten", "tests::unique_keys::rows_exchange_their_keys"),
    check("waiting-for-ever", "tests::unique_keys::rows_exchange_their_keys"),
    check(
        "index-read-early",
        "tests::index_lifetimes::a_reader_of_a_new_index_sees_nothing_from_before_it",
    ),
    check(
        "parted-at-once",
        "tests::index_lifetimes::a_writer_that_a_dropped_index_refused_comes_before_what_it_would_have_seen",
    ),
    check(
        "move-untracked",
        "index::ordered::tests::restructuring::one_thread_alone_meets_no_conflict",
    ),
    check(
        "dropped-at-once",
        "tests::refusals::an_index_that_is_dropped_is_kept_for_writers_it_has_refused",
    ),
    check(
        "old-reads-written",
        "tests::versions::a_reader_of_much_and_then_of_an_old_version_starts_over_when_it_writes",
    ),
    check(
        "commit-unannounced",
        "protocols::mvto::tests::chains::a_snapshot_is_not_opened_amid_a_commit_that_belongs_to_it",
    ),
    check(
        "unsettled-snapshot",
        "protocols::mvto::tests::chains::a_reader_does_not_begin_amid_a_commit_that_belongs_to_it",
    ),
    check("not-raised", "protocols::mvto::tests::chains::a_write_below_a_reader_starts_over"),
    check(
        "linked-unlooked",
        "protocols::mvto::tests::chains::a_row_that_was_missing_is_not_inserted_below_a_reader_that_missed_it",
    ),
    check(
        "raised-unlooked",
        "protocols::mvto::tests::chains::what_slips_in_below_a_commit_fails_it",
    ),
    check(
        "relinked-unlooked",
        "protocols::mvto::tests::chains::a_read_just_before_a_version_is_linked_below_is_noticed",
    ),
    check(
        "rested-on-nothing",
        "protocols::mvto::tests::deltas::an_update_does_not_rest_on_a_row_that_is_being_deleted",
    ),
    check(
        "absence-forgotten",
        "protocols::mvto::tests::chains::a_row_that_was_missing_is_not_inserted_below_a_reader_that_missed_it",
    ),
    check(
        "validated-in-past",
        "protocols::mvto::tests::chains::what_was_read_is_held_against_the_time_of_the_commit",
    ),
    check(
        "dead-unnoticed",
        "protocols::mvto::tests::linking::a_record_that_was_buried_says_nothing_of_later_times",
    ),
    check(
        "node-reused-early",
        "sync::queue_lock::tests::supply::a_node_is_used_again_when_no_session_can_see_it",
    ),
    model(
        "next-writer-unlooked",
        "sync::queue_lock::tests::loom::loom_the_last_of_two_readers_releases_beside_a_writer",
    ),
    model(
        "leaving-granted-ignored",
        "sync::queue_lock::tests::loom::loom_a_reader_behind_a_reader_that_cancels",
    ),
    model(
        "leaving-unmarked",
        "sync::queue_lock::tests::loom::loom_the_middle_of_two_writers_behind_a_writer_cancels",
    ),
    check(
        "reader-ungranted",
        "sync::queue_lock::tests::by_hand::a_writer_that_leaves_lets_the_readers_behind_it_in",
    ),
    check(
        "reader-ungranted",
        "sync::queue_lock::tests::by_hand::the_next_writer_lets_the_readers_behind_it_in_as_it_leaves",
    ),
    check("refused-taken", "sync::queue_lock::tests::by_hand::a_try_that_fails_leaves_no_trace"),
    model("tick-not-over", "tests::loom::reports::loom_report_against_a_commit_by_the_clock"),
    model("drawn-unfenced", "tests::loom::reports::loom_report_against_a_commit_by_the_clock"),
    model(
        "tick-awaited-late",
        "tests::loom::serial_order::loom_absent_read_against_insert_in_one_tick",
    ),
    model("tick-not-awaited", "tests::loom::serial_order::loom_write_skew_by_the_clock"),
    check(
        "flattened-over-pending",
        "protocols::mvto::tests::deltas::a_reader_waits_for_versions_that_are_pending_below",
    ),
    check(
        "flattened-unraised",
        "protocols::mvto::tests::deltas::no_version_is_linked_below_one_that_was_read",
    ),
    check(
        "deleted-under-delta",
        "protocols::mvto::tests::deltas::a_row_is_not_deleted_below_a_delta_that_rests_on_it",
    ),
    check(
        "delta-cut-loose",
        "protocols::mvto::tests::deltas::snapshots_between_deltas_see_their_own",
    ),
    check(
        "merged-early",
        "protocols::mvto::tests::merging::a_row_is_not_changed_under_a_reader_from_before_the_delta",
    ),
    check(
        "broken-word-applied",
        "record::tests::an_updater_that_fails_half_way_leaves_nothing_behind",
    ),
    check("snapshots-ignored", "tests::snapshots::a_snapshot_keeps_what_it_sees_and_no_more"),
    check(
        "snapshots-ignored",
        "tests::snapshots::a_snapshot_keeps_what_it_sees_and_no_more_in_chains",
    ),
    check(
        "never-parked",
        "gc::tests::parked_records::rows_that_a_snapshot_keeps_are_left_alone_until_it_closes",
    ),
    check("words-lost", "protocols::mvcc::tests::what_stays_in_a_chain_has_the_words_of_what_goes"),
    check(
        "pruned-by-old-word",
        "protocols::mvcc::tests::what_is_replaced_while_its_chain_is_thinned_stays",
    ),
    check(
        "freed-in-sight",
        "protocols::mvcc::tests::a_version_that_a_reader_walks_over_is_not_freed",
    ),
    check(
        "parked-forgotten",
        "gc::tests::parked_records::what_was_parked_by_one_and_queued_by_another_is_collected_once",
    ),
    check(
        "parked-reaped",
        "gc::tests::parked_records::a_record_of_which_something_is_parked_is_not_buried",
    ),
    check(
        "killed-by-store",
        "tests::commit_interleavings::an_insert_of_a_row_while_its_record_is_buried_is_not_lost",
    ),
    check(
        "killed-by-store",
        "tests::commit_interleavings::an_insert_of_a_row_while_its_chain_is_buried_is_not_lost",
    ),
    check(
        "room-used-again",
        "gc::tests::hot_rows::a_version_in_the_record_stays_as_it_was_when_it_has_left_its_chain",
    ),
    check(
        "hot-kept",
        "gc::tests::hot_rows::a_row_that_is_written_all_the_time_is_collected_by_its_writers",
    ),
    check(
        "hot-by-old-list",
        "gc::tests::hot_rows::a_snapshot_of_which_a_collection_does_not_know_yet_keeps_what_it_sees",
    ),
    check(
        "kept-unlisted",
        "gc::tests::hot_rows::a_long_transaction_that_only_reads_holds_back_no_more_than_a_snapshot",
    ),
    check("freed-by-horizon", "epoch::tests::a_pin_for_memory_holds_the_bound_and_not_the_horizon"),
    check(
        "moved-late",
        "gc::tests::deleted_index::a_row_is_seen_once_at_every_moment_while_it_is_put_out_of_the_way",
    ),
    check(
        "deleted-index-preferred",
        "gc::tests::deleted_index::a_row_that_only_a_snapshot_sees_is_in_no_other_readers_way",
    ),
    check(
        "collected-early",
        "tests::versions::versions_stay_as_long_as_a_reader_can_come_to_see_them",
    ),
    check(
        "collected-early",
        "tests::versions::versions_stay_in_chains_as_long_as_a_reader_can_come_to_see_them",
    ),
];

/// The longest time that a check may take, with or without a defect, even on a busy machine. A test
/// that does not end in this time does not count as having found a mutant.
const CHECK_MAX: Duration = Duration::from_secs(600);

/// A test binary, and the names of its tests.
struct Binary {
    path: PathBuf,
    tests: Vec<String>,
}

impl Binary {
    fn new(path: PathBuf) -> Result<Binary, String> {
        let tests = names(&path, "")?;
        Ok(Binary { path, tests })
    }
}

/// Returns the names of all mutants.
fn all(root: &Path) -> Result<Vec<String>, String> {
    let source = fs::read_to_string(root.join(INSTRUMENTS))
        .map_err(|error| format!("{INSTRUMENTS}: {error}"))?;
    Ok(names_in(&source))
}

/// Returns the mutants in `names`. Returns all mutants if `names` is empty.
pub(crate) fn known(root: &Path, names: &[String]) -> Result<Vec<String>, String> {
    let checks = choose(&all(root)?, names)?;
    let mut known: Vec<String> = checks.iter().map(|check| check.mutant.to_string()).collect();
    let mut seen = BTreeSet::new();
    known.retain(|name| seen.insert(name.clone()));
    Ok(known)
}

/// Runs the checks of the mutants in `names`. Runs all checks if `names` is empty.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<(), String> {
    let known = all(root)?;
    let checks = choose(&known, names)?;
    let builds: BTreeSet<Build> = checks.iter().map(|check| check.build).collect();
    let made = builds.into_iter().map(|build| Ok((build, Binary::new(build.make(root)?)?)));
    let binaries = made.collect::<Result<BTreeMap<_, _>, String>>()?;
    let folder = log_folder()?;
    let width = known.iter().map(String::len).max().unwrap_or(0);
    println!("{:width$}  {:>9}  found by", "mutant", "after");
    let missed = on_all_cores(&by_test(&checks), |checks, core| {
        let log = folder.join(format!("mutants-{core}.log"));
        let binary = &binaries[&checks[0].build];
        must_pass_as_it_is(binary, checks[0], &log)?;
        let mut missed = Vec::new();
        for check in checks {
            let (ending, after) = test(binary, check, Some(check.mutant), &log)?;
            let found = match ending {
                Ending::Failed => "",
                Ending::Passed => "NOT FOUND by ",
                Ending::TooLate => "NOT ENDED by ",
            };
            let after = format!("{:.2} s", after.as_secs_f64());
            println!("{:width$}  {after:>9}  {found}{}", check.mutant, check.test);
            if ending != Ending::Failed {
                missed.push(check.mutant);
            }
        }
        Ok(missed)
    })?
    .concat();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("no test failed with {}", missed.join(", ")))
    }
}

/// Divides checks into those of the same test, which has to pass once without a defect. Checks of
/// loom tests come first, since they take the longest.
fn by_test(checks: &[&'static Check]) -> Vec<Vec<&'static Check>> {
    let mut tests = BTreeMap::<_, Vec<_>>::new();
    for &check in checks {
        tests.entry((check.build == Build::Usual, check.test)).or_default().push(check);
    }
    tests.into_values().collect()
}

/// Returns the mutants' names: the first parts of the pairs whose second part is a `Mutant`.
fn names_in(source: &str) -> Vec<String> {
    let pairs = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", Mutant::"));
    pairs.map(|(name, _)| name.to_string()).collect()
}

/// Returns the checks of the mutants in `names`. Returns all checks if `names` is empty. A mutant
/// without a check is an error, and so is a check without a mutant.
fn choose(known: &[String], names: &[String]) -> Result<Vec<&'static Check>, String> {
    let list = || known.join(", ");
    if let Some(unchecked) =
        known.iter().find(|name| !CHECKS.iter().any(|check| check.mutant == name.as_str()))
    {
        return Err(format!("nothing says which test must find the mutant {unchecked}"));
    }
    if let Some(check) = CHECKS.iter().find(|check| !known.iter().any(|name| name == check.mutant))
    {
        return Err(format!("{INSTRUMENTS} knows no mutant {}; it has {}", check.mutant, list()));
    }
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no mutant {unknown}; there are {}", list()));
    }
    let wanted = |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.mutant);
    Ok(CHECKS.iter().filter(wanted).collect())
}

/// Returns the folder of the files for the output of tests, one file for each core. Each test
/// overwrites the output of the test before.
fn log_folder() -> Result<PathBuf, String> {
    let folder = crate::root().join(target_folder());
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Checks that the check's tests exist and that they pass without a defect.
fn must_pass_as_it_is(binary: &Binary, check: &Check, log: &Path) -> Result<(), String> {
    if called(&binary.tests, check.test).is_empty() {
        return Err(format!("no test is called {} ({:?})", check.test, check.build));
    }
    match test(binary, check, None, log)?.0 {
        Ending::Passed => Ok(()),
        Ending::Failed => {
            Err(format!("{} fails without any mutant; see {}", check.test, log.display()))
        }
        Ending::TooLate => {
            Err(format!("{} does not end within {} s", check.test, CHECK_MAX.as_secs()))
        }
    }
}

/// Runs a check's tests once, with or without a defect. Returns the way in which they ended, and
/// the time that they took.
fn test(
    binary: &Binary,
    check: &Check,
    mutant: Option<&str>,
    log: &Path,
) -> Result<(Ending, Duration), String> {
    let mut command = command(&binary.path, log)?;
    command.arg("--exact").args(called(&binary.tests, check.test));
    if let Some(mutant) = mutant {
        command.env("CANDIDE_MUTANT", mutant);
    }
    run_within(command, CHECK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_has_a_check_and_every_check_a_mutant() {
        let source =
            fs::read_to_string(crate::root().join(INSTRUMENTS)).expect("the engine's source");
        let known = names_in(&source);
        let checks = choose(&known, &[]).expect("each has what the other one needs");
        let checked: BTreeSet<_> = checks.iter().map(|check| check.mutant).collect();
        assert_eq!(checked.len(), known.len());
        let pairs: BTreeSet<_> = checks.iter().map(|check| (check.mutant, check.test)).collect();
        assert_eq!(pairs.len(), checks.len(), "no check is made twice");
        let divided = by_test(&checks);
        assert_eq!(divided.concat().len(), checks.len(), "no check is left out");
        assert!(divided.iter().flatten().all(|check| check.build != Build::Shuttle));
        assert!(divided[0].iter().all(|check| check.build == Build::Loom));
        let one = choose(&known, &["no-fence".to_string()]).expect("a known name");
        assert!(one.len() == 2 && one.iter().all(|check| check.mutant == "no-fence"));
        assert!(
            choose(&known, &["no-sense".to_string()])
                .is_err_and(|problem| problem.contains("no-fence"))
        );
        assert!(choose(&[], &[]).is_err());
        let more = [known, vec!["new".to_string()]].concat();
        assert!(choose(&more, &[]).is_err_and(|problem| problem.contains("new")));
    }
}
