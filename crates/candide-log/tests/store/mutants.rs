//! Deliberate defects, each with a check that finds it.

use crate::model::{Habits, World};
use crate::{crashes, damage, faults, manifest};
use candide_log::mutants::{Mutant, with_mutant};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Checks that `check` fails with a defect, and does not fail without it.
fn finds(mutant: Mutant, check: impl Fn()) {
    check();
    let result = catch_unwind(AssertUnwindSafe(|| with_mutant(mutant, &check)));
    assert!(result.is_err(), "{mutant:?} is not noticed");
}

/// Opens databases again and again.
fn reopen_often(habits: Habits) {
    for seed in 0..6 {
        let mut world = World::new(seed);
        world.run(30, habits);
        world.reopen();
    }
}

fn crash_everywhere() {
    for seed in 0..3 {
        let mut world = World::new(seed);
        world.run(25, Habits::default());
        crashes::check_crashes(&world, &crashes::few());
    }
}

#[test]
fn names_that_are_not_made_durable_are_noticed() {
    finds(Mutant::NoDirSync, crash_everywhere);
}

#[test]
fn a_sync_whose_failure_is_ignored_is_noticed() {
    finds(Mutant::SyncErrorIgnored, || faults::fail_syncs(0..1));
}

#[test]
fn a_sync_that_is_repeated_is_noticed() {
    finds(Mutant::SyncRetried, || faults::fail_syncs(0..1));
}

#[test]
fn records_that_come_back_after_their_generation_are_noticed() {
    finds(Mutant::TailNotFenced, || {
        reopen_often(Habits { reopenings: 25, ..Habits::default() });
    });
}

#[test]
fn a_recovery_that_leaves_its_last_block_unsynced_is_noticed() {
    finds(Mutant::RecoveredNotSynced, || crashes::kill_and_lose_power(0..2));
}

#[test]
fn blocks_of_an_earlier_life_are_noticed() {
    finds(Mutant::StaleBlockAccepted, || {
        reopen_often(Habits { checkpoints: 25, reopenings: 15, ..Habits::default() });
    });
}

#[test]
fn a_checksum_that_is_not_checked_is_noticed() {
    finds(Mutant::CrcSkipped, || damage::flip_bits("log-"));
}

#[test]
fn a_torn_block_that_is_taken_for_damage_is_noticed() {
    finds(Mutant::TornTakenForCorrupt, crash_everywhere);
}

#[test]
fn a_last_segment_that_no_manifest_names_is_noticed() {
    finds(Mutant::LastSegmentUnnoted, damage::remove_files);
}

#[test]
fn damage_that_is_taken_for_a_torn_block_is_noticed() {
    finds(Mutant::CorruptTakenForTorn, damage::lose_sectors);
}

#[test]
fn segments_that_are_given_back_too_early_are_noticed() {
    finds(Mutant::SegmentsFreedBeforeManifest, crash_everywhere);
}

#[test]
fn changes_that_are_applied_in_the_order_of_writing_are_noticed() {
    finds(Mutant::PartialUnsorted, || reopen_often(Habits::default()));
}

#[test]
fn an_update_of_nothing_that_is_ignored_is_noticed() {
    finds(Mutant::GhostTolerated, damage::update_what_is_not_there);
}

#[test]
fn a_round_in_two_blocks_is_noticed() {
    finds(Mutant::RoundSplit, || reopen_often(Habits::default()));
}

#[test]
fn a_checkpoint_without_pending_records_is_noticed() {
    finds(Mutant::CheckpointPendingDropped, || {
        reopen_often(Habits { checkpoints: 25, ..Habits::default() });
    });
}

#[test]
fn a_copy_of_manifest_that_names_what_is_missing_is_noticed() {
    finds(Mutant::IncompleteCopyTaken, manifest::copy_with_missing_files);
}

#[test]
fn a_torn_entry_of_manifest_that_is_accepted_is_noticed() {
    finds(Mutant::TornEntryAccepted, manifest::crash_while_tables_are_added);
}

#[test]
fn a_table_that_is_not_in_the_copy_of_manifest_is_noticed() {
    finds(Mutant::CopyLeftBehind, manifest::crash_while_tables_are_added);
}
