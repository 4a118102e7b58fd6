use super::*;
use candide_log::TableSchema;
#[cfg(debug_assertions)]
use candide_log::mutants::{Mutant, with_mutant};

fn plan() -> Plan {
    Plan::new(TableSchema {
        number: 0,
        name: String::new(),
        row_type: "tests::Row".to_string(),
        schema: 7,
        key_words: 1,
        key_widths: vec![64],
        groups: vec![("cold".to_string(), 1), ("hot".to_string(), 3)],
        ordered: true,
        splitting: None,
        policy: None,
        indexes: Vec::new(),
    })
}

#[test]
fn a_thousand_states_are_as_they_must_be() {
    let mut counts = Counts::default();
    for seed in 0.. {
        counts += examine(seed, &plan(), None).unwrap_or_else(|finding| panic!("{finding}"));
        if counts.states() > 1000 && counts.kills > 100 && counts.recoveries > 100 {
            break;
        }
    }
    assert!(counts.scripts < 20, "{counts:?}");
}

/// Returns the finding of the first seed that has one.
// Other builds have no deliberate defects.
#[cfg(debug_assertions)]
fn found(mutant: Mutant, plan: &Plan) -> Option<Box<Finding>> {
    with_mutant(mutant, || (0..200).find_map(|seed| examine(seed, plan, None).err()))
}

#[cfg(debug_assertions)]
#[test]
fn defects_are_found_and_findings_can_be_replayed() {
    // Crashes in recovery are needed for some of them, and syncs that fail for others.
    let in_recovery = Plan { recovery_share: 0.05, ..plan() };
    let of_faults = Plan { faults_percent: 100, ..plan() };
    let mutants =
        [Mutant::SyncErrorIgnored, Mutant::SyncRetried].map(|mutant| (mutant, &of_faults));
    let others = [
        Mutant::NoDirSync,
        Mutant::TailNotFenced,
        Mutant::RecoveredNotSynced,
        Mutant::TornTakenForCorrupt,
        Mutant::SegmentsFreedBeforeManifest,
        Mutant::PartialUnsorted,
        Mutant::RoundSplit,
        Mutant::CheckpointPendingDropped,
    ];
    let others = others.map(|mutant| (mutant, &in_recovery));
    for (mutant, plan) in mutants.into_iter().chain(others) {
        let finding = found(mutant, plan).unwrap_or_else(|| panic!("{mutant:?} is not found"));
        println!("{mutant:?}: {}:{:?}", finding.seed, finding.place);
        if let Some(place) = finding.place {
            let again = with_mutant(mutant, || replay(finding.seed, place, plan, None));
            assert!(matches!(again, Err(ReplayError::Found(_))), "{mutant:?} at {place}");
        }
    }
}

#[test]
fn a_state_that_is_not_there_is_refused() {
    let place = "100000:512:nothing".parse().unwrap();
    let refused = replay(1, place, &plan(), None);
    assert!(matches!(refused, Err(ReplayError::NoState { last }) if last > 20), "{refused:?}");
}
